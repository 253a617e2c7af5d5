"""Problems from JSONL and Parquet files and from data sets of a hub, with configurable field names.

What a source may be: `cascade_core.sources`. Fields that are not named are looked for under their usual names. A row without a problem
or an answer stops the loading with file and line; a label that cannot be read is found when it is scored, and is an
error of that task alone. A problem that comes again is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import UsageError
from cascade_core.sources import OnBadRow, digest, load
from cascade_plugin_math.problems import Problem

PROMPTS = ("problem", "question", "prompt", "messages", "input")
ANSWERS = ("expected_answer", "final_answer", "answer", "label", "ground_truth", "target", "solution")
IDS = ("id", "key", "uuid", "unique_id", "problem_id")
_GSM8K = "####"


@dataclass(frozen=True)
class Fields:
    """Names of the fields, and what becomes of a row without them; `""` stands for the first of the usual names that a row has."""

    prompt: str = ""
    answer: str = ""
    id: str = ""
    response: str = ""
    on_bad_row: OnBadRow = "fail"


def problems(sources: Sequence[str], fields: Fields) -> Iterator[Problem]:
    """The problems of all sources, in order, each text once.

    Raises:
        UsageError: a source cannot be opened, or (unless bad rows are skipped) a row has no problem or no answer.
    """
    texts: set[str] = set()
    ids: set[str] = set()
    for source in sources:
        for problem in load(source, partial(_problem, fields=fields, source=source), fields.on_bad_row):
            if problem.text in texts:
                continue
            texts.add(problem.text)
            if problem.id in ids:
                problem = Problem(**{**problem.__dict__, "id": f"{problem.id}-{digest(problem.text)}"})
            ids.add(problem.id)
            yield problem


def _problem(row: Mapping[str, Any], where: str, fields: Fields, source: str) -> Problem:
    prompt = _field(row, fields.prompt, PROMPTS, "prompt_field", where)
    text, turns = _prompt(prompt, where)
    answer = _answer(_field(row, fields.answer, ANSWERS, "answer_field", where))
    key = row.get(fields.id) if fields.id else next((row[name] for name in IDS if row.get(name) is not None), None)
    policy = row.get("policy")
    if isinstance(policy, Mapping):
        answer = {"label": answer, **policy}
    response = row.get(fields.response) if fields.response else None
    return Problem(
        id=digest(text) if key is None else str(key),
        text=text,
        answer=answer,
        source=str(row.get("source") or Path(source).stem),
        turns=turns,
        response=response if isinstance(response, str) else "",
    )


def _field(row: Mapping[str, Any], name: str, usual: Sequence[str], option: str, where: str) -> Any:
    if name:
        if row.get(name) is None:
            raise UsageError(f"{where}: no field {name!r} ({option}), found {_keys(row)}")
        return row[name]
    for candidate in usual:
        if row.get(candidate) is not None:
            return row[candidate]
    raise UsageError(f"{where}: none of the fields {', '.join(usual)}; set {option!r}, found {_keys(row)}")


def _keys(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name!r}" for name, value in row.items() if value is not None)[:160] or "nothing"


def _prompt(prompt: Any, where: str) -> tuple[str, tuple[Message, ...]]:
    """The question, and the turns it came in; the turns end with the user's last."""
    if isinstance(prompt, str) and prompt.strip():
        return prompt, ()
    if isinstance(prompt, list):
        turns = [Message(role=str(turn["role"]), content=str(turn["content"])) for turn in prompt if _is_turn(turn)]
        while turns and turns[-1]["role"] != "user":
            turns.pop()
        if turns:
            return turns[-1]["content"], tuple(turns)
    raise UsageError(f"{where}: a problem must be a text or a chat with a user's turn, found {str(prompt)[:60]!r}")


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)


def _answer(answer: Any) -> Any:
    """The label; of a worked solution that ends with `#### 42` what follows the mark."""
    if isinstance(answer, str) and _GSM8K in answer:
        return answer.rpartition(_GSM8K)[2].strip()
    if isinstance(answer, list) and len(answer) == 1:
        return answer[0]
    return answer
