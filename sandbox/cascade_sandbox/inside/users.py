"""Users for runs: one block of numbers for each supervisor, at random, so that no two containers share one.

The kernel counts the processes of a user across containers, and a container may see only a part of all numbers.
"""

from __future__ import annotations

import os

from .errors import Trouble

USERS = 1 << 16
"""Users that one supervisor takes, one after the other, never one twice."""

WHOLE = 1 << 28
"""A namespace of more numbers than this is the machine's own, or as good: then the low ones, which others use, are left alone."""


class Users:
    """The numbers, and `killer`, which is no run's.

    Raises:
        Trouble: this namespace has none.
    """

    def __init__(self) -> None:
        start, length = min(_largest_range("uid"), _largest_range("gid"), key=lambda found: found[1])
        first = max(start, 1 << 20 if length > WHOLE else 1000)
        end = min(start + length, (1 << 31) - 1)
        self.size = min(USERS, end - first - 1)
        if self.size < 1:
            raise Trouble(f"no users to run programs as: this namespace has {length} from {start}")
        blocks = max((end - first) // (self.size + 1), 1)
        self.killer = first + (self.size + 1) * (int.from_bytes(os.urandom(8), "big") % blocks)
        self.used = 0

    def next(self) -> int:
        """A number that no run had.

        Raises:
            Trouble: all were given out; a new container has new ones.
        """
        if self.used >= self.size:
            raise Trouble("every user of this container was given out")
        self.used += 1
        return self.killer + self.used

    def __contains__(self, uid: int) -> bool:
        return self.killer <= uid <= self.killer + self.size


def _largest_range(kind: str) -> tuple[int, int]:
    """First number and count; see user_namespaces(7)."""
    ranges = [(int(line.split()[0]), int(line.split()[2])) for line in _map(kind)]
    return max(ranges, key=lambda found: found[1])


def _map(kind: str) -> list[str]:
    with open(f"/proc/self/{kind}_map", encoding="ascii") as lines:
        return lines.readlines()
