"""The spec: what is wrong with it is said before anything starts, with its line; what is right comes back the same."""

from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strangers import publish

from cascade_core.errors import PluginBroken, SpecError
from cascade_core.plugins import Registry
from cascade_core.settings import Spec
from cascade_core.spec import check, dump, load, schema

__all__ = ["publish"]

BASE = """\
name: small
model: owner/model
domains:
  toy: {size: 4}
stages:
  - name: sft
    kind: sft
    domains: toy
    steps: 4
  - name: rl
    domains: toy
    steps: 5
"""

TOY = """
    from dataclasses import dataclass, field
    from typing import Literal
    from cascade_core import Benchmark, Domain, Score, hookimpl
    from cascade_core.errors import SpecError, UsageError
    from cascade_core.trainers import Trainer

    @dataclass
    class Toy(Domain):
        name = "toy"
        size: int = 3
        level: Literal["easy", "hard"] = "easy"
        path: str = ""
        sampling: dict[str, float] = field(default_factory=dict)
        def __post_init__(self):
            if self.size == 13: raise ValueError("size 13 brings bad luck")
            if self.size == 14: raise UsageError("size 14 is a usage error")
        def tasks(self, split, seed): raise AssertionError("check loads no task")
        def score(self, task, response): return Score(1.0)
        def benchmarks(self):
            if self.size == 15: raise UsageError("benchmarks of size 15 are refused")
            if self.size == 16: raise KeyError("a bug")
            return (Benchmark("test", sampling=self.sampling), Benchmark("hard"))

    class Plain(Trainer):
        name = "plain"
        kinds = ("sft", "rl")
        def settings(self, stage):
            if stage.kl: raise SpecError(f"stage {stage.name!r}: kl must be 0, found {stage.kl}")
            for flag in stage.trainer_args: raise SpecError(f"trainer_args.{flag} is no flag")
            return {}
        def train(self, job): pass

    class OnlyRl(Plain):
        name = "only-rl"
        kinds = ("rl",)

    @hookimpl
    def cascade_domains(): return [Toy]

    @hookimpl
    def cascade_trainers(): return [Plain, OnlyRl]
"""


@pytest.fixture
def write(tmp_path: Path):
    def put(text: str = BASE) -> Path:
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return path

    return put


def refused(path: Path, *settings: str) -> list[str]:
    """The lines of the refusal, the folder left out."""
    with pytest.raises(SpecError) as caught:
        load(path, settings)
    return [line.removeprefix(f"{path.parent}/") for line in str(caught.value).splitlines()]


def test_a_short_spec_gets_the_recipes_defaults(write) -> None:
    spec = load(write())
    assert [stage.kind for stage in spec.stages] == ["sft", "rl"]
    assert spec.stages[1].optim.lr == 2e-6 and spec.stages[1].rollout.samples_per_prompt == 8
    assert spec.stages[0].domains == {"toy": 1.0}


