"""Rows to verdicts for many who wait at once: bounded, joined, counted; for one event loop.

No thread waits for anybody: a verdict is a future of the scorer, whose processes also bound how much runs at once, domain by
domain (`workers`, `concurrency`). What may wait is bounded twice, in rows and in bytes of bodies: beyond that a request is refused with
503 and `Retry-After`, and costs nothing. A request whose client has gone is judged all the same, and its verdict kept for the retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cascade_core.domain import Score
from cascade_core.errors import ScoringError
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.serve.answering import Room
from cascade_core.serve.inflight import Entry, Inflight, Key, another_row
from cascade_core.serve.metrics import Metrics
from cascade_core.serve.wire import Refused


class Desk:
    """Where rows are handed in.

    Args:
        most_rows: rows that may wait for their verdict at once.
        most_bytes: bytes of bodies that may be held at once.
    """

    def __init__(
        self, scorer: Scorer, inflight: Inflight, metrics: Metrics, *, most_rows: int, most_bytes: int
    ) -> None:
        self.scorer, self.inflight, self.metrics = scorer, inflight, metrics
        self._most_rows = most_rows
        self.room = Room(most_bytes, metrics.refused.labels("bytes").inc)
        metrics.watch(lambda: len(inflight), lambda: inflight.kept, lambda: self.room.bytes)

    async def scores(self, rows: Sequence[Row]) -> list[Score]:
        """One verdict for each row.

        Raises:
            Refused: too many wait already, the scorer has been closed, or a `request_id` is that of another row.
        """
        entries = self._entries(rows)
        try:
            return [await asyncio.shield(entry.future) for entry in entries]
        except ScoringError as cause:
            raise closing(cause) from cause

    def _entries(self, rows: Sequence[Row]) -> list[Entry]:
        """All are looked up before the first begins: a request is begun as a whole or not at all."""
        found = [self.inflight.find(row) for row in rows]
        new: dict[Key, bytes] = {}
        for row, one in zip(rows, found, strict=True):
            if not isinstance(one, Entry) and new.setdefault(*one) != one[1]:
                raise another_row(row["request_id"])
        if new and len(self.inflight) + len(new) > self._most_rows:
            self.metrics.refused.labels("rows").inc()
            raise Refused(
                f"{len(self.inflight)} rows wait for their verdicts already (allowed: {self._most_rows}); ask again later",
                status=503,
                again=1,
            )
        begun: dict[Key, Entry] = {}
        try:
            return [self._entry(row, one, begun) for row, one in zip(rows, found, strict=True)]
        except ScoringError as cause:
            raise closing(cause) from cause

    def _entry(self, row: Row, found: Entry | tuple[Key, bytes], begun: dict[Key, Entry]) -> Entry:
        """The request that the row is: one of before, one that another row of this request began, or a new one."""
        known = found if isinstance(found, Entry) else begun.get(found[0])
        if known is not None:
            self.metrics.joined.labels(row["domain"]).inc()
            return known
        key, digest = found if isinstance(found, tuple) else (found.key, found.digest)
        begun[key] = self._begin(row, key, digest)
        return begun[key]

    def _begin(self, row: Row, key: Key, digest: bytes) -> Entry:
        begun = self.inflight.clock()
        future = asyncio.wrap_future(self.scorer.submit(row))
        entry = Entry(key, row["domain"], row["id"], digest, future, begun)
        future.add_done_callback(lambda done: self._count(entry, done))
        self.inflight.begin(entry)
        return entry

    def _count(self, entry: Entry, done: asyncio.Future[Score]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        score = done.result()
        outcome = "failed" if not score.is_judged else "limit" if score.is_limit else "scored"
        self.metrics.verdicts.labels(entry.domain, outcome).inc()
        self.metrics.seconds.labels(entry.domain).observe(self.inflight.clock() - entry.begun)


def closing(cause: ScoringError) -> Refused:
    """The refusal of a service that is ending."""
    return Refused(f"the service is ending: {cause}", status=503, again=2)
