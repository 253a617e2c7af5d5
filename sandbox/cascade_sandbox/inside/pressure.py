"""How full the memory of this container is, so that a run that fills it is ended before the kernel has to choose whom to kill.

What it could choose is not sure to be the program: memory that lies in files without a name, in shared pages that nobody maps any
more or in sockets belongs to no process, and a program may take back the mark that makes it the first to go. So the
supervisor looks, as often as the free memory could be filled between two looks, and ends the run that leaves less than an eighth of it.
Nothing is read before a program could have done so, which is after most runs are over.

Cgroup v2 and v1; where there is no container, or no limit, nothing is watched.
"""

from __future__ import annotations

import os
import re
import time
from typing import Optional

BYTES_PER_SECOND = 4 << 30
"""What one core can fill at most, generously."""

SHORTEST = 0.005  # seconds between two looks
UNLIMITED = 1 << 50
KINDS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", ("active_file", "inactive_file")),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")),
)  # fmt: skip
"""Folder, limit, what is used, and the fields of `memory.stat` that the kernel takes back before it kills anybody."""


class Memory:
    """The memory of this container.

    Args:
        in_container: where it is False, nothing is watched.
    """

    def __init__(self, in_container: bool) -> None:
        self._limit = 0
        self._used, self._stat, self._free_fields = "", "", ("", "")
        for folder, limit, used, fields in KINDS if in_container else ():
            found = _number(os.path.join(folder, limit))
            if found is not None and found < UNLIMITED:
                self._limit, self._free_fields = found, fields
                self._used, self._stat = os.path.join(folder, used), os.path.join(folder, "memory.stat")
                break
        self._baseline = self.used() if self._limit else 0
        self._rate = BYTES_PER_SECOND * (os.cpu_count() or 1)

    def used(self) -> int:
        """Bytes that the kernel cannot take back; 0 where that cannot be read."""
        used = _number(self._used)
        try:
            with open(self._stat, encoding="ascii") as file:
                stat = dict(re.findall(r"^(\w+) (\d+)$", file.read(), re.MULTILINE))
        except OSError:
            return 0
        return (used or 0) - sum(int(stat.get(field, 0)) for field in self._free_fields)

    def watch(self, own: int) -> Watch:
        """A watch for one run, for which the supervisor itself holds so many bytes."""
        return Watch(self, self._limit, self._baseline + own, self._rate)


class Watch:
    """When to look again, and whether this run has filled the memory."""

    def __init__(self, memory: Memory, limit: int, own: int, rate: int) -> None:
        self._memory = memory
        self._rate = rate
        self._most = max(limit - limit // 8, own + limit // 8)
        self.until = self._next(own) if limit else float("inf")

    def is_up(self) -> bool:
        """Whether the run must end; looks only when it may have to."""
        if time.monotonic() < self.until:
            return False
        used = self._memory.used()
        self.until = self._next(used)
        return used > self._most

    def _next(self, used: int) -> float:
        return time.monotonic() + max((self._most - used) / self._rate, SHORTEST)


def _number(path: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):  # not there, or "max"
        return None
