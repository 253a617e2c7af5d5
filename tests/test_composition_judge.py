"""Several scorers to one reward, through the judge that both trainers call: the paper's rules, faults, what is stored, and the document."""

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import faulty_scorer, ref
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import served
from test_serve_rollout import SLOTS, STAGE, draw, rollouts, step

from cascade_core.document import parse
from cascade_core.domain import DomainRef
from cascade_core.errors import TooManyFailures
from cascade_core.judge import Judge, Judged
from cascade_core.rows import read
from cascade_core.scoring import Scorer
from cascade_core.settings import Stage

PAPER = {"gate": "rule", "sum": ["rule", "preference"]}
G = 4


def said(name: str, key: str, lane: str = "cpu") -> DomainRef:
    return DomainRef(name, {"key": key}, "cascade-plugin-faulty", "0.1.0", lane)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    named = {
        "rule": said("said", "rule"),
        "other": said("said", "other"),
        "raw": said("said", "preference"),
        "preference": said("preferred", "preference", "io"),
        "code-switch": said("said", "mixed"),
        "if": said("said", "if"),
        "math": said("said", "math"),
        "code": said("said", "code"),
        "rlhf": said("said", "rlhf"),
        "clean": said("said", "clean"),
        "broken": ref("grouped", fault="raise"),
    }
    with faulty_scorer(domains=named, workers=1, concurrency=1, cpu_seconds=0.2) as shared:
        yield shared


Make = Callable[..., Judge]


@pytest.fixture
def judge(scorer: Scorer, tmp_path: Path) -> Make:
    def make(max_error_rate: float = 1.0, **stage: Any) -> Judge:
        setting = Stage.model_validate(
            {"name": "s", "domains": "rule", "steps": 1, "advantage": {"std": "none"}, **stage}
        )
        return Judge(scorer, setting, 0, tmp_path, max_error_rate)

    return make


def row(group: str, domain: str = "rule", text: str = "", truncated: bool = False, **parts: Any) -> dict[str, Any]:
    """A sampled row; `parts` is what each scorer is going to say."""
    response = text or json.dumps({"mixed": 1, **parts})
    common = {"domain": domain, "id": group, "prompt": "p", "prefill": "", "tokens": 5, "sample": 0, "group": group}
    return {**common, "response": response, "truncated": truncated}


def column(judged: Judged, name: str) -> list[Any]:
    return [row[name] for row in judged.rows]


NUMBERS = st.floats(-50, 50).map(lambda number: round(number, 3))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), st.none() | NUMBERS), min_size=2, max_size=8))
def test_a_failure_is_0_and_a_pass_1_plus_the_sigmoid_of_the_z_score_over_all_that_were_judged(
    judge: Make, group: list[tuple[bool, float | None]]
) -> None:
    judged = judge(reward=PAPER).judge(0, [row("a", rule=int(passed), preference=score) for passed, score in group])
    live = [score for _, score in group if score is not None]
    for (passed, score), found in zip(group, judged.rows, strict=True):
        assert found["score"]["value"] == float(passed), "dynamic filtering and evaluation see R_IF alone"
        if not passed:
            assert found["reward"] == 0.0
        elif score is None:
            assert (found["reward"], found["masked"], found["advantage"]) == (None, "error", 0.0)
        else:
            spread = statistics.stdev(live) if len(live) > 1 else 0.0
            z = (score - statistics.fmean(live)) / spread if spread > 1e-9 else 0.0
            assert found["reward"] == pytest.approx(1 + 1 / (1 + math.exp(-z)), abs=1e-6)
            assert 1 < found["reward"] < 2


def test_a_failed_gate_shifts_the_z_score_of_the_others(judge: Make) -> None:
    passing = [row("a", rule=1, preference=1), row("a", rule=1, preference=2)]
    alone = judge(reward=PAPER).judge(0, passing)
    beside = judge(reward=PAPER).judge(1, [*passing, row("a", rule=0, preference=30)])
    assert beside.rows[0]["reward"] < alone.rows[0]["reward"] + 1 and beside.rows[2]["reward"] == 0.0
    assert beside.rows[1]["reward"] < 1.5 < alone.rows[1]["reward"]


