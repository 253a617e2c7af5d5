"""DeepCoder: `problem` and `tests`, or `prompt` and `ground_truth` as its training files have them.

The tests are JSON text, of an object with `inputs` and `outputs` as in APPS, or of a list of `{input, output}` with a `type` or
`testtype` (`stdin`, `stdin_stdout`, `functional`, `function_call`), where calls name their function in `fn_name` or `metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.formats import apps, fields, livecodebench, own
from cascade_plugin_code.problems import Omitted, Problem


def problem(row: Mapping[str, Any], source: str) -> Problem | Omitted:
    """The problem of a row.

    Raises:
        TaskError, ValueError: it is none.
    """
    text, turns = _statement(row)
    answer = _answer(fields.decoded(_tests(row), "tests"), row)
    omitted = fields.omitted(row, text)
    if omitted is not None:
        return omitted
    known = fields.solutions(row)
    whole = fields.with_starter(text, row)
    return Problem(
        id=fields.identity(row, ("id", "task_id", "uid"), text),
        text=whole,
        answer=answer,
        source=str(row.get("data_source") or row.get("source") or source),
        turns=turns,
        solution=known[0] if known else "",
        others=known[1:],
    )


def _statement(row: Mapping[str, Any]) -> tuple[str, tuple[Message, ...]]:
    if isinstance(row.get("prompt"), list):
        return own.prompt(row["prompt"])
    return fields.statement(row, ("problem", "question", "prompt")), ()


def _tests(row: Mapping[str, Any]) -> Any:
    model = row.get("reward_model")
    for holder, name in ((row, "tests"), (row, "ground_truth"), (model, "ground_truth")):
        if isinstance(holder, Mapping) and holder.get(name) is not None:
            return holder[name]
    raise TaskError("no tests: 'tests' or 'ground_truth' must hold them")


def _answer(tests: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(tests, Mapping):
        return apps.answer_of(tests, row)
    if isinstance(tests, list):
        return livecodebench.answer_of(tests, row)
    raise TaskError(f"the tests must be a list or an object, found {reading.shown(tests)}")
