"""Requests that are the same one: joined while it runs, answered with the kept verdict afterwards.

A row with a `request_id` is that request, however often it is sent: a client that gave up waiting and asks again causes no second
verdict. The same id over other content is refused; content is what a verdict may depend on. A row without one is joined to an equal
row that is in flight, and not kept: an error of today must not answer an equal row of tomorrow. Kept are scores and a digest of the
row, never the row itself (`kept.py`). What is in flight is never dropped. Nothing outlives the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from cascade_core.request import JUDGED
from cascade_core.rows import score_json
from cascade_core.serve.kept import Kept
from cascade_core.serve.wire import Refused, dump
from cascade_core.verdict import Verdict

Key = tuple[str, str | bytes]
"""A request's id, or the digest of a row without one."""

_ENTRY_BYTES = 2000  # of an answer that is kept, beside its JSON


@dataclass(eq=False)
class Entry:
    """One request: what it is about, its verdict to come (for threads, and for the event loop), and since when (monotonic clock)."""

    key: Key
    domain: str
    task: str
    digest: bytes
    verdict: Future[Verdict]
    future: asyncio.Future[Verdict]
    begun: float
    told: float = field(default=0.0)  # when the watchdog last spoke of it


class Inflight:
    """What runs, and what has been answered; for one event loop.

    Args:
        kept: where answers are kept.
        clock: counts seconds.
    """

    def __init__(self, kept: Kept[Key, Entry], clock: Callable[[], float] = time.monotonic) -> None:
        self._kept, self.clock = kept, clock
        self._running: dict[Key, Entry] = {}
        self._answered: dict[
            str, tuple[float, float]
        ] = {}  # by domain: the last answer, and the youngest request with one

    def __len__(self) -> int:
        return len(self._running)

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

    def find(self, key: Key) -> Entry | None:
        """The request, if it runs or its answer is kept."""
        return self._running.get(key) or self._kept.get(key)

    def begin(self, entry: Entry) -> None:
        """A new request, until its future is done."""
        self._running[entry.key] = entry
        entry.future.add_done_callback(lambda future: self._done(entry, future))

    def _done(self, entry: Entry, future: asyncio.Future[Verdict]) -> None:
        self._running.pop(entry.key, None)
        youngest = self._answered.get(entry.domain, (0.0, entry.begun))[1]
        self._answered[entry.domain] = (self.clock(), max(youngest, entry.begun))
        if entry.key[0] == "id" and not future.cancelled() and future.exception() is None:
            self._kept.put(entry.key, entry, _ENTRY_BYTES + len(dump(score_json(future.result().score))))


def identity(row: Mapping[str, Any]) -> tuple[Key, bytes]:
    """The request that a row is, and the digest of its content."""
    content = digest({name: row[name] for name in ("domain", *JUDGED) if name in row})
    return (("id", row["request_id"]) if row.get("request_id") else ("row", content)), content


def digest(value: Any) -> bytes:
    """What recognises a value of JSON again."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def another_row(request_id: str) -> Refused:
    """The refusal of an id that is taken."""
    return Refused(
        f"request_id {request_id[:80]!r} was that of another row; a request has an id of its own",
        status=409,
        field="request_id",
        found=request_id,
        allowed="an id that no other row had",
    )