def test_every_component_is_stored_raw_weighted_and_as_trained(judge: Make, tmp_path: Path) -> None:
    rule = {**PAPER, "weights": {"preference": 0.5}}
    judged = judge(reward=rule).judge(0, [row("a", rule=1, preference=3), row("a", rule=0, preference=1)])
    first = judged.rows[0]["components"]
    z = 1 / (1 + math.exp(-math.sqrt(0.5)))
    assert first["rule"] == {"value": 1.0, "raw": 1.0, "trained": 1.0, "weighted": 1.0, "note": "rule says 1"}
    assert first["preference"]["raw"] == 3.0 and first["preference"]["value"] == 1.0
    assert first["preference"]["trained"] == pytest.approx(z)
    assert first["preference"]["weighted"] == pytest.approx(z / 2)
    assert judged.rows[0]["reward"] == pytest.approx(1 + z / 2)
    assert next(read(tmp_path / "rollouts/step-00000.jsonl"))["components"] == first


def test_components_are_told_as_means_of_what_there_is(judge: Make) -> None:
    rows = [row("a", rule=1, preference=3), row("a", rule=0, preference=1), row("a", rule=1, preference=None)]
    metrics = judge(reward=PAPER).judge(0, rows).metrics
    assert metrics["component/preference/raw_mean"] == 2.0
    assert metrics["component/preference/trained_mean"] == pytest.approx(0.5)
    assert metrics["component/preference/failed"] == 1
    assert metrics["component/rule/value_mean"] == metrics["value_mean"] == pytest.approx(2 / 3)
    assert metrics["failed"] == 0 and metrics["masked"] == 1
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["run_seconds/preference"] >= 0


def test_the_metrics_of_a_scorer_are_told_under_its_own_name_unless_the_stage_trains_its_domain_too(
    judge: Make,
) -> None:
    rows = [row("a", text="four"), row("a", text="fourteen")]
    metrics = judge(reward={"sum": ["rule", "other"]}).judge(0, rows).metrics
    assert metrics["metric/other/seen"] == metrics["metric/rule/seen"] == 6.0
    rows = [row("a", "rule", text="four"), row("b", "other", text="fourteen")]
    metrics = judge(domains=["rule", "other"], reward={"sum": ["rule", "other"]}).judge(0, rows).metrics
    assert (metrics["metric/rule/seen"], metrics["metric/other/seen"]) == (4.0, 8.0)


def test_a_stage_without_a_composition_stores_no_components(judge: Make) -> None:
    judged = judge().judge(0, [row("a", rule=1), row("a", rule=0)])
    assert "components" not in judged.rows[0] and not [key for key in judged.metrics if "component" in key]


def test_the_smallest_weighted_reward_counts_where_the_stage_says_min(judge: Make) -> None:
    rule = {"min": ["rule", "other"], "weights": {"other": 0.5}}
    judged = judge(reward=rule).judge(0, [row("a", rule=1, other=1), row("a", rule=0.2, other=1)])
    assert column(judged, "reward") == [0.5, 0.2]


def test_scorers_beside_judge_tasks_of_every_domain_of_the_stage(judge: Make) -> None:
    rows = [row("a", rule=1, other=0.5), row("b", "other", rule=0, other=0.25)]
    judged = judge(domains=["rule", "other"], reward={"sum": ["rule", "other"]}).judge(0, rows)
    assert column(judged, "reward") == [1.5, 0.25]
    assert [score["value"] for score in column(judged, "score")] == [1.0, 0.25]


def test_a_limit_of_a_scorer_is_a_verdict_of_0(judge: Make) -> None:
    judged = judge(reward={"sum": ["rule", "other"]}).judge(
        0, [row("a", rule=1, other="spin"), row("a", rule=1, other=1)]
    )
    assert column(judged, "reward") == [1.0, 2.0] and column(judged, "masked") == ["", ""]
    assert judged.rows[0]["components"]["other"]["note"].startswith("limit")


def test_a_scorer_whose_group_rewards_fail_masks_what_needs_it(judge: Make) -> None:
    rows = [row("a", text="right"), row("a", text="right")]
    judged = judge(reward={"sum": ["rule", "broken"]}).judge(0, rows)
    assert column(judged, "masked") == ["error", "error"] and judged.metrics["value_mean"] == 1.0
    assert "rewards of a group" in judged.rows[0]["components"]["broken"]["error"]


