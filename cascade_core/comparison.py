"""Two evaluations side by side, for `cascade compare`: paired differences on the tasks that both judged.

An evaluation is an output folder of `cascade eval`, the folder of one stage of a run, or one file of judged rows. A task
is the same in both if its domain, id, prompt and answer are; the others are left out and counted, never averaged in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_core.errors import RowError, UsageError
from cascade_core.estimates import Paired, mean, paired
from cascade_core.rows import Row, read

Rows = list[Row]
_Task = tuple[str, str]


@dataclass(frozen=True)
class Difference:
    """One benchmark of both: the mean values on the shared tasks, their paired difference, and what was left out.

    Attributes:
        only_before, only_after: tasks that the other has not.
        changed: tasks of one id whose prompt or answer is not the same in both.
        failed: tasks of both that could not be judged in one of them.
    """

    benchmark: str
    before: float
    after: float
    change: Paired
    only_before: int = 0
    only_after: int = 0
    changed: int = 0
    failed: int = 0

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        told = {"difference": self.change.difference, "stderr": self.change.stderr, "tasks": self.change.n}
        return {
            "before": self.before,
            "after": self.after,
            **told,
            "low": self.change.low,
            "high": self.change.high,
            "only_before": self.only_before,
            "only_after": self.only_after,
            "changed": self.changed,
            "failed": self.failed,
        }


@dataclass(frozen=True)
class Comparison:
    """The differences by benchmark, and in `warnings` what the two do not share."""

    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]


def compare(before: Path, after: Path) -> Comparison:
    """Compares two evaluations, benchmark by benchmark.

    Raises:
        UsageError: one of them is no evaluation, or they share no task.
        RowError: a file holds lines that are no judged rows.
    """
    files = evaluation(before), evaluation(after)
    if before.is_file() and after.is_file():  # one benchmark each, whatever the files are called
        name = next(iter(files[0]))
        files = {name: before}, {name: after}
    shared = [name for name in files[0] if name in files[1]]
    warnings = [
        f"only {path} has benchmark {name!r}"
        for path, mine, other in ((before, *files), (after, *files[::-1]))
        for name in mine
        if name not in other
    ]
    differences = []
    for name in shared:
        found = difference(name, _rows(files[0][name]), _rows(files[1][name]))
        if found is None:
            warnings.append(f"benchmark {name!r}: no task was judged in both")
        else:
            differences.append(found)
            warnings += _left_out(found, before, after)
    if not differences:
        raise UsageError(f"{before} and {after} share no task: {'; '.join(warnings)}")
    return Comparison(tuple(differences), tuple(warnings))


def evaluation(path: Path) -> dict[str, Path]:
    """The files of judged rows by benchmark.

    Raises:
        UsageError: there are none; of a run, names its stages.
    """
    if path.is_file():
        return {path.stem: path}
    files = sorted((path / "eval").glob("*/*.jsonl"))
    found = {f"{file.parent.name}/{file.stem}": file for file in files if not file.name.endswith(".failed.jsonl")}
    if found:
        return found
    stages = sorted(stage for stage in (path / "stages").glob("*") if (stage / "eval").is_dir())
    if stages:
        raise UsageError(f"{path} is a run; name one of its stages: {', '.join(map(str, stages))}")
    raise UsageError(f"{path} holds no evaluation: neither eval/<domain>/<benchmark>.jsonl nor judged rows")


def difference(benchmark: str, before: Rows, after: Rows) -> Difference | None:
    """The paired difference of two lists of judged rows; `None` where no task is the same and judged in both."""
    first, second = _tasks(before), _tasks(after)
    common = {task for task, text in first.items() if second.get(task) == text}
    mine = [row for row in before if _key(row) in common]
    theirs = [row for row in after if _key(row) in common]
    change = paired(mine, theirs)
    if change is None:
        return None
    judged = _means(mine), _means(theirs)
    both = judged[0].keys() & judged[1].keys()
    centre, other = (mean([means[task] for task in sorted(both)]).value for means in judged)
    known = first.keys() & second.keys()
    left, right = len(first) - len(known), len(second) - len(known)
    return Difference(benchmark, centre, other, change, left, right, len(known) - len(common), len(common) - len(both))


def _left_out(found: Difference, before: Path, after: Path) -> list[str]:
    reasons = [
        (found.only_before, f"only in {before}"),
        (found.only_after, f"only in {after}"),
        (found.changed, "of one id and another prompt or answer"),
        (found.failed, "not judged in both"),
    ]
    told = ", ".join(f"{count} {what}" for count, what in reasons if count)
    return [f"benchmark {found.benchmark!r}: {found.change.n} tasks compared, left out: {told}"] if told else []


def _rows(path: Path) -> Rows:
    rows = list(read(path))
    for number, row in enumerate(rows, 1):
        score = row.get("score")
        if not isinstance(score, Mapping) or not isinstance(score.get("value"), int | float):
            raise RowError(f"{path}: row {number} has no score: compare takes judged rows")
    return rows


def _key(row: Mapping[str, Any]) -> _Task:
    return str(row.get("domain", "")), str(row.get("id", ""))


def _tasks(rows: Rows) -> dict[_Task, str]:
    """What each task asks and what it wants for an answer, as text to compare."""
    return {_key(row): json.dumps([row.get("prompt"), row.get("answer")], sort_keys=True) for row in rows}


def _means(rows: Rows) -> dict[_Task, float]:
    values: dict[_Task, list[float]] = {}
    for row in rows:
        if not row["score"].get("error"):
            values.setdefault(_key(row), []).append(float(row["score"]["value"]))
    return {task: sum(found) / len(found) for task, found in values.items()}
