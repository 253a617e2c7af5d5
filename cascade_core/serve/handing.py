"""Judged rows of a step as what an engine is handed: numbers that its own arithmetic leaves alone (`advantages.grid`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_core.advantages import grid
from cascade_core.rows import Row, json_score


def answers(rows: Sequence[Row]) -> dict[tuple[int, int], dict[str, Any]]:
    """The answer to each sample of a judged step, by (slot, index)."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for name, group in groups.items():
        slot = int(name.rpartition("-")[2])
        for row, advantage in zip(group, grid([row["advantage"] for row in group]), strict=True):
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