def test_failures_of_a_scorer_beside_stop_the_stage_under_its_own_name(judge: Make) -> None:
    rows = [row("a", rule=1, preference=None) for _ in range(20)]
    with pytest.raises(TooManyFailures, match="20 of the last 20 samples of domain 'preference'"):
        judge(max_error_rate=0.5, reward=PAPER).judge(0, rows)


def test_a_kill_does_not_reset_the_failures_of_a_scorer_beside(judge: Make) -> None:
    def rows(said: float | None) -> list[dict[str, Any]]:
        return [row(f"{n}", rule=1, preference=said if n % 2 else 1.0) for n in range(260)]

    judge(max_error_rate=0.9, reward=PAPER).judge(0, rows(None))
    with pytest.raises(TooManyFailures, match="130 of the last 520 samples of domain 'preference'"):
        judge(max_error_rate=0.2, reward=PAPER).judge(1, rows(1.0))


def test_rows_that_were_handed_over_get_the_same_rewards(judge: Make) -> None:
    rows = [row(g, rule=n % 2, preference=n, mixed=int(n != 3)) for g in "ab" for n in range(G)]
    stage = {"reward": PAPER, "code_switch": {"below_batch": 10, "parts": "answer"}}
    at_once = judge(**stage).judge(0, rows)
    ahead = judge(**stage)
    for one in reversed(rows):
        ahead.hand_over(one)
    asked = len(ahead._handed)
    assert asked == 3 * len(rows), "each scorer is asked ahead"
    found = ahead.judge(1, rows)
    for name in ("reward", "advantage", "masked", "components"):
        assert column(found, name) == column(at_once, name)


def test_in_rlhf_a_mixed_response_gets_the_smallest_reward_of_the_whole_batch_minus_10(judge: Make) -> None:
    rows = [
        *(row("a", "raw", preference=n, mixed=int(n != 2)) for n in (1, 2, 3)),
        *(row("b", "raw", preference=n, mixed=int(n != -7)) for n in (-7, -6)),
        row("c", "rule", rule=-40),
        row("d", "raw", preference=None),
    ]
    judged = judge(domains=["raw", "rule"], code_switch={"below_batch": 10}).judge(0, rows)
    assert column(judged, "reward") == [1, -17, 3, -17, -6, -40, None]
    assert judged.rows[1]["components"]["code-switch"]["note"] == "mixed says 0"
    assert judged.metrics["code_switch_rate"] == pytest.approx(2 / 7)
    assert [one["value"] for one in column(judged, "score")][:3] == [1.0, 1.0, 1.0], "the verdict is not changed"


@pytest.mark.parametrize("value", [-1, 0])
def test_in_math_and_code_a_mixed_response_is_assigned_its_reward_right_or_wrong(judge: Make, value: int) -> None:
    rows = [row("a", rule=right, mixed=clean) for right in (0, 1) for clean in (0, 1)]
    judged = judge(code_switch={"assign": value}).judge(0, rows)
    assert column(judged, "reward") == [value, 0, value, 1]


def test_code_switch_comes_after_the_composition_and_before_the_length_rule(judge: Make) -> None:
    rows = [
        row("a", rule=1, other=1, mixed=0),
        row("a", rule=1, other=1, mixed=0, truncated=True),
        row("a", rule=1, other=1),
    ]
    stage = {"reward": {"sum": ["rule", "other"]}, "code_switch": {"below_batch": 10}}
    assert column(judge(overlong="zero", **stage).judge(0, rows), "reward") == [-8, 0, 2]
    assert column(judge(overlong="keep", **stage).judge(1, rows), "reward") == [-8, -8, 2]


def test_a_response_that_the_detector_cannot_judge_is_masked_and_counted(judge: Make) -> None:
    rows = [row("a", rule=1, mixed=None), row("a", rule=1), row("a", rule=0)]
    judged = judge(code_switch={"assign": -1}).judge(0, rows)
    assert column(judged, "reward") == [None, 1, 0] and column(judged, "masked") == ["error", "", ""]
    assert judged.metrics["component/code-switch/failed"] == 1 and judged.metrics["code_switch_rate"] == 0.0


@pytest.mark.parametrize(("parts", "found"), [("all", [0, 0, 0]), ("answer", [1, 0, 0])])
def test_the_stage_says_whether_thoughts_are_looked_at(judge: Make, parts: str, found: list[int]) -> None:
    texts = ["<think>mixed</think>rule", "<think>so</think>rule mixed", "<think>mixed without an end"]
    judged = judge(code_switch={"assign": -1, "parts": parts}).judge(0, [row("a", text=text) for text in texts])
    assert [one["code-switch"]["value"] for one in column(judged, "components")] == found


