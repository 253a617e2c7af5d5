"""What was answered, for whoever asks again: the newest, bounded by number, age and bytes; for one event loop."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key; the oldest are forgotten first.

    Args:
        most: answers that are kept; a value may hold several.
        seconds: how long.
        most_bytes: of all of them together, as those say who put them there.
        clock: counts seconds.
    """

    def __init__(self, most: int, seconds: float, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._most_bytes, self.clock = most, seconds, most_bytes, clock
        self._found: OrderedDict[K, tuple[V, float, int, int]] = OrderedDict()
        self._bytes = self._count = 0

    def __len__(self) -> int:
        """Answers that are kept now."""
        return self._count

    def get(self, key: K) -> V | None:
        """The value, if it is still there."""
        self._forget()
        return self._found[key][0] if key in self._found else None

    def put(self, key: K, value: V, size: int, count: int = 1) -> None:
        """Keeps a new value of so many bytes, with so many answers."""
        self._found[key] = value, self.clock(), size, count
        self._bytes, self._count = self._bytes + size, self._count + count
        self._forget()

    def _forget(self) -> None:
        oldest = self.clock() - self._seconds
        while self._found:
            _, since, size, count = next(iter(self._found.values()))
            if self._count <= self._most and self._bytes <= self._most_bytes and since >= oldest:
                return
            self._found.popitem(last=False)
            self._bytes, self._count = self._bytes - size, self._count - count
