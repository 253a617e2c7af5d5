"""The format of this package: `prompt`, `answer`, and where known `id`, `source` and `solution`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import TaskError
from cascade_core.sources import digest
from cascade_plugin_code import reading
from cascade_plugin_code.problems import Problem


def problem(row: Mapping[str, Any], source: str) -> Problem:
    """The problem of a row.

    Raises:
        TaskError, ValueError: it is none.
    """
    text, turns = prompt(row.get("prompt"))
    answer: Any = row.get("answer")
    answer = json.loads(answer) if isinstance(answer, str) else answer
    if not isinstance(answer, Mapping):
        raise TaskError(f"the answer must be an object with 'kind' and its tests, found {reading.shown(answer)}")
    solution = row.get("solution")
    return Problem(
        id=digest(text) if row.get("id") is None else str(row["id"]),
        text=text,
        answer=dict(answer),
        source=str(row.get("source") or source),
        turns=turns,
        solution=solution if isinstance(solution, str) else "",
    )


def prompt(value: Any) -> tuple[str, tuple[Message, ...]]:
    """The statement, and the turns it came in.

    Raises:
        TaskError: neither a text nor a chat.
    """
    if isinstance(value, str) and value.strip():
        return value, ()
    if isinstance(value, list) and value and all(_is_turn(turn) for turn in value) and value[-1]["role"] == "user":
        turns = tuple(Message(role=turn["role"], content=turn["content"]) for turn in value)
        return turns[-1]["content"], turns
    raise TaskError(f"'prompt' must be a text or a chat that ends with a user's turn, found {str(value)[:60]!r}")


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
