"""Judged rows of a step as what an engine is handed: numbers that its own arithmetic leaves alone.

Engines subtract the mean of a group from what they take for rewards. Finished advantages have mean 0, up to rounding; on a grid of
2^-16, with the rest of the rounding given to one sample, their sum is exactly 0 in single precision too, and the subtraction
changes nothing. Advantages that are no differences from a mean (shaped by tanh) only go to the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cascade_core.rows import Row, json_score

GRID = 2.0**-16


def on_grid(advantages: Sequence[float]) -> list[float]:
    """The advantages of a group as multiples of `GRID` whose sum is exactly 0 where theirs is 0 up to rounding.

    >>> sum(on_grid([1 / 3, 1 / 3, -2 / 3]))
    0.0
    """
    steps = [round(advantage / GRID) for advantage in advantages]
    if steps and abs(math.fsum(advantages)) < 1e-6 * len(steps):
        largest = max(range(len(steps)), key=lambda place: abs(steps[place]))
        steps[largest] -= sum(steps)
    return [step * GRID for step in steps]


def answers(rows: Sequence[Row]) -> dict[tuple[int, int], dict[str, Any]]:
    """The answer to each sample of a judged step, by (slot, index)."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for name, group in groups.items():
        slot = int(name.rpartition("-")[2])
        for row, advantage in zip(group, on_grid([row["advantage"] for row in group]), strict=True):
            found[slot, row["sample"]] = _answer(row, advantage)
    return found


def _answer(row: Row, advantage: float) -> dict[str, Any]:
    """`reward` is the finished advantage; numbers to be logged have the same names in every answer, and none is NaN."""
    score = json_score(row["score"])
    logs = {
        "cascade_judged": float(score.is_judged),
        "cascade_value": score.value if score.is_judged else 0.0,
        "cascade_reward": float(row["reward"] or 0.0),
        "cascade_masked": float(bool(row["masked"])),
        "cascade_limit": float(score.is_limit),
        "cascade_truncated": float(bool(row["truncated"])),
        "cascade_tokens": float(row["tokens"]),
    }
    told = {"reward": advantage, "scores": logs["cascade_value"], "masked": row["masked"], "extra_logs": logs}
    return {**told, "error": score.error} if score.error else told
