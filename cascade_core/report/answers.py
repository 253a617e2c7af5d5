"""The rows of evaluations, read once and bounded: which task got which value in which stage, and where its row lies.

`read` keeps a task's values and the place of each row in the file, never its text; `AnswerFile.row` fetches the few rows
that are shown. Of a file larger than its share of `READ_BYTES` only the beginning is read (`is_whole` is then false), so
that a report of a large run costs no more than one of a middling run. Damaged lines are counted and left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cascade_core.estimates import Paired, paired
from cascade_core.report.record import StageRecord, count, mapping, number

READ_BYTES = 256 << 20
"""Bytes of evaluation rows that one report reads, all files together; each may have at least `LEAST_BYTES`."""
LEAST_BYTES = 1 << 20


@dataclass(frozen=True)
class Sampled:
    """One judged sample: its number, its value (`None`: could not be judged), and where its row begins."""

    sample: int
    value: float | None
    offset: int


@dataclass(frozen=True)
class AnswerFile:
    """The samples of one benchmark after one stage, by task id, in the order of the file."""

    path: Path
    tasks: Mapping[str, tuple[Sampled, ...]] = field(default_factory=dict)
    is_whole: bool = True
    damaged: int = 0

    @cached_property
    def means(self) -> Mapping[str, float]:
        """The mean value of every task that has a judged sample."""
        judged = {task: [one.value for one in samples if one.value is not None] for task, samples in self.tasks.items()}
        return {task: math.fsum(values) / len(values) for task, values in judged.items() if values}

    def row(self, sampled: Sampled) -> Mapping[str, Any]:
        """The whole row of one sample; empty if the file has changed meanwhile."""
        try:
            with self.path.open("rb") as rows:
                rows.seek(sampled.offset)
                return mapping(json.loads(rows.readline()))
        except (OSError, ValueError):
            return {}


Answers = Mapping[tuple[str, str], AnswerFile]
"""Stage id and benchmark (`domain/name`) to what was answered."""


def read_all(stages: Iterable[StageRecord]) -> dict[tuple[str, str], AnswerFile]:
    """Every evaluation file of the stages."""
    found = {}
    for stage in stages:
        base = stage.folder.path / "eval"
        for path in sorted(base.rglob("*.jsonl")) if base.is_dir() else ():
            found[stage.id, path.relative_to(base).with_suffix("").as_posix()] = path
    share = max(LEAST_BYTES, READ_BYTES // max(1, len(found)))
    return {key: read(path, share) for key, path in found.items()}


def read(path: Path, limit: int) -> AnswerFile:
    """At most the first `limit` bytes of an evaluation file."""
    tasks: dict[str, list[Sampled]] = {}
    damaged = offset = 0
    with path.open("rb") as rows:
        while line := rows.readline(max(0, limit - offset)):
            if offset + len(line) >= limit and not line.endswith(b"\n"):
                break
            task, sampled = _sampled(line, offset)
            if sampled is not None:
                tasks.setdefault(task, []).append(sampled)
            elif line.strip():
                damaged += 1
            offset += len(line)
        is_whole = offset >= path.stat().st_size
    return AnswerFile(path, {task: tuple(samples) for task, samples in tasks.items()}, is_whole, damaged)


def _sampled(line: bytes, offset: int) -> tuple[str, Sampled | None]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "", None
    score = mapping(row.get("score")) if isinstance(row, dict) else {}
    value = number(score.get("value"))
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or value is None or not 0 <= value <= 1:
        return "", None
    return row["id"], Sampled(count(row.get("sample")), None if score.get("error") else value, offset)


def change(before: AnswerFile | None, after: AnswerFile | None) -> Paired | None:
    """The paired difference of two files; `None` where one is absent, was read in part, or they share no task."""
    if before is None or after is None or not (before.is_whole and after.is_whole):
        return None
    return paired(_rows(before), _rows(after))


def _rows(answers: AnswerFile) -> list[dict[str, Any]]:
    # One row a task holds all that the paired difference uses: it is a mean over tasks of their mean values.
    return [{"id": task, "score": {"value": value}} for task, value in answers.means.items()]
