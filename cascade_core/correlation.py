"""How two numbers of the same samples go together inside groups: Pearson's correlation, what a group has in common taken away.

That is what a group's advantages can follow: a reward that rises with the length of answers to one prompt teaches length, one
that is higher for prompts with long answers does not. Which numbers, and what follows from them, is for others to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

FEWEST = 3
"""Samples below which a correlation says nothing."""


def within(groups: Iterable[Sequence[tuple[float, float]]]) -> tuple[float, int] | None:
    """The correlation over all samples of the groups, each less its group's mean, and of how many; `None` where either does not vary.

    >>> within([[(1.0, 10.0), (2.0, 20.0)], [(1.0, 50.0), (3.0, 70.0)]])
    (1.0, 4)
    """
    found: list[tuple[float, float]] = []
    for group in groups:
        if len(group) > 1:
            mine, other = (math.fsum(axis) / len(group) for axis in zip(*group, strict=True))
            found += [(x - mine, y - other) for x, y in group]
    if len(found) < FEWEST:
        return None
    first, second = (_unit(axis) for axis in zip(*found, strict=True))
    if not first or not second:
        return None
    r = math.fsum(x * y for x, y in zip(first, second, strict=True))
    return max(-1.0, min(1.0, round(r, 9))), len(found)


def _unit(axis: Sequence[float]) -> list[float]:
    """The numbers as a vector of length 1; empty where they are all 0, but for what rounding leaves of equal numbers."""
    largest = max(map(abs, axis))
    if largest < 1e-9:
        return []
    scaled = [value / largest for value in axis]
    length = math.sqrt(math.fsum(value * value for value in scaled))
    return [value / length for value in scaled]
