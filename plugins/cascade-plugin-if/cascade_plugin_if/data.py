"""Tasks from files and hub data sets in the public format of IFEval.

A row has `prompt` (text) or `messages` (a chat, or its first turns), `instruction_id_list` and `kwargs`, and at best
`key`. `kwargs` is a list as long as the ids, of objects in which unused arguments are null; a null entry and JSON text
are understood too. What a source may be: `cascade_core.sources`.

Rows are taken as they are: an unknown instruction or a missing argument is found when the task is scored, and is an
error of that task. A row without a prompt or without instructions stops the loading, with file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core import Task, sources
from cascade_core.domain import Message
from cascade_core.errors import UsageError
from cascade_core.sources import OnBadRow


def tasks(data: str, eval_data: str, split: str, on_bad_row: OnBadRow = "fail") -> Iterator[Task]:
    """Tasks of a split, in the order of the file, each prompt once.

    With `eval_data` the test split is all of it, and its prompts are left out of training; without, one prompt in five
    of `data` is held out.

    Raises:
        UsageError: a file is missing, or (unless bad rows are skipped) a row has no prompt or instructions.
    """
    if split == "test" and eval_data:
        yield from load(eval_data, on_bad_row)
        return
    held_out = {_text(task) for task in load(eval_data, on_bad_row)} if eval_data else None
    for task in load(data, on_bad_row):
        out = sources.is_held_out(_text(task)) if held_out is None else _text(task) in held_out
        if out == (split == "test"):
            yield task


def load(source: str, on_bad_row: OnBadRow = "fail") -> Iterator[Task]:
    """Every task of a source; a prompt that comes again is left out, a key that comes again is made distinct."""
    seen: set[str] = set()
    ids: set[str] = set()
    for task in sources.load(source, partial(_task, source=source), on_bad_row):
        text = _text(task)
        if text in seen:
            continue
        seen.add(text)
        if task.id in ids:
            task = Task(f"{task.id}-{sources.digest(text)}", task.prompt, task.answer, source=task.source)
        ids.add(task.id)
        yield task


def _task(row: Mapping[str, Any], where: str, source: str) -> Task:
    prompt = _prompt(row, where)
    for name in ("instruction_id_list", "kwargs"):
        if row.get(name) is None:
            raise UsageError(f"{where}: a row needs 'instruction_id_list' and 'kwargs', found {_keys(row)}")
    answer = {"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"]}
    if isinstance(row.get("reference"), str):
        answer["reference"] = row["reference"]
    key = row.get("key", row.get("id"))
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    return Task(str(key) if key is not None else sources.digest(text), prompt, answer, source=Path(source).stem)


def _prompt(row: Mapping[str, Any], where: str) -> str | list[Message]:
    """The prompt: text, or the turns before the answer."""
    found = row.get("prompt") or row.get("messages")
    if isinstance(found, str) and found.strip():
        return found
    if isinstance(found, list) and all(isinstance(turn, Mapping) and _is_turn(turn) for turn in found):
        turns = [Message(role=turn["role"], content=turn["content"]) for turn in found]
        while turns and turns[-1]["role"] == "assistant":
            turns.pop()
        if turns:
            return turns
    raise UsageError(f"{where}: a row needs a text 'prompt' or chat 'messages', found {_keys(row)}")


def _is_turn(turn: Mapping[str, Any]) -> bool:
    return isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)


def _keys(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!r}" for name, value in row.items() if value is not None)[:120] or "nothing"


def _text(task: Task) -> str:
    return task.prompt if isinstance(task.prompt, str) else json.dumps(task.prompt)
