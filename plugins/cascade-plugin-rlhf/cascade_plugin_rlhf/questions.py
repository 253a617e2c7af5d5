"""Prompts from files and hub data sets, with the answers that a policy is compared with where there are any.

A row is a preference of any known format (`pair_formats.py`; its better side is the reference), or has a prompt, and may have a
reference, under their usual names or those that the options say. ArenaHard's questions and answers are two files, joined by
their ids: `question_id` and `turns` in version 0.1, `uid` and `prompt` in 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.domain import Task
from cascade_core.errors import UsageError
from cascade_core.nearest import suggestion
from cascade_core.sources import OnBadRow, digest, load
from cascade_plugin_rlhf.pair_formats import FORMATS, as_prompt, preference
from cascade_plugin_rlhf.pairs import REFERENCE, text_of

PROMPTS = ("prompt", "question", "messages", "context", "turns", "instruction", "input", "problem")
REFERENCES = ("reference", "reference_answer", "reference_response")
IDS = ("id", "uid", "question_id", "prompt_id", "key")
JUDGED = "judged"
"""The key of a task's meta that says: not the reward model decides, but the judge, against the reference."""


@dataclass(frozen=True)
class Fields:
    """Names of the columns, and what becomes of a row without them; `""` stands for the first of the usual names that a row has."""

    prompt: str = ""
    reference: str = ""
    on_bad_row: OnBadRow = "fail"


def questions(sources: Sequence[str], fields: Fields) -> Iterator[Task]:
    """The prompts of all sources in order, each text once.

    Raises:
        UsageError: a source cannot be opened, or (unless bad rows are skipped) a row has no prompt.
    """
    texts: set[str] = set()
    ids: set[str] = set()
    for source in sources:
        for task in load(source, partial(_task, fields=fields, source=source), fields.on_bad_row):
            text = text_of(task.prompt)
            if text in texts:
                continue
            texts.add(text)
            if task.id in ids:
                task = Task(**{**task.__dict__, "id": f"{task.id}-{digest(text)}"})
            ids.add(task.id)
            yield task


def _task(row: Mapping[str, Any], where: str, fields: Fields, source: str) -> Task:
    columns = {name for name, value in row.items() if value is not None}
    stem = str(row.get("source") or Path(source).stem)
    if not (fields.prompt or fields.reference) and any(columns.issuperset(needed) for needed in FORMATS.values()):
        found = preference(row, where)
        answer = None if found.tie else {REFERENCE: found.chosen}
        return Task(found.id or digest(text_of(found.prompt)), found.prompt, answer, source=stem, meta=found.task.meta)
    name = _column(columns, fields.prompt, PROMPTS, "prompt_field", where)
    prompt = as_prompt(_turns(row[name]), name, where)
    reference = None
    if fields.reference or any(one in columns for one in REFERENCES):
        name = _column(columns, fields.reference, REFERENCES, "reference_field", where)
        reference = row[name]
        if not isinstance(reference, str) or not reference.strip():
            raise UsageError(f"{where}: {name!r} must be a text that is not empty, found {reference!r:.60}")
    key = next((str(row[name]) for name in IDS if name in columns), "")
    answer = None if reference is None else {REFERENCE: reference}
    return Task(key or digest(text_of(prompt)), prompt, answer, source=stem)


def _column(columns: set[str], name: str, usual: Sequence[str], option: str, where: str) -> str:
    if name and name not in columns:
        raise UsageError(f"{where}: no column {name!r} ({option}){suggestion(name, sorted(columns))}")
    found = name or next((one for one in usual if one in columns), "")
    if not found:
        raise UsageError(
            f"{where}: none of the columns {', '.join(usual)}; set {option!r}, found {', '.join(sorted(columns))[:160] or 'nothing'}"
        )
    return found


def _turns(found: Any) -> Any:
    """A chat as it is asked: without the assistant's last turns, and with roles where ArenaHard 0.1 has none."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        return found
    turns = [turn if not isinstance(turn, Mapping) or "role" in turn else {"role": "user", **turn} for turn in found]
    while len(turns) > 1 and isinstance(turns[-1], Mapping) and turns[-1]["role"] == "assistant":
        turns.pop()
    if len(turns) == 1 and isinstance(turns[0], Mapping) and turns[0]["role"] == "user":
        return turns[0].get("content")
    return turns


def arena(questions_from: str, answers_from: str, fields: Fields) -> Iterator[Task]:
    """ArenaHard's questions, each with the baseline's answer, to be decided by the judge.

    Raises:
        UsageError: a file cannot be read, or a question has no answer.
    """
    answers = dict(load(answers_from, _baseline, fields.on_bad_row)) if answers_from else {}
    for task in questions([questions_from], fields):
        reference = answers.get(task.id) if answers_from else (task.answer or {}).get(REFERENCE)
        if reference is None:
            raise UsageError(
                f"{questions_from}: question {task.id!r} has no answer in {answers_from or 'its row'} to be compared with"
            )
        yield Task(task.id, task.prompt, {REFERENCE: reference}, source=task.source, meta={JUDGED: True})


def _baseline(row: Mapping[str, Any], where: str) -> tuple[str, str]:
    key = next((str(row[name]) for name in ("uid", "question_id") if row.get(name) is not None), "")
    if isinstance(choices := row.get("choices"), Sequence) and choices and isinstance(choices[0], Mapping):
        turns: Any = choices[0].get("turns")
    else:
        turns = row.get("messages")
    last: Any = turns[-1] if isinstance(turns, Sequence) and not isinstance(turns, str) and turns else None
    said = last.get("content") if isinstance(last, Mapping) else None
    said = said.get("answer") if isinstance(said, Mapping) else said
    if not key or not isinstance(said, str):
        raise UsageError(
            f"{where}: no answer of ArenaHard: it needs 'uid' and 'messages', or 'question_id' and 'choices'"
        )
    return key, said
