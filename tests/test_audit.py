"""`audit`: right answers, hostile answers, sameness, time and memory of a domain's verdicts, measured on good and bad domains."""

import json
from dataclasses import replace

import pytest
from faulty import importable

from cascade_core.audit import Audit, audit
from cascade_core.errors import PluginBroken, UsageError
from cascade_core.hostile import HOSTILE, WORTHLESS, all_labels
from cascade_core.plugins import registry


@pytest.fixture(scope="module", autouse=True)
def installed():
    with importable():
        yield


def tidy(fault: str = "", **more) -> Audit:
    return audit(registry().reference("tidy", {"fault": fault, "size": 3}), tasks=2, **more)


def rates(found: Audit) -> dict[str, float]:
    return {rate.kind: rate.passed / rate.total for rate in found.hostile}


@pytest.fixture(scope="module")
def math(installed) -> Audit:
    return audit(registry().reference("math"), tasks=20)


def test_the_mathematics_of_this_checkout_is_beyond_reproach(math: Audit) -> None:
    assert (math.troubles, math.status) == ([], 0)
    assert math.gold.passed == math.gold.total == 40
    assert set(rates(math)) == {*WORTHLESS, *HOSTILE, "many references at once"}
    assert set(rates(math).values()) == {0.0}


def test_time_and_memory_are_measured_in_the_scoring_process(math: Audit) -> None:
    for times in (math.wall, math.cpu, math.hostile_wall):
        assert 0 < times.p50 <= times.p95 <= times.p99 <= times.longest < 10
    assert math.wall.count == 80 and math.held_mib > 1 and abs(math.growth_mib) < 100


def test_all_of_it_is_json(math: Audit) -> None:
    found = json.loads(json.dumps(math.json(), allow_nan=False))
    assert found["status"] == 0 and found["domain"]["distribution"] == "cascade-plugin-math"


def test_texts_that_obey_an_instruction_by_luck_need_leave_to_pass() -> None:
    ref = registry().reference("if")
    strict = audit(ref, tasks=3)
    lenient = replace(strict, max_hostile=0.9)
    assert strict.gold.passed == strict.gold.total == 6
    assert any("the prompt itself scores 1.0" in trouble for trouble in strict.troubles)
    assert (lenient.status, lenient.troubles) == (0, [])


@pytest.mark.parametrize(
    ("fault", "trouble"),
    [
        ("reference", "4 of 4 references do not score 1.0"),
        ("", "many references at once scores 1.0 for 4 of 4 tasks"),
        ("blank", "an empty answer scores 1.0 for 4 of 4 tasks"),
        ("echo", "the prompt itself scores 1.0 for 4 of 4 tasks"),
        ("length", "a megabyte scores 1.0 for 4 of 4 tasks"),
        ("surrogates", "lone surrogates cannot be judged for 4 of 4 tasks"),
        ("chance", "answers do not get the same score every time"),
    ],
)
def test_what_is_wrong_is_counted_and_told(fault: str, trouble: str) -> None:
    found = tidy(fault)
    assert any(trouble in told for told in found.troubles), found.troubles
    assert found.status == 1


def test_leave_for_hostile_answers_is_none_for_worthless_ones() -> None:
    assert tidy("echo", max_hostile=1.0).troubles == []
    assert len(tidy("blank", max_hostile=1.0).troubles) == len(WORTHLESS) == 3


def test_a_wrong_reference_is_shown_with_its_task() -> None:
    assert tidy("reference").gold.examples[0] == "train0: 'sdrawkcab' scores 0"


def test_a_domain_without_references_has_no_gold_and_no_trouble_for_it() -> None:
    found = tidy("no reference")
    assert (found.gold.total, found.status) == (0, 0)


def test_a_split_without_tasks_leaves_the_other(tmp_path) -> None:
    data = tmp_path / "eval.jsonl"
    data.write_text("".join(json.dumps({"problem": f"What is {n}?", "answer": str(n)}) + "\n" for n in range(5)))
    found = audit(registry().reference("math", {"eval_data": str(data)}), tasks=3)
    assert found.tasks == {"test": 3} and "only 'eval_data'" in found.absent["train"] and found.status == 0


def test_a_label_that_does_not_parse_is_found(tmp_path) -> None:
    data = tmp_path / "eval.jsonl"
    data.write_text(json.dumps({"problem": "What?", "answer": "\\frac{1}{"}) + "\n")
    found = audit(registry().reference("math", {"eval_data": str(data)}))
    assert found.gold.failed == 1 and "1 of 1 references do not score 1.0" in found.troubles


def test_a_domain_without_tasks_or_with_impossible_references_is_refused() -> None:
    with pytest.raises(PluginBroken, match="the reference of task 'train0' must be text, found int"):
        tidy("reference type")
    with pytest.raises(UsageError, match="domain 'tidy' has no tasks: both splits are empty"):
        audit(registry().reference("tidy", {"fault": "no train", "size": 0}))


def test_a_limit_is_counted_and_does_not_pass(math: Audit) -> None:
    (rate,) = (rate for rate in math.hostile if rate.kind == "a tower of powers")
    assert (rate.limit, rate.passed, rate.failed) == (40, 0, 0)


def test_the_right_answer_stands_amid_others() -> None:
    assert all_labels("b", ["a", "b", "c", "a"]) == "a\nb\nc"
    assert all_labels("b", ["b", "b", "a"]) is None
