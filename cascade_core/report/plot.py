"""Numbers to the geometry of a small chart: SVG path data on the axes of `axis.py`. The template draws what stands here.

Three shapes: `lines` over steps, `stacked` bars over steps, `errorbars` over stages. A chart is about 320 × 150 units, scales
with its column and takes its colours from the page. Long series are put together in at most `MOST_POINTS` buckets:
the line is the bucket's mean, the band its range, so that no spike is lost. No number is smoothed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cascade_core.report.axis import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    Tick,
    coordinate,
    step_ticks,
    steps_axis,
    value_axis,
)
from cascade_core.report.text import decimals, plain, short

MOST_POINTS = 240
MOST_LETTERS = 44

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Shape:
    """One SVG path and the class that gives it its look."""

    look: str
    path: str


@dataclass(frozen=True)
class Series:
    """One named series of a chart: its place in the palette, what its heading says, and whether it is a `line` or a `bar`."""

    name: str
    slot: int
    head: str
    look: str = "line"


@dataclass(frozen=True)
class Chart:
    """All that the template needs. `label` says in words what the picture shows; `data` is JSON for the read-out."""

    title: str
    label: str
    series: tuple[Series, ...]
    shapes: tuple[Shape, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    data: str


@dataclass(frozen=True)
class Bucket:
    """Neighbouring points of a series as one."""

    x: float
    mean: float
    low: float
    high: float


def head(points: Points) -> str:
    """The mean of the first tenth of a series and that of its last, at least one point each."""
    tenth = max(1, len(points) // 10)
    first, last = (math.fsum(value for _, value in part) / tenth for part in (points[:tenth], points[-tenth:]))
    return short(last) if len(points) == 1 or short(first) == short(last) else f"{short(first)} → {short(last)}"


def total(points: Points) -> str:
    """The sum of a series: what is said of counts."""
    return f"{math.fsum(value for _, value in points):,.0f}"


def lines(
    title: str, series: Mapping[str, Points], *, floor: float | None = None, say: Callable[[Points], str] = head
) -> Chart | None:
    """Series over steps; `None` where no series has a point.

    `floor` is a value that the axis must show; `say` makes a series' heading of its points.
    """
    told = {name: buckets(points) for name, points in series.items() if points}
    if not told:
        return None
    ends = [points[place][0] for points in series.values() if points for place in (0, -1)]
    extremes = [value for row in told.values() for bucket in row for value in (bucket.low, bucket.high)]
    if floor is not None:
        extremes.append(floor)
    x, (y, y_ticks) = steps_axis(min(ends), max(ends)), value_axis(min(extremes), max(extremes))
    shapes = []
    for slot, row in enumerate(told.values()):
        if any(bucket.low < bucket.high for bucket in row):
            shapes.append(Shape(f"band c{slot % 4}", _band(row, x, y)))
        shapes.append(Shape(f"line c{slot % 4}", _line([(x(bucket.x), y(bucket.mean)) for bucket in row])))
    heads = tuple(Series(name, slot % 4, say(series[name])) for slot, name in enumerate(told))
    label = "; ".join(f"{one.name} {one.head}" for one in heads)
    label = f"{title}, steps {min(ends):g} to {max(ends):g}: {label}"
    return Chart(title, label, heads, tuple(shapes), step_ticks(x), y_ticks, _read_out(told, x))


def stacked(title: str, series: Mapping[str, Points], unit: str) -> Chart | None:
    """Bars over steps, one part on the other, over the steps that have any part; `None` where there are none."""
    steps = sorted({step for points in series.values() for step, _ in points})
    if not steps:
        return None
    values = {name: dict(points) for name, points in series.items() if points}
    told = {name: buckets([(step, by_step.get(step, 0.0)) for step in steps]) for name, by_step in values.items()}
    rows = list(told.values())
    tops = [math.fsum(row[i].mean for row in rows) for i in range(len(rows[0]))]
    x, (y, y_ticks) = steps_axis(steps[0] - 0.5, steps[-1] + 0.5), value_axis(0.0, max(tops))
    wide = max(0.6, (WIDTH - LEFT - RIGHT) / len(tops) - (1.0 if len(tops) <= 60 else 0.0))
    below, shapes = [0.0] * len(tops), []
    for slot, row in enumerate(rows):
        bars = [(x(b.x) - wide / 2, y(base + b.mean), y(base)) for b, base in zip(row, below, strict=True)]
        shapes.append(
            Shape(
                f"bar c{slot % 4}",
                "".join(
                    f"M{coordinate(a)} {coordinate(base)}V{coordinate(top)}h{coordinate(wide)}V{coordinate(base)}z"
                    for a, top, base in bars
                ),
            )
        )
        below = [base + b.mean for b, base in zip(row, below, strict=True)]
    means = {name: math.fsum(by_step.values()) / len(steps) for name, by_step in values.items()}
    heads = tuple(
        Series(name, slot % 4, f"{short(mean)} {unit}", "bar") for slot, (name, mean) in enumerate(means.items())
    )
    label = f"{title}, mean per step: " + "; ".join(f"{one.name} {one.head}" for one in heads)
    ticks = step_ticks(Scale(steps[0], steps[-1], x(steps[0]), x(steps[-1])))
    return Chart(title, label, heads, tuple(shapes), ticks, y_ticks, _read_out(told, x))


def errorbars(
    title: str, names: Sequence[str], values: Sequence[tuple[float, float] | None], own: Sequence[bool]
) -> Chart:
    """A value with its 95 % interval (1.96 standard errors) after every stage; columns of `own` stages are shaded.

    `names` are stage ids (`02-if`): where they do not fit under the axis, their numbers stand there. Of values in [0, 1] the
    axis spans at least 0.2, so that noise does not look like a cliff, and bars end at 0 and 1.
    """
    known = [(i, *pair) for i, pair in enumerate(values) if pair is not None]
    is_share = all(0 <= value <= 1 for _, value, _ in known)
    floor, ceiling = (0.0, 1.0) if is_share else (-math.inf, math.inf)
    ends = [(max(floor, v - 1.96 * stderr), min(ceiling, v + 1.96 * stderr)) for _, v, stderr in known]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if is_share and high - low < 0.2:
        low = min(max(0.0, (low + high) / 2 - 0.1), 0.8)
        high = low + 0.2
    y, y_ticks = value_axis(low, high)
    slot = (WIDTH - LEFT - RIGHT) / len(names)
    x = [LEFT + slot * (i + 0.5) for i in range(len(names))]
    shapes = (
        Shape("own", "".join(_column(x[i], slot) for i, is_own in enumerate(own) if is_own)),
        Shape("line c0", _line([(x[i], y(value)) for i, value, _ in known])),
        Shape("error c0", "".join(_error(x[i], y(a), y(b)) for (i, _, _), (a, b) in zip(known, ends, strict=True))),
        Shape("dot c0", "".join(_dot(x[i], y(value)) for i, value, _ in known)),
    )
    digits = decimals(max(abs(value) for _, value, _ in known))
    told = [f"{names[i]} {plain(value, digits)} ± {plain(stderr, digits)}" for i, value, stderr in known]
    data = json.dumps({"px": [round(x[i], 1) for i, _, _ in known], "say": told})
    ticks = tuple(Tick(coordinate(place), text) for place, text in zip(x, _stage_names(names), strict=True))
    heads = (Series("", 0, plain(known[-1][1], digits)),)
    return Chart(title, f"{title}: {', '.join(told)}", heads, shapes, ticks, y_ticks, data)


def _stage_names(ids: Sequence[str]) -> list[str]:
    """What stands under the axis: names, or numbers where names are too long for their columns."""
    numbers, names = zip(*(stage.split("-", 1) for stage in ids), strict=True)
    fits = max(map(len, names)) * len(names) <= MOST_LETTERS
    return list(names) if fits else [str(int(number)) for number in numbers]


def _column(x: float, wide: float) -> str:
    return f"M{coordinate(x - wide / 2)} {coordinate(TOP)}h{coordinate(wide)}V{coordinate(HEIGHT - BOTTOM)}h{coordinate(-wide)}z"


def _error(x: float, bottom: float, top: float) -> str:
    return f"M{coordinate(x - 3)} {coordinate(top)}h6m-3 0V{coordinate(bottom)}m-3 0h6"


def _dot(x: float, y: float) -> str:
    return f"M{coordinate(x - 3)} {coordinate(y)}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"


def buckets(points: Points) -> list[Bucket]:
    """At most `MOST_POINTS` neighbours of equal number; the points themselves where there are no more."""
    size = math.ceil(len(points) / MOST_POINTS)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [
        Bucket(g[len(g) // 2][0], math.fsum(v for _, v in g) / len(g), min(v for _, v in g), max(v for _, v in g))
        for g in groups
    ]


def _line(places: Points) -> str:
    """A line through all places; a lone one is drawn as a short stroke."""
    if len(places) == 1:
        (x, y) = places[0]
        return f"M{coordinate(x - 3)} {coordinate(y)}h6"
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in places)


def _band(row: Sequence[Bucket], x: Scale, y: Scale) -> str:
    edge = [(x(b.x), y(b.high)) for b in row] + [(x(b.x), y(b.low)) for b in reversed(row)]
    return _line(edge) + "z" if len(edge) > 2 else ""


def _read_out(told: Mapping[str, Sequence[Bucket]], x: Scale) -> str:
    """What the page's script shows under the pointer: places, steps, and every series' value there."""
    steps = sorted({bucket.x for row in told.values() for bucket in row})
    by_step = {name: {b.x: b.mean for b in row} for name, row in told.items()}
    values = {name: [_four(found.get(step)) for step in steps] for name, found in by_step.items()}
    return json.dumps(
        {"px": [round(x(step), 1) for step in steps], "step": steps, "series": values}, separators=(",", ":")
    )


def _four(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
