"""One sentence a stage: what it did to its own benchmarks, and what it cost the others.

A change counts only where its 95 % interval leaves out 0; ± is half of that interval. Up to three benchmarks are named one by
one, more are counted, with the extremes named. The words say no more than the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cascade_core.report.matrix import Cell, Change, Matrix
from cascade_core.report.plot import head
from cascade_core.report.record import StageRecord, number
from cascade_core.report.text import decimals, plain, signed

MOST_NAMED = 3


@dataclass(frozen=True)
class Verdict:
    """What is said of a stage.

    `direction` is -1 where one of its own benchmarks fell, 1 where one rose and none fell, 0 where none moved, `None` where
    nothing can be said yet.
    """

    stage: StageRecord
    direction: int | None
    sentence: str

    @property
    def mark(self) -> str:
        """▲ ▼ ≈, or … for a stage that is not through."""
        return {1: "▲", -1: "▼", 0: "≈", None: "…"}[self.direction]


@dataclass(frozen=True)
class Moved:
    """A benchmark's change in a stage, from one value to another, with the decimals to show."""

    name: str
    change: Change
    before: float
    after: float
    digits: int

    @property
    def size(self) -> str:
        """`+0.12 ±0.03`."""
        return f"{signed(self.change.difference, self.digits)} ±{plain(self.change.half, self.digits)}"


def verdicts(matrix: Matrix, stages: tuple[StageRecord, ...]) -> list[Verdict]:
    """One verdict for every stage that trained, or began to."""
    return [_verdict(matrix, stage) for stage in stages if stage.kind != "start" and stage.state != "not started"]


def _verdict(matrix: Matrix, stage: StageRecord) -> Verdict:
    cells = {name: cell for name in matrix.benchmarks if (cell := matrix.cells.get((name, stage.id))) and cell.change}
    if not cells:
        return Verdict(stage, None, _progress(stage))
    own = [_moved(matrix, stage, name, cell) for name, cell in cells.items() if cell.is_own]
    others = [_moved(matrix, stage, name, cell) for name, cell in cells.items() if not cell.is_own]
    control = "as a control, with permuted rewards, " if stage.control else ""
    directions = [one.change.direction for one in own]
    direction = min(directions) if -1 in directions else max(directions, default=0)
    if stage.state == "finished":
        return Verdict(stage, direction, f"{control}{_own(own)}{_others(others)}")
    so_far = f": so far it {_own(own)}{_others(others)}" if own else ""
    return Verdict(stage, None, f"{control}is trained and being evaluated{so_far}")


def _moved(matrix: Matrix, stage: StageRecord, name: str, cell: Cell) -> Moved:
    earlier = [other.value for before, other in matrix.measured(name) if before.index < stage.index]
    if cell.change is None:
        raise ValueError(f"{name} has no change in {stage.id}")
    return Moved(name, cell.change, earlier[-1] if earlier else cell.value, cell.value, decimals(matrix.scale(name)))


def _own(moved: list[Moved]) -> str:
    """What happened to the benchmarks of the stage's own domains."""
    if not moved:
        return "trains on no domain that is measured"
    if len(moved) <= MOST_NAMED:
        return "; ".join(_named(one) for one in moved)
    return f"{_counted(moved)} of its {len(moved)} own benchmarks, {_extremes(moved)}"


def _named(one: Moved) -> str:
    word = {1: "raised", -1: "lowered", 0: "did not move"}[one.change.direction]
    how = f"by {one.size}" if one.change.direction else f"beyond the noise: {one.size}"
    return f"{word} {one.name} {how} ({plain(one.before, one.digits)} → {plain(one.after, one.digits)})"


def _others(moved: list[Moved]) -> str:
    """What happened to the benchmarks of other domains, losses first."""
    told = sorted((one for one in moved if one.change.direction), key=lambda one: (one.change.direction, one.name))
    if not moved:
        return ""
    if not told:
        return (
            "; nothing else moved beyond its interval"
            if len(moved) > 1
            else f"; {moved[0].name} did not move beyond its interval"
        )
    if len(told) <= MOST_NAMED:
        return "; elsewhere " + ", ".join(f"{one.name} {one.size}" for one in told)
    return f"; elsewhere {_counted(told)} of {len(moved)}, {_extremes(told)}"


def _counted(moved: list[Moved]) -> str:
    directions = [one.change.direction for one in moved]
    words: Mapping[int, str] = {1: "raised", -1: "lowered"}
    return (
        " and ".join(f"{words[way]} {directions.count(way)}" for way in (1, -1) if way in directions)
        or "moved none beyond its interval"
    )


def _extremes(moved: list[Moved]) -> str:
    least, most = (choose(moved, key=lambda one: one.change.difference) for choose in (min, max))
    return f"from {least.name} {least.size} to {most.name} {most.size}"


def _progress(stage: StageRecord) -> str:
    """How far a stage came that was not measured yet."""
    steps = stage.steps_seen()
    if stage.state == "finished":
        return "was measured on nothing that can be compared with the stage before"
    if not steps:
        return "has begun; no step is done yet"
    done = f"is under way: {len(steps)} of {stage.steps} steps" if stage.steps else f"is under way: {len(steps)} steps"
    field = "reward_mean" if any("reward_mean" in step for step in steps) else "loss"
    points = [(float(step["step"]), value) for step in steps if (value := number(step.get(field))) is not None]
    return f"{done}, {'reward' if field == 'reward_mean' else 'loss'} {head(points)}" if points else done
