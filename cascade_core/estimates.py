"""Scored rows to numbers with error bars: avg@k, pass@k, counts, and the paired difference of two evaluations.

Rows are grouped by task (`domain`, `id`); the error bar is that of a mean over tasks, since the samples of one task are
not independent. Rows that could not be judged enter no mean; `counts` says how many there were. Stage, benchmark and
file are the caller's: all rows given belong to one table cell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from cascade_core.domain import Estimate, Score
from cascade_core.errors import RowError
from cascade_core.rows import json_score

WIDEST = 0.5
"""The standard error given for a single task: a value in [0, 1] cannot have a larger one."""


@dataclass(frozen=True)
class Paired:
    """How much `after` differs from `before` on the `n` tasks that both judged; `low … high` is the 95 % interval."""

    difference: float
    stderr: float
    low: float
    high: float
    n: int

    @property
    def interval95(self) -> tuple[float, float]:
        """The 95 % interval, (low, high)."""
        return self.low, self.high


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[str, Estimate]:
    """`avg@k` and unbiased `pass@1` … `pass@k` (powers of two, and k), k the fewest samples drawn of any task.

    avg@k is the mean over tasks of the mean value of the task's judged samples; tasks without one are left out. pass@j
    is over the tasks with at least j judged samples, a sample passing when its value is 1. Nothing judged: no estimate.

    >>> verdicts = [("a", 1.0), ("a", 0.0), ("b", 0.0), ("b", 0.0)]
    >>> rows = [{"domain": "math", "id": task, "score": {"value": value}} for task, value in verdicts]
    >>> {name: estimate.value for name, estimate in summarise(rows).items()}
    {'avg@2': 0.25, 'pass@1': 0.25, 'pass@2': 0.5}
    """
    drawn: dict[tuple[str, str], int] = {}
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        task, score = _task(row), _score(row)
        drawn[task] = drawn.get(task, 0) + 1
        if score.is_judged:
            values.setdefault(task, []).append(score.value)
    if not values:
        return {}
    k = min(drawn.values())
    estimates = {f"avg@{k}": mean([math.fsum(v) / len(v) for v in values.values()])}
    for j in sorted({1 << power for power in range(k.bit_length())} | {k}):
        chances = [pass_at(len(v), sum(value >= 1.0 for value in v), j) for v in values.values() if len(v) >= j]
        if chances:
            estimates[f"pass@{j}"] = mean(chances)
    return estimates


def pass_at(n: int, right: int, k: int) -> float:
    """The chance that k of n samples, `right` of which pass, hold one that passes: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of Chen et al. 2021 (arXiv 2107.03374, equation 1).
    """
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def mean(values: Collection[float]) -> Estimate:
    """The mean of one number per task, and its standard error (sample deviation / √n); `WIDEST` for a single task."""
    centre = math.fsum(values) / len(values)
    return Estimate(centre, _stderr(values, centre) if len(values) > 1 else WIDEST, len(values))


def counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many rows were judged (`scored`; of those `limit` ran into a limit), could not be (`failed`), and `total`."""
    scores = [_score(row) for row in rows]
    scored = sum(score.is_judged for score in scores)
    limit = sum(score.is_limit for score in scores)
    return {"scored": scored, "limit": limit, "failed": len(scores) - scored, "total": len(scores)}


def paired(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> Paired | None:
    """The mean over tasks of the difference of the tasks' mean values; `None` where no task was judged in both.

    The interval is Student's, so that few tasks give a wide one; a single task gives all of [-1, 1].
    """
    first, second = _means(before), _means(after)
    differences = [second[task] - first[task] for task in first if task in second]
    if not differences:
        return None
    n, centre = len(differences), math.fsum(differences) / len(differences)
    if n == 1:
        return Paired(centre, 2 * WIDEST, -1.0, 1.0, 1)
    stderr = _stderr(differences, centre)
    half = student(n - 1) * stderr
    return Paired(centre, stderr, centre - half, centre + half, n)


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else to 1 % or better.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    if freedom <= 2:
        return math.tan(0.475 * math.pi) if freedom == 1 else 0.95 * math.sqrt(2 / (1 - 0.95**2))
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def _stderr(values: Collection[float], centre: float) -> float:
    if min(values) == max(values):
        return 0.0
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1) / len(values))


def _means(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        score = _score(row)
        if score.is_judged:
            values.setdefault(_task(row), []).append(score.value)
    return {task: math.fsum(v) / len(v) for task, v in values.items()}


def _task(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("domain", "")), str(row.get("id", ""))


def _score(row: Mapping[str, Any]) -> Score:
    if not isinstance(row.get("score"), Mapping):
        raise RowError(f"row {row.get('id')!r} has no score, found {row.get('score')!r}")
    return json_score(row["score"])