DOCUMENT = Path(__file__).parents[1] / "docs/rewards.md"
EXAMPLE = re.compile(r"^```yaml\n((?:(?!```).*\n)+)```\n\n((?:\|.*\n)+)", re.MULTILINE)
EXAMPLES = EXAMPLE.findall(DOCUMENT.read_text("utf-8"))


def told(cell: str) -> float | None:
    return None if cell == "not judged" else float(cell)


@pytest.mark.parametrize(("spec", "table"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_document_come_true(scorer: Scorer, spec: str, table: str) -> None:
    (stage,) = parse(spec, "rewards.md").data["stages"]
    head, _, *lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    rows, expected = [], [dict(zip(head, line, strict=True)) for line in lines]
    for line in expected:
        parts = {name.strip("`"): told(cell) for name, cell in line.items() if re.fullmatch(r"`[^`]+`", name)}
        # The detector's key in the stand-in is another word.
        rows.append(row("one", stage["domains"], **{"mixed": parts.pop("code-switch", 1.0), **parts}))
    judged = Judge(scorer, Stage.model_validate({**stage, "overlong": "keep"}), 0, None, 1.0).judge(0, rows)
    for line, found in zip(expected, judged.rows, strict=True):
        reward = told(line["reward"]) if line["reward"] != "masked" else None
        assert found["reward"] == (None if reward is None else pytest.approx(reward, abs=0.005)), line
        for name, cell in line.items():
            if name.endswith(" as trained"):
                part = found["components"][name.removesuffix(" as trained").strip("`")]
                assert part["trained"] == pytest.approx(told(cell), abs=0.005), line


def test_the_document_has_the_papers_rules() -> None:
    text = " ".join(spec for spec, _ in EXAMPLES)
    rules = ("gate: if, sum: [if, preference]", "below_batch: 10", "assign: -1", "assign: 0", "min: [")
    assert [rule for rule in rules if rule not in text] == []


def test_a_sample_that_its_engine_gave_up_is_masked_and_counts_for_every_scorer(judge: Make) -> None:
    missing = {**row("a"), "response": None}
    stage = {"reward": PAPER, "code_switch": {"assign": -1, "parts": "answer"}}
    judged = judge(**stage).judge(0, [missing, row("a", rule=1, preference=1)])
    assert column(judged, "masked") == ["error", ""] and judged.rows[1]["reward"] == 1.5
    assert {name: set(part) for name, part in judged.rows[0]["components"].items()} == {
        "rule": {"error"},
        "preference": {"error"},
        "code-switch": {"error"},
    }


def test_a_composed_reward_that_leaves_the_range_masks_its_sample(judge: Make) -> None:
    rows = [row("a", rule=9e99, other=9e99), row("a", rule=1, other=1)]
    judged = judge(reward={"sum": ["rule", "other"], "weights": {"rule": 1e6}}).judge(0, rows)
    assert column(judged, "masked") == ["error", ""] and column(judged, "advantage") == [0.0, 0.0]
    assert "is out of range (allowed: up to 1e100 in size)" in judged.rows[0]["score"]["error"]


def test_the_service_of_the_trainer_openrlhf_gives_the_rewards_of_the_judge(tmp_path: Path, judge: Make) -> None:
    stage = {**STAGE, "reward": {"gate": "faulty", "sum": ["faulty", "batchwise"]}}
    with served(rollouts=rollouts(tmp_path / "served", **stage)) as service:
        told = step(service, draw(service, 0))
    sent = list(read(tmp_path / "served/rollouts/step-00000.jsonl"))
    assert [row["reward"] for row in sent] == [2.0, 0.0] * SLOTS
    found = judge(**stage, advantage={"std": "sample"}).judge(0, [_sampled(row) for row in sent])
    for name in ("reward", "advantage", "components"):
        assert column(found, name) == [row[name] for row in sent]
    assert {answer["extra_logs"]["cascade_reward"] for _, answer in told.values()} == {2.0, 0.0}


def _sampled(row: dict[str, Any]) -> dict[str, Any]:
    made = ("score", "reward", "advantage", "masked", "components", "step")
    return {name: value for name, value in row.items() if name not in made}
