"""APPS and TACO: `question`, `input_output`, `solutions`, `starter_code`.

`input_output` is JSON text of `{"inputs": […], "outputs": […]}`: texts, or with `fn_name` the arguments of calls and their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.formats import answers, fields
from cascade_plugin_code.problems import Omitted, Problem


def problem(row: Mapping[str, Any], source: str) -> Problem | Omitted:
    """The problem of a row.

    Raises:
        TaskError, ValueError: it is none.
    """
    text = fields.statement(row, ("question", "problem", "description"))
    answer = answer_of(fields.decoded(row.get("input_output"), "input_output"), row)
    omitted = fields.omitted(row, text)
    if omitted is not None:
        return omitted
    known = fields.solutions(row)
    return Problem(
        id=fields.identity(row, ("problem_id", "id", "task_id", "url"), text),
        text=fields.with_starter(text, row),
        answer=answer,
        source=str(row.get("source") or source),
        solution=known[0] if known else "",
        others=known[1:],
        meta={name: str(row[name]) for name in ("difficulty", "url") if row.get(name)},
    )


def answer_of(tests: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `{"inputs": […], "outputs": […], "fn_name": …}`.

    Raises:
        TaskError: there are no tests, or they cannot be read.
    """
    pairs = fields.pairs(tests)
    name = tests.get("fn_name")
    if name in (None, ""):
        return answers.talks(pairs, row.get("checker"))
    if not isinstance(name, str):
        raise TaskError(f"'fn_name' must be a text, found {reading.shown(name)}")
    return answers.calls(name, pairs, row.get("starter_code"))
