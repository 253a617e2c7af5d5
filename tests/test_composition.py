"""The settings of composed rewards: what is refused and why, what they come to, and the paper's numbers without any scorer."""

import math
import random
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strangers import Publish, publish

from cascade_core.advantages import advantages
from cascade_core.composition import Composition, Sample, combined, judging, measured, misfits, named
from cascade_core.domain import Score
from cascade_core.errors import SpecError
from cascade_core.opinion import Opinion
from cascade_core.plan import plan
from cascade_core.plugins import Registry
from cascade_core.report.curves import training
from cascade_core.rule import Reward
from cascade_core.settings import Spec, Stage
from cascade_core.spec import check, load
from cascade_core.verdict import Verdict

__all__ = ["publish"]

PLUGIN = """
    from dataclasses import dataclass
    from cascade_core import Domain, Score, Task, hookimpl
    from cascade_core.trainers import Trainer

    @dataclass
    class Rules(Domain):
        name = "rules"
        level: int = 0
        def tasks(self, split, seed): return [Task(f"{split}-{n}", f"{split} {n}") for n in range(4)]
        def score(self, task, response): return Score(1.0)

    @dataclass
    class Liked(Rules):
        name = "liked"
        judges_any = True
        passes = False
        bounded_by = "bounded: true"
        bounded: bool = False
        odd: bool = False
        def __post_init__(self):
            self.reward_range = "wide" if self.odd else (0.0, 1.0) if self.bounded else None

    class Plain(Trainer):
        name = "plain"
        kinds = ("sft", "rl")
        def settings(self, stage): return {}
        def train(self, job): pass

    @dataclass
    class Sums(Domain):
        name = "sums"
        endless: bool = False
        def __post_init__(self):
            if self.endless:
                self.reward_range, self.judges_any = None, True
        def tasks(self, split, seed): return [Task(f"{split}-{n}", f"{n} + {n}") for n in range(4)]
        def score(self, task, response): return Score(1.0)

    @hookimpl
    def cascade_domains(): return [Rules, Liked, Sums]

    @hookimpl
    def cascade_trainers(): return [Plain]
"""

SPEC = """\
name: small
model: owner/model
trainer: plain
domains:
  rules:
  preference: {liked: {bounded: true}}
  raw: {liked: {}}
stages:
  - name: rl
    domains: rules
    steps: 1
    reward: REWARD
"""


@pytest.fixture
def plugins(publish: Publish) -> Registry:
    publish("cascade-plugin-rules", PLUGIN)
    return Registry()


def written(folder: Path, reward: str, more: str = "") -> Path:
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("REWARD", reward) + more)
    return path


