"""The clocks of a run, on a machine that others use too.

CPU time is read from the process's own clock, which counts what it ran to the nanosecond: RLIMIT_CPU, which counts whole ticks, was
seen to end a program 8 % too early, and is only a backstop for what the supervisor does not see.

`wall_seconds` counts no time in which the program waited for a core. When the deadline comes, the kernel is asked how long the
threads of the run waited (`/proc/<pid>/task/<tid>/schedstat`), what its own other processes took away is left out, and the
deadline moves. A program cannot buy time by competing with itself: the CPU time of its whole family is compared with
its limit too. Far behind all that is a backstop, which says that the machine is at fault.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from typing import Optional

from .bounds import Bounds
from .errors import Trouble
from .family import members

BACKSTOP = 10.0
BACKSTOP_SECONDS = 60.0
CPU_CLOCK = 2  # the kernel's CPUCLOCK_SCHED
SHORTEST = 0.01  # seconds until the next look


class Clock:
    """When to look again, and whether time is up."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._reaped = _reaped_seconds()
        self.started = time.monotonic()
        self._wall_until = self.started + bounds.wall_seconds
        self.until = min(self._wall_until, self.started + bounds.cpu_seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def is_up(self, pid: int) -> bool:
        """Whether the run of this first process used up its time; looks closely only when it may have.

        Raises:
            Trouble: it did not get enough of a core to say anything about it.
        """
        now = time.monotonic()
        if now < self.until:
            return False
        cpu_left = self._bounds.cpu_seconds - _cpu_seconds(pid)
        if cpu_left <= 0 or (now >= self._wall_until and self._is_wall_up()):
            return True
        self.until = min(self._wall_until, time.monotonic() + max(cpu_left, SHORTEST))
        return False

    def _is_wall_up(self) -> bool:
        total, delay = _family_times()
        total += _reaped_seconds() - self._reaped
        left = self._bounds.wall_seconds - (self.elapsed - delay)
        if left <= 0 or total > self._bounds.cpu_seconds:
            return True
        if self.elapsed > BACKSTOP * self._bounds.wall_seconds + BACKSTOP_SECONDS:
            raise Trouble(f"waited {delay:.0f} of {self.elapsed:.0f} seconds for a core: the machine is overloaded")
        self._wall_until = time.monotonic() + max(left, SHORTEST)
        return False


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of one process, all its threads: its clock has a number made of its own, see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | CPU_CLOCK)
    except OSError:  # ended meanwhile
        return 0.0


def _reaped_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _family_times() -> tuple[float, float]:
    """CPU seconds of the family, and the longest that one thread of it waited for a core which no other of it had."""
    total, longest = 0.0, 0.0
    tasks = []
    for member in members():
        total += member.cpu_seconds
        tasks += list(_tasks(member.pid))
    for cpu, delay in tasks:
        longest = max(longest, delay - max(total - cpu, 0.0))
    return total, longest


def _tasks(pid: int) -> Iterator[tuple[float, float]]:
    """CPU seconds and seconds of waiting for a core, of each thread."""
    try:
        for name in os.listdir(f"/proc/{pid}/task"):
            times = _schedstat(f"/proc/{pid}/task/{name}/schedstat")
            if times is not None:
                yield times
    except OSError:  # ended meanwhile
        return


def _schedstat(path: str) -> Optional[tuple[float, float]]:
    try:
        with open(path, "rb") as file:
            cpu, delay, _ = file.read().split()
    except (OSError, ValueError):  # ended meanwhile, or a kernel that does not count: then the plain clock holds
        return None
    return int(cpu) / 1e9, int(delay) / 1e9