SPOILT = [
    ("steps: 4", "stesp: 4", ["spec.yaml:6:5: stages.sft: 'steps' is missing", "spec.yaml:9:5: stages.sft.stesp: unknown key 'stesp', did you mean 'steps'"]),
    ("name: small", "nmae: small", ["spec.yaml:1:1: 'name' is missing", "spec.yaml:1:1: nmae: unknown key 'nmae', did you mean 'name'"]),
    ("steps: 4", 'steps: "4"', ["spec.yaml:9:12: stages.sft.steps: must be a whole number, found text '4'; leave out the quotes"]),
    ("steps: 4", "steps: 4.5", ["spec.yaml:9:12: stages.sft.steps: must be a whole number, found 4.5"]),
    ("steps: 4", "steps: 0", ["spec.yaml:9:12: stages.sft.steps: must be above 0, found 0"]),
    ("steps: 4", "steps: true", ["spec.yaml:9:12: stages.sft.steps: must be a whole number, found true"]),
    ("steps: 4", "steps:", ["spec.yaml:9:5: stages.sft.steps: must be a whole number, found nothing"]),
    ("kind: sft", "kind: stf", ["spec.yaml:7:11: stages.sft.kind: must be 'sft', 'rl' or 'reward_model', found text 'stf', did you mean 'sft'"]),
    ("name: small", "name: 1", ["spec.yaml:1:7: name: must be text, found 1; put it in quotes"]),
    ("name: small", "name: ../up", ["spec.yaml:1:7: name: must be letters, digits, '_', '.' and '-'"]),
    ("name: small", "name: small\nseed: -1", ["spec.yaml:2:7: seed: must be at least 0, found -1"]),
    ("name: small", "name: small\nseed: 4294967296", ["spec.yaml:2:7: seed: must be below 4294967296, found 4294967296"]),
    ("owner/model", "{path: a, init: {}}", ["spec.yaml:2:8: model: give either a path (or hub name) or init, and not both"]),
    ("owner/model", "{init: {heads: 3}}", ["spec.yaml:2:15: model.init: hidden_size 128 must be a multiple of 2 × heads (6)"]),
    ("owner/model", "{intt: {}}", ["spec.yaml:2:9: model.intt: unknown key 'intt', did you mean 'init' (allowed: path, init, modes)"]),
    ("domains: toy\n    steps: 5", "domains: toi\n    steps: 5", ["spec.yaml:11:14: stages.rl.domains.toi: domain 'toi' is not among the spec's domains, did you mean 'toy'"]),
    ("domains: toy\n    steps: 5", "domains: {toy: 0}\n    steps: 5", ["spec.yaml:11:20: stages.rl.domains.toy: must be above 0, found 0"]),
    ("domains: toy\n    steps: 5", "domains: []\n    steps: 5", ["spec.yaml:11:14: stages.rl.domains: must hold at least 1, found 0"]),
    ("domains: toy\n    steps: 5", "domains: [toy, toy]\n    steps: 5", ["spec.yaml:11:14: stages.rl.domains: a domain is listed twice"]),
    ("domains: toy\n    steps: 5", "domains: [1]\n    steps: 5", ["spec.yaml:11:14: stages.rl.domains: must be a list of domain names"]),
    ("domains: toy\n    steps: 5", "domains: 5\n    steps: 5", ["spec.yaml:11:14: stages.rl.domains: must be a mapping, found 5"]),
    ("name: rl", "name: sft", ["spec.yaml:10:11: stages.sft.name: stage 2 is called 'sft' like stage 1, and names must be unique"]),
    ("name: rl", "name: SFT", ["stages.SFT.name: stage 2 is called 'SFT' like stage 1"]),
    ("steps: 4", "steps: 4\n    kl: 0", ["spec.yaml:10:9: stages.sft.kl: 'kl' is a setting of rl stages, and this stage is of kind 'sft'"]),
    ("steps: 5", "steps: 5\n    batch_size: 64", ["spec.yaml:13:17: stages.rl.batch_size: 'batch_size' is a setting of sft and reward_model stages"]),
    ("steps: 5", "steps: 5\n    overlong: {soft: {buffer: 1024}}", ["spec.yaml:13:31: stages.rl.overlong.soft.buffer: must be below rollout.max_response_tokens (1024), found 1024"]),
    ("steps: 5", "steps: 5\n    overlong: maks", ["spec.yaml:13:15: stages.rl.overlong: must be 'mask', 'zero' or 'keep', found text 'maks', did you mean 'mask'"]),
    ("steps: 5", "steps: 5\n    overlong: {sotf: {}}", ["'soft' is missing", "unknown key 'sotf', did you mean 'soft'"]),
    ("steps: 5", "steps: 5\n    optim: {warmup_steps: 6}", ["spec.yaml:13:27: stages.rl.optim.warmup_steps: must be at most the stage's steps (5), found 6"]),
    ("steps: 5", "steps: 5\n    optim: {decay_steps: 2}", ["belongs to schedule 'linear', and the schedule is 'constant'"]),
    ("steps: 5", "steps: 5\n    optim: {schedule: linear, warmup_steps: 3, decay_steps: 3}", ["warm-up and decay together must be at most the stage's steps (5), found 3 + 3"]),
    ("steps: 5", "steps: 5\n    optim: {betas: [0.9]}", ["spec.yaml:13:20: stages.rl.optim.betas: must be a list of two numbers, found 1"]),
    ("steps: 5", "steps: 5\n    optim: {betas: [0.9, 1]}", ["spec.yaml:13:26: stages.rl.optim.betas.2: must be below 1, found 1"]),
    ("steps: 5", "steps: 5\n    rollout: {temperature: 0}", ["stages.rl.rollout.temperature: must be above 0, found 0"]),
    ("steps: 5", "steps: 5\n    rollout: {Temperature: 1}", ["unknown key 'Temperature', did you mean 'temperature'"]),
    ("steps: 5", "steps: 5\n    rollout: {samples-per-prompt: 4}", ["unknown key 'samples-per-prompt', did you mean 'samples_per_prompt'"]),
    ("steps: 5", "steps: 5\nevaluation: {benchmarks: [toy]}", ["spec.yaml:13:27: evaluation.benchmarks.1: must be 'domain/benchmark', found 'toy'"]),
    ("steps: 5", "steps: 5\nevaluation: {benchmarks: [toi/test]}", ["domain 'toi' is not among the spec's domains, did you mean 'toy'"]),
    ("steps: 5", "steps: 5\nevaluation: {benchmarks: [toy/test, toy/test]}", ["benchmark 'toy/test' is listed twice"]),
    ("steps: 5", "steps: 5\nscoring: {cpu_seconds: -1, wall_seconds: x}", ["scoring.cpu_seconds: must be above 0, found -1", "scoring.wall_seconds: must be a number, found text 'x'"]),
    ("steps: 5", "steps: 5\n    rollout: {micro_batch: 1}", ["spec.yaml:13:15: stages.rl.rollout.micro_batch: unknown key 'micro_batch'; it belongs beside 'rollout', not in it (allowed: temperature, "]),
    ("steps: 5", "steps: 5\n    lr: 1", ["stages.rl.lr: unknown key 'lr'; it belongs in 'optim' (allowed: name, "]),
    ("steps: 5", "steps: 5\n    scoring: {}", ["stages.rl.scoring: unknown key 'scoring'; it belongs beside 'stages', not in it"]),
    ("steps: 5", "steps: 5\n    reward: exact", ["stages.rl.reward: must be a mapping, found text 'exact' (its keys: gate, sum, min, weights)"]),
    ("steps: 5", "steps: 5\nresources: {sandbox: {name: docker}}", ["resources.sandbox: the options of name must be a mapping, found 'docker'; a name alone is text"]),
    ("domains:\n  toy: {size: 4}", "domains: {}", ["domains: must hold at least 1, found 0"]),
    ("domains:\n  toy: {size: 4}", "domains: [toy]", ["spec.yaml:3:10: domains: must be a mapping, found a list of 1"]),
    ("  toy: {size: 4}", "  toy: 4", ["spec.yaml:4:8: domains.toy: must be a mapping, found 4"]),
    ("  toy: {size: 4}", "  ../toy: {}", ["spec.yaml:4:3: domains.../toy: must be letters, digits"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "lines"), SPOILT, ids=[new.replace("\n", " ")[:50] for _, new, _ in SPOILT])
def test_a_mistake_is_refused_with_its_line_and_what_is_allowed(old: str, new: str, lines: list[str], write) -> None:
    assert old in BASE
    found = refused(write(BASE.replace(old, new, 1)))
    for line in lines:
        assert any(line in one for one in found), found


def test_all_mistakes_are_said_at_once_in_the_order_of_the_file(write) -> None:
    text = (
        BASE.replace("steps: 4", "steps: x\n    kimd: 1")
        .replace("name: small", "name: 3")
        .replace("steps: 5", "steps: -5")
    )
    found = refused(write(text))
    assert [line.split(":")[1] for line in found] == ["1", "9", "10", "13"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty; a spec needs"),
        ("# nothing\n", "empty; a spec needs"),
        ("- a\n- b\n", "a spec is a mapping with name, model, domains and stages, found a list"),
        ("just text", "found a single value"),
        (BASE + "name: again\n", "spec.yaml:13:1: key 'name' is given twice"),
        ("a: [", "not YAML"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(text: str, what: str, write) -> None:
    assert what in refused(write(text))[0]


def test_anchors_and_merge_keys_may_share_settings_between_stages(write) -> None:
    text = BASE.replace("kind: sft", "kind: sft\n    optim: &fast {lr: 1e-3}").replace(
        "steps: 5", "steps: 5\n    optim: {<<: *fast, warmup_steps: 2}"
    )
    spec = load(write(text))
    assert spec.stages[1].optim.lr == 1e-3 and spec.stages[1].optim.warmup_steps == 2


def test_a_mistake_inside_an_anchor_is_named_where_it_stands(write) -> None:
    text = BASE.replace("kind: sft", "kind: sft\n    optim: &fast {lr: 0}").replace(
        "steps: 5", "steps: 5\n    optim: *fast"
    )
    assert refused(write(text)) == [
        "spec.yaml:8:23: stages.sft.optim.lr: must be above 0, found 0",
        "spec.yaml:8:23: stages.rl.optim.lr: must be above 0, found 0",
    ]


def test_a_response_longer_than_a_made_models_context_is_refused(write) -> None:
    text = BASE.replace("owner/model", "{init: {context: 64}}")
    assert "stages.rl: must be below the model's context (64)" in refused(write(text))[0].replace(
        ".rollout.max_response_tokens", ""
    )
    fits = text.replace("steps: 5", "steps: 5\n    rollout: {max_response_tokens: 63}")
    assert load(write(fits))


def test_a_path_that_begins_with_a_dot_starts_at_the_specs_folder_and_other_text_is_left_alone(write) -> None:
    text = BASE.replace("{size: 4}", "{files: [./a.jsonl, ../b.jsonl, c/d.jsonl, .e], deep: {f: ./g}}").replace(
        "owner/model", "./model"
    )
    path = write(text)
    spec = load(path)
    here = path.parent.resolve()
    assert spec.model.path == str(here / "model")
    assert spec.domains["toy"] == {
        "files": [str(here / "a.jsonl"), str(here.parent / "b.jsonl"), "c/d.jsonl", ".e"],
        "deep": {"f": str(here / "g")},
    }


def test_a_path_after_set_starts_at_the_working_directory(write, tmp_path, monkeypatch) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    path = write()
    monkeypatch.chdir(other)
    assert load(path, ["domains.toy.path=./a.jsonl"]).domains["toy"]["path"] == str(other.resolve() / "a.jsonl")


def test_what_is_dumped_is_read_back_equal(write) -> None:
    text = BASE.replace(
        "{size: 4}",
        "{size: 4, a: 'on', b: '1e-4', c: '2024-01-01', d: \"two\\nlines \u2028 \U0001f600\", e: '', f: null, g: '~'}",
    )
    spec = load(write(text))
    assert load(write(dump(spec))) == spec
    assert "batch_size" not in dump(spec)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10)
OPTIONS = st.dictionaries(
    TEXT,
    st.none() | st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(OPTIONS)
def test_any_options_survive_dump_and_load(tmp_path: Path, options: dict) -> None:
    options = {key: value for key, value in options.items() if not str(value).startswith(("./", "../"))}
    path = tmp_path / "spec.yaml"
    path.write_text(BASE)
    spec = load(path).model_copy(update={"domains": {"toy": options}})
    path.write_text(dump(spec))
    assert load(path) == spec


def test_a_spec_made_in_python_is_checked_for_what_must_fit_together() -> None:
    stage = {"name": "a", "domains": "x", "steps": 1}
    with pytest.raises(ValueError, match="domain 'x' is not among"):
        Spec.model_validate({"name": "n", "model": "m", "domains": {"y": {}}, "stages": [stage]})


def test_check_builds_the_domains_and_loads_no_task(write, publish) -> None:
    publish("cascade-plugin-toy", TOY)
    path = write(BASE.replace("name: small", "name: small\ntrainer: plain"))
    domains = check(load(path), path, found=Registry())
    assert domains["toy"].size == 4


PLUGIN_SPOILT = [
    ("{size: 4}", "{sise: 4}", "spec.yaml:5:9: domains.toy.sise: unknown option 'sise', did you mean 'size' (allowed: size, level, path, sampling)"),
    ("{size: 4}", "{size: four}", "spec.yaml:5:15: domains.toy.size: option 'size' must be a whole number, found text 'four'"),
    ("{size: 4}", "{size: 4.5}", "option 'size' must be a whole number, found 4.5"),
    ("{size: 4}", "{level: heard}", "option 'level' must be 'easy' or 'hard', found text 'heard', did you mean 'hard'"),
    ("{size: 4}", "{size: 13}", "spec.yaml:5:9: domains.toy.size: domain 'toy' refuses its options: size 13 brings bad luck"),
    ("{size: 4}", "{size: 14}", "spec.yaml:5:9: domains.toy.size: size 14 is a usage error"),
    ("{size: 4}", "{size: 15}", "spec.yaml:5:9: domains.toy.size: benchmarks of size 15 are refused"),
    ("owner/model", "/no/such/folder", "spec.yaml:3:8: model.path: no folder is at '/no/such/folder'; give a Hugging Face folder or a hub name"),
    ("owner/model", "./absent", "model.path: no folder is at '"),
    ("owner/model", "./", "spec.yaml:3:8: model.path: no weights are in '"),
    ("{size: 4}", "{sampling: {temprature: 1}}", "spec.yaml:5:3: domains.toy: benchmark 'toy/test' sets sampling 'temprature', did you mean 'temperature'"),
    ("{size: 4}", "{sampling: {top_p: 2}}", "benchmark 'toy/test' sets sampling top_p, which must be at most 1, found 2"),
    ("  toy: {size: 4}", "  toy: {}\n  tooy: {}", "spec.yaml:6:3: domains.tooy: no domain is called 'tooy', did you mean 'toy'"),
    ("trainer: plain", "trainer: plane", "spec.yaml:2:10: trainer: no trainer is called 'plane', did you mean 'plain'"),
    ("trainer: plain", "trainer: only-rl", "spec.yaml:8:11: stages.sft.kind: trainer 'only-rl' has no stages of kind 'sft' (it has: rl); a stage may name a trainer of its own"),
    ("steps: 5", "steps: 5\n    kl: 0.5", "spec.yaml:14:9: stages.rl.kl: kl must be 0, found 0.5"),
    ("steps: 5", "steps: 5\n    trainer_args: {fast: 1}", "spec.yaml:14:26: stages.rl.trainer_args.fast: trainer_args.fast is no flag"),
    ("steps: 5", "steps: 5\n    trainer: nobody", "spec.yaml:14:14: stages.rl.trainer: no trainer is called 'nobody'"),
    ("steps: 5", "steps: 5\nevaluation: {benchmarks: [toy/tset]}", "spec.yaml:14:27: evaluation.benchmarks.1: no benchmark is called 'toy/tset', did you mean 'toy/test' (allowed: toy/test, toy/hard)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line"), PLUGIN_SPOILT, ids=[new.replace("\n", " ")[:50] for _, new, _ in PLUGIN_SPOILT]
)
def test_what_a_plugin_refuses_is_named_with_its_line(old: str, new: str, line: str, write, publish) -> None:
    publish("cascade-plugin-toy", TOY)
    path = write(BASE.replace("name: small", "name: small\ntrainer: plain").replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        check(load(path), path, found=Registry())
    assert line in str(caught.value).replace(f"{path.parent}/", "")


def test_a_bug_in_the_naming_of_benchmarks_names_the_domain(write, publish) -> None:
    publish("cascade-plugin-toy", TOY)
    path = write(BASE.replace("name: small", "name: small\ntrainer: plain").replace("size: 4", "size: 16"))
    with pytest.raises(PluginBroken, match="domain 'toy' cannot tell its benchmarks: KeyError: 'a bug'"):
        check(load(path), path, found=Registry())


def test_what_plugins_refuse_is_said_at_once_and_each_thing_once(write, publish) -> None:
    publish("cascade-plugin-toy", TOY)
    path = write(
        BASE.replace("{size: 4}", "{sise: 4}")
        .replace("steps: 5", "steps: 5\n    trainer: plain\n    kl: 1")
        .replace("name: small", "name: small\ntrainer: nobody")
    )
    with pytest.raises(SpecError) as caught:
        check(load(path), path, found=Registry())
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["trainer", "domains.toy.sise", "stages.rl.kl"]


def test_a_benchmark_longer_than_a_made_models_context_is_refused(write, publish) -> None:
    publish("cascade-plugin-toy", TOY)
    text = BASE.replace("owner/model", "{init: {context: 64}}\ntrainer: plain").replace(
        "steps: 5", "steps: 5\n    rollout: {max_response_tokens: 60}"
    )
    path = write(text)
    with pytest.raises(
        SpecError, match="benchmark 'toy/hard' samples up to 1024 tokens, and the model's context is 64"
    ):
        check(load(path), path, found=Registry())
    assert check(load(path, ["evaluation.sampling.max_response_tokens=60"]), found=Registry())


def test_a_benchmark_of_a_reward_model_samples_nothing_and_has_no_context_to_fit(write, publish) -> None:
    publish("cascade-plugin-toy", TOY.replace('Benchmark("hard")', 'Benchmark("hard", of="reward_model")'))
    text = BASE.replace("owner/model", "{init: {context: 64}}\ntrainer: plain").replace(
        "steps: 5", "steps: 5\n    rollout: {max_response_tokens: 60}"
    )
    path = write(f"{text}evaluation: {{benchmarks: [toy/hard]}}\n")
    assert check(load(path), path, found=Registry())


def test_a_domain_that_needs_what_nothing_provides_is_refused(write, publish) -> None:
    publish("cascade-plugin-toy", TOY.replace('name = "toy"', 'name = "toy"\n        needs = ("oracle",)'))
    path = write(BASE.replace("name: small", "name: small\ntrainer: plain"))
    with pytest.raises(SpecError, match=r":5:3: domains\.toy: domain 'toy' needs 'oracle': nothing installed provides"):
        check(load(path), path, found=Registry())


def test_a_benchmark_that_would_write_elsewhere_is_refused(write, publish) -> None:
    publish("cascade-plugin-toy", TOY.replace('Benchmark("hard")', 'Benchmark("../hard")'))
    path = write(BASE.replace("name: small", "name: small\ntrainer: plain"))
    with pytest.raises(SpecError, match="its name becomes a file's"):
        check(load(path), path, found=Registry())


@pytest.fixture(scope="module")
def validator() -> jsonschema.protocols.Validator:
    whole = schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    return jsonschema.Draft202012Validator(whole)


def data(text: str) -> dict:
    from cascade_core.document import parse

    return parse(text, "spec").data


def test_the_schema_allows_a_right_spec_in_all_its_shapes(validator) -> None:
    for old, new in [
        ("name: small", "name: small"),
        ("owner/model", "{init: {context: 2048}}"),
        ("{size: 4}", ""),
        ("steps: 5", "steps: 5\n    overlong: mask"),
        ("steps: 5", "steps: 5\n    overlong: {soft: {buffer: 10}}"),
        ("steps: 5", "steps: 5\n    optim: {betas: [0.9, 0.99]}"),
        ("domains: toy", "domains: [toy]"),
        ("domains: toy", "domains: {toy: 2}"),
    ]:
        text = BASE.replace(old, new)
        assert Spec.model_validate(data(text)) and not list(validator.iter_errors(data(text))), new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps: 4", "stesp: 4"),
        ("steps: 4", "steps: 0"),
        ("steps: 4", "steps: four"),
        ("kind: sft", "kind: stf"),
        ("name: small", ""),
        ("name: small", "name: ../up"),
        ("steps: 5", "steps: 5\n    overlong: {sotf: {}}"),
        ("steps: 5", "steps: 5\n    rollout: {top_p: 2}"),
        ("domains: toy", "domains: 3"),
        ("  toy: {size: 4}", "  toy: 4"),
    ],
)
def test_the_schema_refuses_what_load_refuses_of_single_values(old: str, new: str, validator) -> None:
    assert list(validator.iter_errors(data(BASE.replace(old, new, 1))))


def test_the_schema_knows_the_options_of_installed_domains(publish) -> None:
    publish("cascade-plugin-toy", TOY)
    whole = schema(Registry())
    found = jsonschema.Draft202012Validator(whole)
    assert not list(found.iter_errors(data(BASE)))
    assert list(found.iter_errors(data(BASE.replace("size: 4", "sise: 4"))))
    assert list(found.iter_errors(data(BASE.replace("size: 4", "level: heard"))))
    assert whole["properties"]["domains"]["properties"]["toy"]["properties"]["level"]["default"] == "easy"
