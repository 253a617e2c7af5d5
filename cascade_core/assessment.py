"""Benchmarks of one model outside of a run, for `cascade eval`: responses kept as they come, judged, summed up.

    FOLDER/completions/<domain>/<benchmark>.jsonl   responses, appended as they arrive (`completions.py`)
    FOLDER/eval/<domain>/<benchmark>.jsonl          the judged rows, as in a stage of a run; written whole
    FOLDER/metrics.json                             the figures

The same command goes on where it was interrupted, and makes the requests again that failed. Verdicts are made anew each
time. A request that failed is a row that could not be judged, with its cause: it enters no mean.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_core import rows as rowfile
from cascade_core.completions import Completions, Key, opened
from cascade_core.domain import Score
from cascade_core.errors import PluginBroken, ScoringError
from cascade_core.estimates import counts
from cascade_core.evaluate import Exam, report
from cascade_core.folder import disk_errors
from cascade_core.respondent import Respondent
from cascade_core.rows import Row, score_json
from cascade_core.scoring import Scorer

HOPELESS = 20
"""So many requests in a row without an answer, or tasks refused before the first response came, and no more are made."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Assessment:
    """What came of it: `benchmarks` by name, as in `metrics.json`; `failures` are causes with how often they came."""

    benchmarks: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, int]

    def over(self, max_error_rate: float) -> list[str]:
        """The benchmarks of which more samples failed than allowed, or nothing was judged."""
        return [
            name
            for name, found in self.benchmarks.items()
            if not found["scored"] or found["failed"] > max_error_rate * found["total"]
        ]


def assess(
    found: Sequence[Exam],
    respondent: Respondent,
    scorer: Scorer,
    folder: Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Has all benchmarks answered, or goes on with it, and judges them into `folder`.

    Args:
        progress: is told how many more responses are done, those of an earlier command too.

    Raises:
        RunChanged: `folder` was begun with another model, other sampling or other tasks.
        RunLocked: another process is working on the same benchmark there.
        ScoringError: the server answers nothing more, or refuses everything.
        PluginBroken: a benchmark cannot be summed up, or its name cannot be a file's.
        RunError: the disk is full.
    """
    results: dict[str, Mapping[str, Any]] = {}
    failures: dict[str, int] = {}
    pins = respondent.pins()
    for exam in found:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*", exam.name):
            raise PluginBroken(f"benchmark {exam.name!r} must be called by letters, digits, '_', '.' and '-'")
        kept = folder / "completions" / f"{exam.name}.jsonl"
        mine = {**pins, "samples": exam.samples, "seed": seed, **_pins(exam)}
        with disk_errors(folder), opened(kept, mine) as completions:
            causes = _answer(exam, respondent, completions, seed, progress or (lambda done: None))
            rows = _judged(exam, completions, causes, scorer)
            path = folder / "eval" / f"{exam.name}.jsonl"
            rowfile.write(path, rows)
            results[exam.name] = _result(exam, path, rows)
        for row in rows:
            if cause := row["score"].get("error"):
                failures[cause] = failures.get(cause, 0) + 1
        rowfile.write_json(folder / "metrics.json", {**pins, "seed": seed, "benchmarks": results})
    return Assessment(results, dict(sorted(failures.items(), key=lambda item: -item[1])))


def _pins(exam: Exam) -> dict[str, Any]:
    tasks = hashlib.sha256(json.dumps(list(exam.tasks), sort_keys=True).encode()).hexdigest()
    return {"sampling": exam.sampling.model_dump(), "tasks": f"{len(exam.tasks)} with hash {tasks[:16]}"}


def _answer(
    exam: Exam, respondent: Respondent, completions: Completions, seed: int, progress: Progress
) -> dict[Key, str]:
    """Fills what is missing; gives back why what is missing still is."""
    causes: dict[Key, str] = {}
    missing = completions.missing(exam.tasks, exam.samples)
    progress(len(exam.tasks) * exam.samples - len(missing))
    hope = _Hope(exam.name)

    def keep(key: Key, row: Row) -> None:
        hope.arrived()
        completions.add(key, row)
        progress(1)

    def fail(key: Key, cause: str, refused: bool) -> None:
        causes[key] = cause
        progress(1)
        hope.failed(key[0] if refused else "", cause)

    if missing:
        respondent.answer(exam, missing, seed, keep, fail)
    return causes


class _Hope:
    """Whether it is worth going on: a server that is gone, or a wrong key, is not asked ten thousand times.

    Refusals may be about one task (a prompt too long), so tasks are counted, and no longer once a response has come.
    """

    def __init__(self, benchmark: str) -> None:
        self._benchmark = benchmark
        self._any = False
        self._unanswered = 0
        self._refused: set[str] = set()

    def arrived(self) -> None:
        self._any = True
        self._unanswered = 0

    def failed(self, refused: str, cause: str) -> None:
        """One more failure; `refused` is the task, `""` where there was no answer."""
        if refused:
            self._refused.add(refused)
        else:
            self._unanswered += 1
        if self._unanswered >= HOPELESS or (not self._any and len(self._refused) >= HOPELESS):
            many = f"{HOPELESS} requests in a row" if not refused else f"the first {HOPELESS} tasks"
            raise ScoringError(
                f"benchmark {self._benchmark!r}: {many} failed; the last: {cause}; the same command goes on from here"
            )


def _judged(exam: Exam, completions: Completions, causes: Mapping[Key, str], scorer: Scorer) -> list[Row]:
    """All rows in the order of the tasks, each with its score."""
    rows: list[Row] = []
    for task in exam.tasks:
        for sample in range(exam.samples):
            told = completions.found.get((task["id"], sample), {"response": "", "truncated": False, "sample": sample})
            rows.append({**task, "prefill": "", "tokens": 0, **told})
    keys = [(row["id"], row["sample"]) for row in rows]
    scores = iter(scorer.score([row for row, key in zip(rows, keys, strict=True) if key not in causes]))
    for row, key in zip(rows, keys, strict=True):
        score = Score.failed(f"request failed: {causes[key]}") if key in causes else next(scores)
        row["score"] = score_json(score)
    return rows


def _result(exam: Exam, path: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of one benchmark; without estimates where nothing was judged."""
    tally = counts(rows)
    result = report(exam, path, None) if tally["scored"] else {**tally, "estimates": {}, "primary": ""}
    # failed requests and responses without a count are no responses of length 0
    told = [row["tokens"] for row in rows if row["tokens"]]
    result["response_tokens"] = round(sum(told) / len(told), 3) if told else None
    return {**result, "truncated": sum(bool(row["truncated"]) for row in rows), "usage": usage(rows)}


def usage(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The cost in tokens, as counted by who generated them; `unreported` responses came without a count.

    Requests that failed, and tries before the last, are not in it: nobody says what they cost.
    """
    sums = {"prompt": 0, "completion": 0, "unreported": 0}
    for row in rows:
        sums["prompt"] += row.get("prompt_tokens", 0)
        sums["completion"] += row["tokens"]
        sums["unreported"] += not row["tokens"] and bool(row["response"])
    return sums
