"""What the domain says of a verdict: every instruction with its arguments and both readings, as the score counts them."""

from __future__ import annotations

import json

import pytest
from cascade_plugin_if.domain import IFDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError

TASK = Task(
    "t",
    "a prompt",
    {
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
        "kwargs": [None, {"keywords": ["rain"]}],
    },
)


def test_each_instruction_is_told_with_its_arguments_and_both_readings() -> None:
    found = IFDomain().explain(TASK, Response("Sure, here it is:\nrain and snow"))
    comma, keyword = found["instructions"]
    assert (comma["id"], comma["strict"], comma["loose"], comma["arguments"]) == (
        "punctuation:no_comma",
        False,
        True,
        {},
    )
    assert (keyword["strict"], keyword["arguments"]) == (True, {"keywords": ["rain"]})
    assert "rain" in keyword["says"]
    assert found["rule"] == "an instruction is not followed strictly: punctuation:no_comma"
    assert (found["words"], found["lines"]) == (7, 2)


@pytest.mark.parametrize("text", ["rain", "rain, snow", "", "<think>rain", "<think>a,b</think>rain"])
def test_the_explanation_counts_as_the_score_does(text: str) -> None:
    found, score = IFDomain().explain(TASK, Response(text)), IFDomain().score(TASK, Response(text))
    strict = [one["strict"] for one in found["instructions"]]
    assert float(all(strict)) == score.value
    assert sum(strict) / len(strict) == score.metrics["instruction_strict"]
    assert all(one["loose"] for one in found["instructions"]) == bool(score.metrics["prompt_loose"])


def test_a_megabyte_is_shown_by_its_beginning() -> None:
    found = IFDomain().explain(TASK, Response("rain " * 200_000))
    assert len(json.dumps(found)) < 3_000 and "characters)" in found["read"]


def test_an_unfinished_thought_is_said() -> None:
    assert IFDomain().explain(TASK, Response("<think>rain"))["rule"] == "no answer: the thought is not finished"


def test_an_unknown_instruction_is_an_error_of_the_task() -> None:
    task = Task("t", "p", {"instruction_id_list": ["punctuation:no_coma"], "kwargs": [{}]})
    with pytest.raises(TaskError, match="no_coma"):
        IFDomain().explain(task, Response("x"))
