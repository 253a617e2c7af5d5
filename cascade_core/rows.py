"""The one JSON row: prompts file, wire, stored rollouts, input of `cascade score`.

`domain, id, prompt, answer, mode, source` from the start (and `meta` where there is any); `response, prefill,
truncated, tokens, sample, step, request_id` once sampled (and `turns` of a conversation); `score` once graded; `reward, advantage, masked` once trained on.
Unknown fields are carried along untouched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cascade_core.domain import Response, Score, Task
from cascade_core.errors import RowError

Row = dict[str, Any]


def task_row(domain: str, task: Task) -> Row:
    """A task as a row."""
    row: Row = {
        "domain": domain,
        "id": task.id,
        "prompt": task.prompt,
        "answer": task.answer,
        "mode": task.mode,
        "source": task.source,
    }
    return {**row, "meta": dict(task.meta)} if task.meta else row


def row_task(row: Mapping[str, Any]) -> Task:
    """The task that a row carries.

    Raises:
        RowError: `id` or `prompt` is missing or of a wrong type.
    """
    prompt = row.get("prompt")
    if not isinstance(row.get("id"), str) or not isinstance(prompt, str | list):
        raise RowError(f"a row needs a string 'id' and a 'prompt', found {str(dict(row))[:120]}")
    if isinstance(prompt, list) and not all(_is_message(turn) for turn in prompt):
        raise RowError(f"row {row['id']!r} needs messages with text 'role' and 'content', found {str(prompt)[:120]}")
    for name, kind in (("mode", str), ("source", str), ("meta", Mapping)):
        if row.get(name) is not None and not isinstance(row[name], kind):
            raise RowError(f"row {row['id']!r} has a '{name}' that is a {type(row[name]).__name__}")
    return Task(
        row["id"],
        row["prompt"],
        row.get("answer"),
        row.get("mode") or "",
        row.get("source") or "",
        row.get("meta") or {},
    )


def _is_message(turn: Any) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)


def row_response(row: Mapping[str, Any]) -> Response:
    """The response that a row carries.

    Raises:
        RowError: there is none, it is no text, or its earlier turns are no messages.
    """
    if not isinstance(row.get("response"), str):
        raise RowError(f"row {row.get('id')!r} needs a string 'response', found {row.get('response')!r}")
    turns = row.get("turns") or []
    if not isinstance(turns, list) or not all(_is_message(turn) for turn in turns):
        raise RowError(f"row {row.get('id')!r} needs messages as 'turns', found {str(turns)[:120]}")
    more = (row.get("prefill") or "", row.get("mode") or "", bool(row.get("truncated")))
    return Response(row["response"], *more, tuple(turns))


def score_json(score: Score) -> Row:
    """A score as JSON, without what is empty."""
    row: Row = {"value": score.value}
    for key, value in (
        ("reward", score.reward),
        ("note", score.note),
        ("metrics", dict(score.metrics)),
        ("error", score.error),
    ):
        if value not in (None, "", {}):
            row[key] = value
    return row


def json_score(row: Mapping[str, Any]) -> Score:
    """The score that `score_json` wrote."""
    return Score(row["value"], row.get("reward"), row.get("note", ""), row.get("metrics", {}), row.get("error", ""))


def dump(row: Mapping[str, Any]) -> str:
    """One line of JSON, ASCII only, so that lone surrogates and line separators survive every tool."""
    return json.dumps(row, ensure_ascii=True, allow_nan=False, separators=(", ", ": "))


def read(path: Path) -> Iterator[Row]:
    """The rows of a JSONL file.

    Raises:
        RowError: a line is no JSON object, or not UTF-8; names file and line.
    """
    for _, row in numbered(path):
        if isinstance(row, RowError):
            raise row
        yield row


def numbered(path: Path) -> Iterator[tuple[int, Row | RowError]]:
    """The lines of a JSONL file that are not blank, by their numbers: each a row, or what is wrong with it."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _parsed(line, f"{path}:{number}")


def _parsed(line: bytes, where: str) -> Row | RowError:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as cause:
        return RowError(f"{where}: not UTF-8: {cause.reason}")
    except (ValueError, RecursionError) as cause:
        return RowError(f"{where}: not a JSON object: {cause}")
    return row if isinstance(row, dict) else RowError(f"{where}: not a JSON object, found {type(row).__name__}")


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file whole or not at all: under another name, flushed to disk, then renamed."""
    write_text(path, "".join(dump(row) + "\n" for row in rows))


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    part.replace(path)


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n")
