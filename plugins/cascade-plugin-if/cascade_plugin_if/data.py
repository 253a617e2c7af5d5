"""Tasks from files and hub data sets in the public formats of IFEval, of IFBench, and of its training set IF-RLVR.

A row has `prompt` (text) or `messages` (a chat, or its first turns), `instruction_id_list` and `kwargs`, and at best
`key`. `kwargs` is a list as long as the ids, of objects in which unused arguments are null; a null entry and JSON text
are understood too. IF-RLVR (`allenai/IF_multi_constraints_upto5`) says the same in one text, `ground_truth`: a Python or JSON list
with one object of `instruction_id` and `kwargs`. What a source may be: `cascade_core.sources`.

Rows are taken as they are: an unknown instruction or a missing argument is found when the task is scored, and is an
error of that task. A row without a prompt or without instructions stops the loading, with file and line; so does a
row to train on that asks for an instruction of IFBench, which is for evaluation only.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core import Task, sources
from cascade_core.domain import Message
from cascade_core.errors import UsageError
from cascade_core.sources import OnBadRow
from cascade_plugin_if.registry import EVALUATION

_LONGEST_TRUTH = 1_000_000  # characters of a `ground_truth` that are read


def tasks(
    data: str, eval_data: str, split: str, on_bad_row: OnBadRow = "fail", ifbench_data: str = ""
) -> Iterator[Task]:
    """Tasks of a split, in the order of the file, each prompt once; the split `ifbench` is all of `ifbench_data`.

    With `eval_data` the test split is all of it, and its prompts are left out of training; without, one prompt in five
    of `data` is held out. The prompts of `ifbench_data` are in neither.

    Raises:
        UsageError: a file is missing, or (unless bad rows are skipped) a row has no prompt or instructions, or a row of
            `data` asks for what is for evaluation only.
    """
    if split != "train" and (source := {"test": eval_data, "ifbench": ifbench_data}[split]):
        yield from load(source, on_bad_row)
        return
    held_out = {_text(task) for task in load(eval_data, on_bad_row)} if eval_data else None
    benchmark = {_text(task) for task in load(ifbench_data, on_bad_row)} if ifbench_data else set()
    for task in load(data, on_bad_row, to_train=True):
        out = sources.is_held_out(_text(task)) if held_out is None else _text(task) in held_out
        if out == (split == "test") and _text(task) not in benchmark:
            yield task


def load(source: str, on_bad_row: OnBadRow = "fail", to_train: bool = False) -> Iterator[Task]:
    """Every task of a source; a prompt that comes again is left out, a key that comes again is made distinct."""
    seen: set[str] = set()
    ids: set[str] = set()
    for task in sources.load(source, partial(_task, source=source, to_train=to_train), on_bad_row):
        text = _text(task)
        if text in seen:
            continue
        seen.add(text)
        if task.id in ids:
            task = Task(f"{task.id}-{sources.digest(text)}", task.prompt, task.answer, source=task.source)
        ids.add(task.id)
        yield task


def _task(row: Mapping[str, Any], where: str, source: str, to_train: bool) -> Task:
    prompt = _prompt(row, where)
    answer = _instructions(row, where)
    if to_train:
        _refuse_evaluation(answer["instruction_id_list"], where)
    if isinstance(row.get("reference"), str):
        answer["reference"] = row["reference"]
    key = row.get("key", row.get("id"))
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    return Task(str(key) if key is not None else sources.digest(text), prompt, answer, source=Path(source).stem)


def _instructions(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The ids and arguments of a row, in IFEval's form."""
    truth = row.get("ground_truth")
    if truth is not None and row.get("instruction_id_list") is None:
        found = _truth(truth, where)
        return {"instruction_id_list": found["instruction_id"], "kwargs": found["kwargs"]}
    for name in ("instruction_id_list", "kwargs"):
        if row.get(name) is None:
            raise UsageError(f"{where}: a row needs 'instruction_id_list' and 'kwargs', found {_keys(row)}")
    return {"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"]}


def _truth(truth: Any, where: str) -> Mapping[str, Any]:
    """The one object of a `ground_truth` of IF-RLVR."""
    found = _literal(truth, where) if isinstance(truth, str) else truth
    if isinstance(found, list | tuple) and len(found) == 1:
        found = _literal(found[0], where) if isinstance(found[0], str) else found[0]
    if isinstance(found, Mapping) and all(found.get(name) is not None for name in ("instruction_id", "kwargs")):
        return found
    raise UsageError(
        f"{where}: 'ground_truth' must be one object with 'instruction_id' and 'kwargs', found {str(truth)[:80]!r}"
    )


def _literal(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text if len(text) <= _LONGEST_TRUTH else "")
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise UsageError(f"{where}: 'ground_truth' is neither JSON nor a Python literal, found {text[:80]!r}") from None


def _refuse_evaluation(names: Any, where: str) -> None:
    if isinstance(names, str):
        try:
            names = json.loads(names)
        except (ValueError, RecursionError):
            return  # found when the task is scored, as any other list that is none
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str) and name in EVALUATION:
            raise UsageError(
                f"{where}: a row to train on asks for {name!r}, which is for evaluation only, as all of IFBench"
            )


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
