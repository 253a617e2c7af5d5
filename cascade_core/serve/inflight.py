"""Requests that are the same one: joined while it runs, answered with the kept verdict afterwards.

A row with a `request_id` is that request, however often it is sent: a client that gave up waiting and asks again causes no second
verdict. The same id over other content is refused. A row without one is joined to an equal row that is in flight, and not kept: an error
of today must not answer an equal row of tomorrow. Kept are scores and a digest of the row, never the row itself; at most
`count` of them, for `seconds`. What is in flight is never dropped. Nothing outlives the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cascade_core.domain import Score
from cascade_core.serve.wire import Refused

Key = tuple[str, str | bytes]
"""A request's id, or the digest of a row without one."""


@dataclass(eq=False)
class Entry:
    """One request: what it is about, since when (monotonic clock), and its verdict to come."""

    key: Key
    domain: str
    task: str
    digest: bytes
    future: asyncio.Future[Score]
    begun: float
    told: float = field(default=0.0)  # when the watchdog last spoke of it


class Inflight:
    """What runs, and what has been answered; for one event loop.

    Args:
        count: kept answers at most.
        seconds: how long an answer is kept.
        clock: counts seconds.
    """

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._seconds, self.clock = count, seconds, clock
        self._running: dict[Key, Entry] = {}
        self._answered: dict[
            str, tuple[float, float]
        ] = {}  # by domain: the last answer, and the youngest request with one
        self._kept: OrderedDict[Key, tuple[float, Entry]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._running)

    @property
    def kept(self) -> int:
        """Answers that are kept now."""
        return len(self._kept)

    def running(self) -> Iterator[Entry]:
        """What runs, the oldest first."""
        yield from list(self._running.values())

    def hangs(self, entry: Entry, seconds: float) -> bool:
        """Whether it has waited so long for its own sake: requests behind it are answered, or none of its domain is any more.

        Where all wait because there are many of them, they are answered in the order in which they came.
        """
        last, youngest = self._answered.get(entry.domain, (entry.begun, entry.begun))
        now = self.clock()
        if now - entry.begun < seconds:
            return False
        return youngest > entry.begun + seconds / 10 or now - max(last, entry.begun) >= seconds

    def find(self, row: Mapping[str, Any]) -> Entry | tuple[Key, bytes]:
        """The request that the row is; else its key and digest, for `begin`.

        Raises:
            Refused: its `request_id` is that of another row; status 409.
        """
        digest = _digest(row)
        key: Key = ("id", row["request_id"]) if row.get("request_id") else ("row", digest)
        self._forget()
        found = self._running.get(key) or self._kept.get(key, (0.0, None))[1]
        if found is None:
            return key, digest
        if found.digest != digest:
            raise another_row(str(row["request_id"]))
        return found

    def begin(self, entry: Entry) -> None:
        """A new request, until its future is done."""
        self._running[entry.key] = entry
        entry.future.add_done_callback(lambda future: self._done(entry, future))

    def _done(self, entry: Entry, future: asyncio.Future[Score]) -> None:
        self._running.pop(entry.key, None)
        youngest = self._answered.get(entry.domain, (0.0, entry.begun))[1]
        self._answered[entry.domain] = (self.clock(), max(youngest, entry.begun))
        if entry.key[0] == "id" and not future.cancelled() and future.exception() is None:
            self._kept[entry.key] = (self.clock(), entry)
            self._forget()

    def _forget(self) -> None:
        oldest = self.clock() - self._seconds
        while self._kept and (len(self._kept) > self._count or next(iter(self._kept.values()))[0] < oldest):
            self._kept.popitem(last=False)


def another_row(request_id: str) -> Refused:
    """The refusal of an id that is taken."""
    return Refused(
        f"request_id {request_id[:80]!r} was that of another row; a request has an id of its own",
        status=409,
        field="request_id",
        found=request_id,
        allowed="an id that no other row had",
    )


def _digest(row: Mapping[str, Any]) -> bytes:
    content = {name: value for name, value in row.items() if name != "request_id"}
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).digest()
