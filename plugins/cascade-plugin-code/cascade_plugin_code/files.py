"""Problems from JSONL and Parquet files and from data sets of a hub, in the format of this package.

A row has `prompt` (a text, or a chat that ends with the user's turn), `answer` (as `exam` describes it; JSON text is read), and may
have `id`, `source` and `solution`, a program that passes. What a source may be: `cascade_core.sources`. A row without a prompt, or
with an answer that is broken, stops the loading with file and line, or is left out. A problem that comes again is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import TaskError, UsageError
from cascade_core.sources import OnBadRow, digest, load
from cascade_plugin_code import exam
from cascade_plugin_code.problems import Problem


def problems(sources: Sequence[str], on_bad_row: OnBadRow = "fail") -> Iterator[Problem]:
    """The problems of all sources, in order, each statement once.

    Raises:
        UsageError: a source cannot be opened, or (unless bad rows are skipped) a row is no problem.
    """
    texts: set[str] = set()
    ids: set[str] = set()
    for source in sources:
        for problem in load(source, partial(_problem, source=source), on_bad_row):
            if problem.text in texts:
                continue
            texts.add(problem.text)
            if problem.id in ids:
                problem = Problem(**{**problem.__dict__, "id": f"{problem.id}-{digest(problem.text)}"})
            ids.add(problem.id)
            yield problem


def _problem(row: Mapping[str, Any], where: str, source: str) -> Problem:
    text, turns = _prompt(row.get("prompt"), where)
    answer: Any = row.get("answer")
    try:
        answer = json.loads(answer) if isinstance(answer, str) else answer
        exam.read(answer)
    except (TaskError, ValueError, RecursionError) as cause:
        raise UsageError(f"{where}: {cause}") from cause
    solution = row.get("solution")
    return Problem(
        id=digest(text) if row.get("id") is None else str(row["id"]),
        text=text,
        answer=dict(answer),
        source=str(row.get("source") or Path(source).stem),
        turns=turns,
        solution=solution if isinstance(solution, str) else "",
    )


def _prompt(prompt: Any, where: str) -> tuple[str, tuple[Message, ...]]:
    """The statement, and the turns it came in."""
    if isinstance(prompt, str) and prompt.strip():
        return prompt, ()
    if isinstance(prompt, list) and prompt and all(_is_turn(turn) for turn in prompt) and prompt[-1]["role"] == "user":
        turns = tuple(Message(role=turn["role"], content=turn["content"]) for turn in prompt)
        return turns[-1]["content"], turns
    raise UsageError(
        f"{where}: 'prompt' must be a text or a chat that ends with a user's turn, found {str(prompt)[:60]!r}"
    )


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