def refused(path: Path, found: Registry | None = None) -> str:
    with pytest.raises(SpecError) as caught:
        check(load(path), path, found=found)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(
    ("reward", "what"),
    [
        ("{sum: [rules, preferense]}", "spec.yaml:12:27: stages.rl.reward.sum.2: scorer 'preferense' is not among the spec's"
         " domains, did you mean 'preference' (allowed: rules, preference, raw)"),
        ("{gate: rule, sum: [rules]}", "did you mean 'rules'"),
        ("{gate: rules}", "must name scorers under either sum or min, and not under both"),
        ("{sum: [rules], min: [rules, preference]}", "under either sum or min, and not under both"),
        ("{sum: [rules, rules]}", "must name each scorer once; what counts more gets a weight"),
        ("{min: [rules]}", "must name two scorers at least, found 'rules' alone; of one it is the sum"),
        ("{gate: rules, sum: [preference], weights: {rules: 2}}", "'rules' has a weight and no reward that is summed"),
        ("{sum: [rules], weights: {rulez: 2}}", "did you mean 'rules'"),
        ("{gate: rules, sum: [rules], weights: {rules: -1}}", "must be above 0, found -1: 'rules' is a gate"),
        ("{min: [rules, preference], weights: {rules: 0}}", "must be above 0, found 0: 'rules' is one of min"),
        ("{sum: [rules, preference], weights: {preference: 0}}", "must not be 0: leave 'preference' out of the sum"),
        ("{sum: [rules], weights: {rules: .inf}}", "a number must be finite, found .inf"),
        ("{summe: [rules]}", "did you mean 'sum'"),
        ("3", "stages.rl.reward"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_meant_is_refused_with_its_line(tmp_path: Path, reward: str, what: str) -> None:
    assert what in refused(written(tmp_path, reward))


def test_a_scorer_whose_value_is_never_1_is_no_gate_and_is_told_so_at_its_place(
    tmp_path: Path, plugins: Registry
) -> None:
    what = "'preference' is no gate: its value is hardly ever exactly 1, so the reward would be 0 for every answer; put it under sum or min"
    alone = refused(written(tmp_path, "{gate: preference, sum: [rules]}"), plugins)
    assert alone == f"spec.yaml:12:20: stages.rl.reward.gate.1: {what}"
    second = refused(written(tmp_path, "{gate: [rules, preference], sum: [rules]}"), plugins)
    assert second == f"spec.yaml:12:28: stages.rl.reward.gate.2: {what}"


@pytest.mark.parametrize(
    ("reward", "what"),
    [
        (
            "{min: [rules, raw]}",
            "stages.rl.reward.min: the rewards of 'raw' have no bounds, so the smallest of several says nothing; bound them with its"
            " option bounded: true, or sum",
        ),
        (
            "{gate: rules, sum: [rules, raw]}",
            "have no bounds and may lie below the 0 of a shut gate, so that passing it could cost; bound them with its option"
            " bounded: true, or leave the gate out",
        ),
        ("{gate: rules, sum: [preference], weights: {preference: -1}}", "may be -1, below the 0 of a shut one"),
        ("{min: [rules, endless]}", "the smallest of several says nothing; bound them, or sum"),
        ("{sum: [odd]}", "'odd' declares the range 'wide' of its rewards, which must be two finite numbers"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(tmp_path: Path, plugins: Registry, reward: str, what: str) -> None:
    path = written(tmp_path, reward)
    more = "raw: {liked: {}}\n  odd: {liked: {odd: true}}\n  endless: {sums: {endless: true}}"
    path.write_text(path.read_text().replace("raw: {liked: {}}", more))
    assert what in refused(path, plugins)


STRANGER = (
    "'sums' judges tasks of its own domain alone, and this stage trains 'rules' (scorers of any task: preference, raw)"
)


@pytest.mark.parametrize(
    ("reward", "where"),
    [
        ("{sum: [rules, sums]}", "spec.yaml:13:27: stages.rl.reward.sum.2"),
        ("{gate: sums, sum: [rules]}", "spec.yaml:13:20: stages.rl.reward.gate.1"),
        ("{min: [sums, rules]}", "spec.yaml:13:20: stages.rl.reward.min.1"),
    ],
)
def test_a_scorer_that_knows_nothing_of_the_stages_tasks_is_refused(
    tmp_path: Path, plugins: Registry, reward: str, where: str
) -> None:
    path = written(tmp_path, reward)
    path.write_text(path.read_text().replace("  rules:\n", "  rules:\n  sums:\n", 1))
    assert refused(path, plugins) == f"{where}: {STRANGER}"


def test_of_a_mixed_stage_a_scorer_must_judge_all_domains(tmp_path: Path, plugins: Registry) -> None:
    path = written(tmp_path, "{sum: [rules, preference]}")
    text = path.read_text().replace("  rules:\n", "  rules:\n  sums:\n", 1)
    path.write_text(text.replace("domains: rules", "domains: {rules: 0.5, sums: 0.5}"))
    assert "'rules' judges tasks of its own domain alone, and this stage trains 'sums'" in refused(path, plugins)


def test_a_detector_of_languages_that_judges_its_own_tasks_alone_is_refused(tmp_path: Path, publish: Publish) -> None:
    publish("cascade-plugin-rules", PLUGIN)
    publish("cascade-plugin-mine", PLUGIN.replace('"sums"', '"code-switch"').replace("[Rules, Liked, Sums]", "[Sums]"))
    found = Registry([plugin for plugin in _entries() if plugin.name != "language"])
    path = written(tmp_path, "{sum: rules}", "    code_switch: {assign: -1}\n")
    text = refused(path, found)
    assert "stages.rl.code_switch: 'code-switch' judges tasks of its own domain alone" in text


@pytest.mark.parametrize(
    "reward",
    [
        "{sum: [rules, strict]}",
        "{gate: rules, sum: [rules, preference]}",
        "{sum: [rules, raw], weights: {raw: -0.1}}",
        "{min: [rules, preference], weights: {rules: 0.5}}",
        "{gate: rules, sum: [rules, preference], weights: {preference: -1}}",
    ],
)
def test_what_fits_is_taken(tmp_path: Path, plugins: Registry, reward: str) -> None:
    path = written(tmp_path, reward)
    path.write_text(path.read_text().replace("  rules:\n", "  rules:\n  strict: {rules: {level: 2}}\n", 1))
    assert set(check(load(path), path, found=plugins)) == {"rules", "strict", "preference", "raw"}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("{}", "give either assign or below_batch, and not both"),
        ("{assign: -1, below_batch: 10}", "give either assign or below_batch, and not both"),
        ("{below_batch: -10}", "below_batch"),
        ("{assign: 0, parts: think}", "parts"),
    ],
)
def test_a_code_switch_rule_that_cannot_be_meant_is_refused(tmp_path: Path, given: str, what: str) -> None:
    assert what in refused(written(tmp_path, "{sum: rules}", f"    code_switch: {given}\n"))


def test_a_missing_detector_is_refused_with_its_remedy(tmp_path: Path, publish: Publish) -> None:
    publish("cascade-plugin-rules", PLUGIN)
    alone = Registry([plugin for plugin in _entries() if plugin.name != "language"])
    path = written(tmp_path, "{sum: rules}", "    code_switch: {assign: -1}\n")
    text = refused(path, alone)
    assert text == (
        "spec.yaml:13:5: stages.rl.code_switch: domain 'code-switch' is not installed; pip install cascade-plugin-language,"
        " by which it judges"
    )


def _entries() -> list[Any]:
    from importlib.metadata import entry_points

    return list(entry_points(group="cascade_core"))


def test_rewards_of_sft_stages_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "{sum: rules}")
    path.write_text(path.read_text().replace("    steps: 1\n", "    steps: 1\n    kind: sft\n"))
    assert "'reward' is a setting of rl stages, and this stage is of kind 'sft'" in refused(path)


def test_a_detector_that_the_rule_names_too_is_refused() -> None:
    stage = {
        "name": "rl",
        "domains": "a",
        "steps": 1,
        "reward": {"sum": ["a", "code-switch"]},
        "code_switch": {"assign": 0},
    }
    with pytest.raises(ValueError, match="which 'reward' names too; say it in one of both"):
        Spec.model_validate({"name": "s", "model": "o/m", "domains": {"a": {}, "code-switch": {}}, "stages": [stage]})


def test_a_scorer_under_a_name_of_its_own_is_built_and_not_measured(tmp_path: Path, plugins: Registry) -> None:
    spec = load(path := written(tmp_path, "{gate: rules, sum: [rules, preference]}"))
    domains = check(spec, path, found=plugins)
    assert (type(domains["preference"]).name, domains["preference"].bounded) == ("liked", True)
    assert measured(spec, plugins) == ["rules", "raw"], "raw judges for nobody"
    asked = load(path, ["evaluation.benchmarks=[preference/test]"])
    assert measured(asked, plugins) == ["rules", "preference", "raw"]


def test_a_slip_in_the_name_under_a_name_is_what_is_refused(tmp_path: Path, plugins: Registry) -> None:
    path = written(tmp_path, "{sum: [rules, preference]}")
    path.write_text(path.read_text().replace("{liked: {bounded", "{likd: {bounded"))
    assert "no domain is called 'likd', did you mean 'liked'" in refused(path, plugins)


def test_an_option_under_a_name_of_its_own_is_refused_at_its_place(tmp_path: Path, plugins: Registry) -> None:
    path = written(tmp_path, "{sum: [rules, preference]}")
    path.write_text(path.read_text().replace("bounded: true", "bound: true"))
    assert "spec.yaml:6:24: domains.preference.liked.bound: unknown" in refused(path, plugins)


def test_a_stage_that_looks_for_code_switches_needs_the_detector_once() -> None:
    stages = [{"name": n, "domains": "a", "steps": 1, "code_switch": {"assign": -1}} for n in "xy"]
    spec = Spec.model_validate({"name": "s", "model": "o/m", "domains": {"a": {}}, "stages": stages})
    assert named(spec) == {"a": {}, "code-switch": {}} and list(spec.domains) == ["a"]
    assert judging(spec.stages[0]) == ["a", "code-switch"]


def test_the_plan_says_what_the_reward_is(tmp_path: Path, plugins: Registry) -> None:
    spec = load(path := written(tmp_path, "{gate: rules, sum: [rules, preference], weights: {preference: 0.5}}"))
    made = plan(spec, check(spec, path, found=plugins), plugins)
    assert made.stages[0].composition == "[rules is 1] × (rules + 0.5 preference), from 0 to 1.5"
    assert [one.name for one in made.benchmarks] == ["rules/test", "raw/test"]


ENDS = st.tuples(st.floats(-5, 5), st.floats(0, 5)).map(lambda both: (both[0], both[0] + both[1]))


@settings(max_examples=200, deadline=None)
@given(st.lists(ENDS, min_size=2, max_size=4), st.booleans(), st.data())
def test_of_a_rule_that_is_taken_no_open_gate_pays_less_than_a_shut_one(
    ranges: list[tuple[float, float]], is_sum: bool, data: st.DataObject
) -> None:
    names = [f"s{place}" for place in range(len(ranges))]
    weights = {name: data.draw(st.floats(0.1, 3)) for name in names}
    rule = Reward.model_validate({"gate": [names[0]], ("sum" if is_sum else "min"): names, "weights": weights})
    domains: Any = {
        name: SimpleNamespace(reward_range=ends, judges_any=True, passes=True)
        for name, ends in zip(names, ranges, strict=True)
    }
    spec: Any = SimpleNamespace(stages=[SimpleNamespace(domains=names[:1], reward=rule, code_switch=None)])
    if not list(misfits(spec, domains)):
        # A scorer that says 1 trains on its upper end; the others anywhere.
        rewards = {name: data.draw(st.floats(*ends)) for name, ends in zip(names, ranges, strict=True)}
        rewards[names[0]] = ranges[0][1]
        found = combined(rule, dict.fromkeys(names, 1.0), rewards)
        assert found is not None and found >= -1e-9


WORD = st.none() | st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-9, 9))


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys("abc", WORD)))
def test_only_what_is_needed_must_be_judged(words: dict[str, tuple[float, float] | None]) -> None:
    rule = Reward(gate=["a", "b"], sum=["b", "c"], weights={"c": -2.0})
    values = {name: word[0] if word else None for name, word in words.items()}
    rewards = {name: word[1] if word else None for name, word in words.items()}
    found = combined(rule, values, rewards)
    if any(words[name] and values[name] != 1 for name in "ab"):
        assert found == 0.0
    elif not all(words.values()):
        assert found is None
    else:
        assert found == math.fsum([rewards["b"] or 0.0, -2.0 * (rewards["c"] or 0.0)])


