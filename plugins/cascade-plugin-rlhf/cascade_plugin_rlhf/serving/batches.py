"""Which sequences run together: sorted by length, as many as a number of tokens allows.

A batch costs its longest sequence times their count, padding included. Neighbours in the order of length pad little, and a bound on that product
bounds memory whatever the lengths. The longest go first, so what does not fit fails at once.
"""

from __future__ import annotations

from collections.abc import Sequence


def plan(lengths: Sequence[int], most_tokens: int) -> list[list[int]]:
    """Positions in `lengths`, batch by batch; each once. A sequence longer than `most_tokens` is a batch of its own.

    >>> plan([3, 9, 4, 8], 18)
    [[1, 3], [2, 0]]
    """
    found: list[list[int]] = []
    longest = 0
    for position in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not found or longest * (len(found[-1]) + 1) > most_tokens:
            found.append([])
            longest = max(1, lengths[position])
        found[-1].append(position)
    return found
