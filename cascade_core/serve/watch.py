"""A watchdog: names the domain and the task of requests that wait too long, so that a hang is somebody's and not everybody's.

It only tells, on standard error and in `/slow`; what ends a hanging verdict is the scorer's own limit. Rows that wait because there are
many of them are not named (`Inflight.hangs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cascade_core.serve.inflight import Inflight
from cascade_core.serve.metrics import Metrics

_TOLD = 3  # of one domain at once


class Watch:
    """Looks at what runs; one instance a service.

    Args:
        seconds: a request that hangs longer is named, and again each time that it has waited twice as long.
        say: where one line goes.
    """

    def __init__(self, inflight: Inflight, metrics: Metrics, seconds: float, say: Callable[[str], None]) -> None:
        self._inflight, self._metrics, self._seconds, self._say = inflight, metrics, seconds, say

    def slow(self) -> list[dict[str, Any]]:
        """The oldest requests of each domain that hang."""
        now, found = self._inflight.clock(), []
        counts: dict[str, int] = {}
        for entry in self._inflight.running():
            if not self._inflight.hangs(entry, self._seconds):
                continue
            counts[entry.domain] = counts.get(entry.domain, 0) + 1
            if counts[entry.domain] <= _TOLD:
                seconds = round(now - entry.begun, 1)
                found.append({"domain": entry.domain, "task": entry.task, "seconds": seconds})
        return found

    def look(self) -> None:
        """Names what hangs since the last look."""
        now = self._inflight.clock()
        named: dict[str, int] = {}
        for entry in self._inflight.running():
            waited = now - entry.begun
            if waited < 2 * entry.told or not self._inflight.hangs(entry, self._seconds):
                continue
            if not entry.told:
                self._metrics.slow.labels(entry.domain).inc()
            entry.told = waited
            named[entry.domain] = named.get(entry.domain, 0) + 1
            if named[entry.domain] <= _TOLD:
                self._say(f"domain {entry.domain!r}, task {entry.task!r}: no verdict after {waited:.0f} s")
        for domain, count in named.items():
            if count > _TOLD:
                self._say(f"domain {domain!r}: {count - _TOLD} more rows have waited so long")

    async def run(self) -> None:
        """Looks now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(min(5.0, max(0.05, self._seconds / 4)))
            self.look()