def _sample(reward: float, clean: bool) -> Sample:
    verdict = Verdict(Score(1.0), 0.0, 0.0, 0.0)
    detector = Opinion({"domain": "code-switch"}, Score(float(clean)), verdict, float(clean))
    return Sample({"domain": "rlhf"}, Score(1.0, reward=reward), verdict, reward, beside={"code-switch": detector})


def test_e5_the_rlhf_rule_gives_the_offender_about_minus_2_4_and_squeezes_the_others() -> None:
    chance = random.Random(0)
    stage = Stage.model_validate({"name": "s", "domains": "rlhf", "steps": 1, "code_switch": {"below_batch": 10}})
    offenders, others, squeezed = [], [], []
    for _ in range(20):
        groups = [[_sample(chance.gauss(0, 1), clean=place > 0) for place in range(8)] for _ in range(32)]
        rewards = [[sample.reward or 0.0 for sample in group] for group in groups]
        Composition(stage).apply([sample for group in groups for sample in group])
        for before, group in zip(rewards, groups, strict=True):
            found = advantages([sample.reward for sample in group])
            offenders.append(found[0])
            others += found[1:]
            squeezed.append(statistics.stdev(advantages(before)[1:]) / statistics.stdev(found[1:]))
    assert statistics.fmean(offenders) == pytest.approx(-2.4, abs=0.05)
    assert statistics.fmean(others) == pytest.approx(0.34, abs=0.01)
    assert 3.5 < statistics.fmean(squeezed) < 6


def test_the_report_draws_each_component_and_nothing_of_them_twice() -> None:
    events = [
        {"kind": "step", "stage": "01-s", "step": n, **{f"component/{name}/{key}_mean": n for name in "ab" for key in ("raw", "trained")}}
        for n in range(3)
    ]  # fmt: skip
    stage = SimpleNamespace(steps_seen=lambda: events, id="01-s", metrics={})
    titles = [chart.title for chart in training(stage).charts]  # type: ignore[arg-type]
    assert titles == ["reward by component, raw", "reward by component, as trained"]
