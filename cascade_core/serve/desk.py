"""Rows to verdicts for many who wait at once, whatever they are asked for: bounded, joined, counted; for one event loop.

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
from cascade_core.serve.inflight import Entry, Inflight, Key, another_row, identity
from cascade_core.serve.metrics import Metrics
from cascade_core.serve.wire import Refused
from cascade_core.verdict import Verdict


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

    async def scores(self, rows: Sequence[Row]) -> list[Score]:
        """One verdict for each row.

        Raises:
            Refused: as `begin`, or the scorer has been closed meanwhile.
        """
        entries = self.begin(rows)
        try:
            return [(await asyncio.shield(entry.future)).score for entry in entries]
        except ScoringError as cause:
            raise closing(cause) from cause

    def begin(self, rows: Sequence[Row], own: dict[Key, Entry] | None = None) -> list[Entry]:
        """The requests that the rows are, all of them begun, or none where one is refused.

        What is bounded are rows that have no verdict yet, not those who wait at a barrier with one: so a barrier cannot keep away
        what it waits for. A request with more rows than may wait is begun when nothing waits.

        Args:
            own: those of the rows' step so far, which are its verdicts on equal rows also when they are there; new ones are added.

        Raises:
            Refused: too many wait already, the scorer has been closed, or a `request_id` is that of another row.
        """
        own = {} if own is None else own
        found: dict[Key, Entry] = {}
        new: dict[Key, tuple[Row, bytes]] = {}
        keys = []
        for row in rows:
            key, digest = identity(row)
            known = own.get(key) or self.inflight.find(key)
            if known is not None:
                found[key] = known
            if (known.digest if known is not None else new.setdefault(key, (row, digest))[1]) != digest:
                raise another_row(row["request_id"])
            keys.append(key)
        self._check_room(len(new))
        for row, key in zip(rows, keys, strict=True):
            if key in new:
                found[key] = self._begin(key, *new.pop(key))
            else:
                self.metrics.joined.labels(row["domain"]).inc()
        own.update(found)
        return [found[key] for key in keys]

    def _check_room(self, new: int) -> None:
        waiting = len(self.inflight)
        if new and waiting and waiting + new > self._most_rows:
            self.metrics.refused.labels("rows").inc()
            raise Refused(
                f"{waiting} rows wait for their verdicts already (allowed: {self._most_rows}); ask again later",
                status=503,
                again=1,
            )

    def _begin(self, key: Key, row: Row, digest: bytes) -> Entry:
        begun = self.inflight.clock()
        try:
            verdict = self.scorer.verdict(row)
        except ScoringError as cause:
            raise closing(cause) from cause
        entry = Entry(key, row["domain"], row["id"], digest, verdict, asyncio.wrap_future(verdict), begun)
        entry.future.add_done_callback(lambda done: self._count(entry, done))
        self.inflight.begin(entry)
        return entry

    def _count(self, entry: Entry, done: asyncio.Future[Verdict]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        score = done.result().score
        outcome = "failed" if not score.is_judged else "limit" if score.is_limit else "scored"
        self.metrics.verdicts.labels(entry.domain, outcome).inc()
        self.metrics.seconds.labels(entry.domain).observe(self.inflight.clock() - entry.begun)


def closing(cause: ScoringError) -> Refused:
    """The refusal of a service that is ending."""
    return Refused(f"the service is ending: {cause}", status=503, again=2)
