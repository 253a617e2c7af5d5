"""Axes: a linear scale from numbers to places on the paper, and round numbers to mark on it.

The paper is `WIDTH` × `HEIGHT` units; what is drawn lies between `LEFT`, `RIGHT`, `TOP` and `BOTTOM` margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cascade_core.report.text import plain, short

WIDTH, HEIGHT = 320.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 8.0, 20.0
TINIEST = 1e-200
"""What is smaller than this is drawn as 0: powers of ten come to an end there."""


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what it says."""

    place: str
    text: str


@dataclass(frozen=True)
class Scale:
    """A linear map from numbers to places on the paper."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def value_axis(low: float, high: float) -> tuple[Scale, tuple[Tick, ...]]:
    """The upright axis of values from `low` to `high`, widened to round numbers, and its marks."""
    largest = max(abs(low), abs(high))
    if largest < TINIEST:
        low, high = 0.0, 1.0
    elif high - low <= 1e-9 * largest:
        low, high = min(low, 0.0), max(high, 0.0)
    ticks = nice(low, high)
    scale = Scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP)
    say = _tick_text(ticks)
    return scale, tuple(Tick(coordinate(scale(tick)), say(tick)) for tick in ticks)


def steps_axis(first: float, last: float) -> Scale:
    """The level axis of steps; a lone step gets room on both sides."""
    if first == last:
        first, last = first - 0.5, last + 0.5
    return Scale(first, last, LEFT, WIDTH - RIGHT)


def step_ticks(x: Scale) -> tuple[Tick, ...]:
    """First, last and some round steps between."""
    first, last = math.ceil(x.low), math.floor(x.high)
    inner = [
        tick
        for tick in nice(first, last)
        if first + (last - first) * 0.12 < tick < last - (last - first) * 0.12 and tick == round(tick)
    ]
    return tuple(Tick(coordinate(x(step)), f"{step:,.0f}") for step in sorted({first, *inner, last}))


def nice(low: float, high: float, most: int = 4) -> list[float]:
    """At most `most` + 1 round numbers (1, 2 or 5 times a power of ten apart) that enclose low … high."""
    span = max(high - low, TINIEST)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next((power * factor for factor in (1, 2, 5, 10, 20) if _fits(low, high, power * factor, most)), span)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def _tick_text(ticks: Sequence[float]) -> Callable[[float], str]:
    """Ticks with as many decimals as tell them apart, or in powers of ten where they are tiny or huge."""
    step, largest = ticks[1] - ticks[0], max(abs(tick) for tick in ticks)
    if largest >= 1e6 or largest < 1e-2:
        return lambda tick: short(tick) if tick else "0"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return lambda tick: plain(tick, digits)


def _fits(low: float, high: float, step: float, most: int) -> bool:
    return math.ceil(high / step - 1e-9) - math.floor(low / step + 1e-9) <= most


def coordinate(value: float) -> str:
    """A coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")
