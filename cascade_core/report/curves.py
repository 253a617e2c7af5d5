"""What training looked like: a stage's curves, its counts of samples, and where its time went, all from `events.jsonl`.

`CURVES` is the list of curves and their order; whatever else a trainer logs as a number gets a curve under its own name. A curve
of which the events say nothing is left out, never drawn as zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cascade_core.report.matrix import Counts
from cascade_core.report.plot import Chart, head, lines, stacked, total
from cascade_core.report.record import Event, Record, StageRecord, count, mapping, number

PHASES = {"generation": "generate_seconds", "verification": "verify_seconds", "update": "update_seconds"}
MOST_OTHERS = 24
"""Curves of fields that this module does not know, at most so many a stage."""


@dataclass(frozen=True)
class Curve:
    """A chart: its title, label and field of each line, the field that they are shares of, a value its axis must show.

    Of `is_count` the heading says the sum.
    """

    title: str
    fields: Mapping[str, str]
    share_of: str = ""
    floor: float | None = None
    is_count: bool = False


CURVES = (
    Curve("reward", {"mean": "reward_mean"}),
    Curve("value", {"mean": "value_mean"}, floor=0.0),
    Curve("response length, tokens", {"mean": "response_tokens_mean"}),
    Curve("entropy", {"": "entropy"}, floor=0.0),
    Curve("groups of equal rewards, share", {"": "zero_variance"}, floor=0.0),
    Curve("masked and cut, share of samples", {"masked": "masked", "cut": "truncated"}, share_of="total", floor=0.0),
    Curve("groups masked whole", {"": "masked_groups"}, floor=0.0, is_count=True),
    Curve("not judged and limit, samples", {"not judged": "failed", "limit": "limit"}, floor=0.0, is_count=True),
    Curve("loss", {"": "loss"}),
    Curve("gradient norm", {"": "grad_norm"}, floor=0.0),
    Curve("learning rate", {"": "lr"}, floor=0.0),
    Curve("divergence from the start (KL)", {"": "kl"}),
)
_DOMAIN = "value/"
# Curves of a composed reward with one line for each scorer: what ends the field `component/NAME/…`, and the title.
_COMPONENT = "component/"
_COMPONENTS = {
    "/raw_mean": "reward by component, raw",
    "/weighted_mean": "reward by component, weighted",
    "/trained_mean": "reward by component, as trained",
}
# Curves with one line for each domain: what stands before the domain in the field, and the title.
_VERDICTS = {
    "wait_seconds/": "wait for the last verdict by domain, s",
    "run_seconds/": "mean time of a verdict by domain, s",
    "queue_seconds/": "mean time in the queue by domain, s",
}
# Shown elsewhere, or no measurement of the step.
_KNOWN = {
    *(field for curve in CURVES for field in curve.fields.values()),
    *("kind", "stage", "step", "time", "reward_std", "response_tokens_max", "scored", "total"),
}


@dataclass(frozen=True)
class Training:
    """One stage's training: its charts, the sums of its samples, how many of those were masked or cut."""

    stage: StageRecord
    steps: int
    charts: tuple[Chart, ...]
    counts: Counts
    masked: int
    truncated: int

    @property
    def is_open(self) -> bool:
        """Whether there is anything to see."""
        return bool(self.charts)


@dataclass(frozen=True)
class Spent:
    """Seconds of a stage by what they were spent on, in the order of `KINDS`."""

    stage: StageRecord
    seconds: tuple[float, ...]

    KINDS = ("data", "generation", "verification", "update", "rest of training", "evaluation")

    @property
    def total(self) -> float:
        """All of it, seconds."""
        return math.fsum(self.seconds)


def training(stage: StageRecord) -> Training:
    """A stage's training, as far as it came."""
    steps = stage.steps_seen()
    timing = stacked("seconds per step", {name: _series(steps, field) for name, field in PHASES.items()}, "s")
    drawn = [
        *(_chart(curve, steps) for curve in _known(steps)),
        timing,
        *(_chart(curve, steps) for curve in _times(steps)),
        *(_chart(curve, steps) for curve in _others(steps)),
    ]
    charts = tuple(chart for chart in drawn if chart)
    counts = sum((Counts.of(step) for step in steps), Counts(0, 0, 0, 0))
    masked, truncated = (sum(count(step.get(key)) for step in steps) for key in ("masked", "truncated"))
    return Training(stage, len(steps), charts, counts, masked, truncated)


def spent(record: Record) -> list[Spent]:
    """Where the time of every stage went; stages without a single measured second are left out.

    Of a stage that was interrupted, `metrics.json` knows only the last part of the training: the steps' own sum counts
    where it is larger.
    """
    found = []
    for stage in record.stages:
        known = mapping(stage.metrics.get("seconds"))
        data, train, evaluation = (
            max(0.0, number(known.get(f"{key}_seconds")) or 0.0) for key in ("data", "train", "eval")
        )
        steps = stage.steps_seen()
        phases = [math.fsum(max(0.0, value) for _, value in _series(steps, field)) for field in PHASES.values()]
        one = Spent(stage, (data, *phases, max(0.0, train - math.fsum(phases)), evaluation))
        if one.total:
            found.append(one)
    return found


def _known(steps: Sequence[Event]) -> list[Curve]:
    """The known curves, and the values by domain where there are several."""
    values = _by_domain(steps, _DOMAIN)
    by_domain = [Curve("value by domain", values, floor=0.0)] if len(values) > 1 else []
    return [*CURVES[:2], *by_domain, *_components(steps), *CURVES[2:]]


def _components(steps: Sequence[Event]) -> list[Curve]:
    """What each scorer of a composed reward gave."""
    parts = [key for key in _fields(steps) if key.startswith(_COMPONENT)]
    return [
        Curve(title, {key.removeprefix(_COMPONENT).removesuffix(end): key for key in parts if key.endswith(end)})
        for end, title in _COMPONENTS.items()
    ]


def _times(steps: Sequence[Event]) -> list[Curve]:
    """What the verdicts of each domain took."""
    return [Curve(title, _by_domain(steps, prefix), floor=0.0) for prefix, title in _VERDICTS.items()]


def _by_domain(steps: Sequence[Event], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): key for key in _fields(steps) if key.startswith(prefix)}


def _others(steps: Sequence[Event]) -> list[Curve]:
    """Whatever else is a number; the metrics of scores come as `metric/<domain>/<name>`."""
    others = sorted(key for key in _fields(steps) if key not in _KNOWN and not key.startswith((_DOMAIN, _COMPONENT)))
    titles = {key: key.removeprefix("metric/").replace("_", " ") for key in others if "_seconds" not in key}
    return [Curve(title, {"": key}) for key, title in list(titles.items())[:MOST_OTHERS]]


def _fields(steps: Sequence[Event]) -> dict[str, None]:
    return dict.fromkeys(key for step in steps for key in step)


def _chart(curve: Curve, steps: Sequence[Event]) -> Chart | None:
    series = {name: _series(steps, field, curve.share_of) for name, field in curve.fields.items()}
    return lines(curve.title, series, floor=curve.floor, say=total if curve.is_count else head)


def _series(steps: Sequence[Event], field: str, share_of: str = "") -> list[tuple[float, float]]:
    """The steps that have the field, and its value there, as a share of another field where one is named."""
    points = []
    for step in steps:
        value, whole = number(step.get(field)), number(step.get(share_of)) if share_of else 1.0
        if value is not None and whole:
            points.append((float(step["step"]), value / whole))
    return points
