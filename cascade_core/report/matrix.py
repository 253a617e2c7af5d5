"""The stage × benchmark matrix: what every stage gave, took, and left of the best.

A cell holds the benchmark's primary estimate after a stage, the paired change since the stage before (from `metrics.json`;
from the rows where a stage is not finished), the paired change since the baseline, and the distance from the best value up
to there. The baseline is the last SFT stage that was measured, or the starting model where there is none: what a cascade
has to beat. The page and the terminal show the same matrix; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cascade_core.report.answers import Answers, change
from cascade_core.report.record import Record, StageRecord, count, mapping, number


@dataclass(frozen=True)
class Change:
    """A paired difference on `n` tasks with its 95 % interval."""

    difference: float
    low: float
    high: float
    n: int

    @property
    def direction(self) -> int:
        """1 or -1 where the interval leaves out 0, else 0: not told apart from no change."""
        return (self.low > 0) - (self.high < 0)

    @property
    def half(self) -> float:
        """Half the width of the interval: what stands behind ±."""
        return (self.high - self.low) / 2

    @property
    def mark(self) -> str:
        """▲ ▼ or ≈."""
        return {1: "▲", -1: "▼", 0: "≈"}[self.direction]


@dataclass(frozen=True)
class Counts:
    """Samples: judged (`scored`; `limit` of them ran into a limit), not judged (`failed`), and all."""

    scored: int
    limit: int
    failed: int
    total: int

    def __add__(self, other: Counts) -> Counts:
        mine, theirs = (
            (self.scored, self.limit, self.failed, self.total),
            (other.scored, other.limit, other.failed, other.total),
        )
        return Counts(*(a + b for a, b in zip(mine, theirs, strict=True)))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Counts:
        """The four fields of an event or a benchmark."""
        return cls(*(count(fields.get(key)) for key in ("scored", "limit", "failed", "total")))


@dataclass(frozen=True)
class Cell:
    """One benchmark after one stage. `below_best` is 0 for the best so far, else negative; `best_stage` says where that was."""

    value: float
    stderr: float
    n: int
    metric: str
    counts: Counts
    is_own: bool
    change: Change | None = None
    since: Change | None = None
    below_best: float = 0.0
    best_stage: str = ""
    others: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tokens: float | None = None
    truncated: int = 0

    @property
    def best_value(self) -> float:
        """The best value of the benchmark up to here."""
        return self.value - self.below_best


@dataclass(frozen=True)
class Matrix:
    """All cells, by benchmark and stage id; a stage or benchmark that is not measured yet has none."""

    stages: tuple[StageRecord, ...]
    benchmarks: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    baseline: StageRecord | None

    def row(self, benchmark: str) -> list[tuple[StageRecord, Cell | None]]:
        """A benchmark after every stage."""
        return [(stage, self.cells.get((benchmark, stage.id))) for stage in self.stages]

    def measured(self, benchmark: str) -> list[tuple[StageRecord, Cell]]:
        """A benchmark after every stage that it was measured after."""
        return [(stage, cell) for stage, cell in self.row(benchmark) if cell is not None]

    def scale(self, benchmark: str) -> float:
        """The largest magnitude of a benchmark's values, at least 1: what its changes are seen against."""
        return max([1.0, *(abs(cell.value) for _, cell in self.measured(benchmark))])

    def comparisons(self) -> int:
        """How many changes since the stage before the matrix holds."""
        return sum(cell.change is not None for cell in self.cells.values())


def build(record: Record, answers: Answers) -> Matrix:
    """The matrix of a run; stages that measured nothing have no column."""
    results = {stage.id: dict(_results(stage)) for stage in record.stages}
    stages = tuple(stage for stage in record.stages if results[stage.id])
    benchmarks = tuple(dict.fromkeys(name for stage in stages for name in results[stage.id]))
    sft = [stage for stage in stages if stage.kind == "sft"]
    baseline = next(iter(sft[-1:] or stages[:1]), None)
    cells: dict[tuple[str, str], Cell] = {}
    for name in benchmarks:
        measured = [(stage, results[stage.id][name]) for stage in stages if name in results[stage.id]]
        cells |= {(name, stage.id): cell for stage, cell in _row(name, measured, answers, baseline)}
    return Matrix(stages, benchmarks, cells, baseline)


def _results(stage: StageRecord) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What was measured after a stage: from its metrics, or from its events while it is under way."""
    for name, result in mapping(stage.metrics.get("benchmarks")).items():
        estimates = mapping(mapping(result).get("estimates"))
        named = str(mapping(result).get("primary"))
        primary = named if named in estimates else next(iter(estimates), "")
        if number(mapping(estimates.get(primary)).get("value")) is not None:
            yield name, {**result, "primary": primary}
    if stage.metrics:
        return
    for event in stage.events:
        if (
            event["kind"] == "eval"
            and isinstance(event.get("benchmark"), str)
            and number(event.get("value")) is not None
        ):
            metric = str(event.get("metric", "value"))
            yield event["benchmark"], {**event, "primary": metric, "estimates": {metric: event}}


def _row(
    name: str, measured: Sequence[tuple[StageRecord, Mapping[str, Any]]], answers: Answers, baseline: StageRecord | None
) -> Iterator[tuple[StageRecord, Cell]]:
    """The cells of one benchmark, each knowing those before it."""
    before: StageRecord | None = None
    best: tuple[float, str] | None = None
    for stage, result in measured:
        value = number(result["estimates"][result["primary"]].get("value")) or 0.0
        if best is None or value >= best[0]:
            best = (value, stage.id)
        step = _change(result.get("change"))
        if step is None and before is not None:
            step = _paired(answers, name, before, stage)
        since = None
        if baseline is not None and before is not None and stage.index > baseline.index:
            since = step if before.id == baseline.id else _paired(answers, name, baseline, stage)
        # What is sampled is a policy, and a reward model's stage trains none: it only makes it possible to measure.
        is_trained = stage.kind != "reward_model" or "sampling" not in result
        cell = _cell(result, is_own=is_trained and name.partition("/")[0] in stage.domains)
        yield stage, replace(cell, change=step, since=since, below_best=value - best[0], best_stage=best[1])
        before = stage


def _cell(result: Mapping[str, Any], *, is_own: bool) -> Cell:
    """What the result itself says, without its neighbours."""
    estimates = {key: mapping(estimate) for key, estimate in mapping(result["estimates"]).items()}
    primary = estimates.pop(result["primary"])
    others = {key: (number(e.get("value")), number(e.get("stderr")) or 0.0) for key, e in estimates.items()}
    return Cell(
        value=number(primary.get("value")) or 0.0,
        stderr=number(primary.get("stderr")) or 0.0,
        n=count(primary.get("n")),
        metric=str(result["primary"]),
        counts=Counts.of(result),
        is_own=is_own,
        others={key: (value, stderr) for key, (value, stderr) in others.items() if value is not None},
        tokens=number(result.get("response_tokens")),
        truncated=count(result.get("truncated")),
    )


def _change(fields: object) -> Change | None:
    values = [number(mapping(fields).get(key)) for key in ("difference", "low", "high")]
    difference, low, high = values
    if difference is None or low is None or high is None:
        return None
    return Change(difference, low, high, count(mapping(fields).get("n")))


def _paired(answers: Answers, name: str, before: StageRecord, after: StageRecord) -> Change | None:
    found = change(answers.get((before.id, name)), answers.get((after.id, name)))
    return Change(found.difference, found.low, found.high, found.n) if found else None
