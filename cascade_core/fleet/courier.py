"""What runs on a node of the cluster: an actor that carries jobs to this node's own pool, and answers back.

It judges nothing itself. The pool's processes are children of the actor: they are killed at their limits as on any machine, and die with
the actor, which dies with its node or with the driver. Answers are fetched by long polling, several at a time, so that one that
takes long holds up no other. Clocks of two machines do not agree: times travel as durations.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.pool import Pool
from cascade_core.seat import Answer, Job
from cascade_core.settings import Scoring

Parcel = tuple[int, str, bytes, bytes]
"""A job on its way: its number, domain, kind and body."""

Receipt = tuple[int, bytes, str, str, float]
"""An answer on its way: the job's number, body, limit, error, and the seconds that it ran; negative where it never began."""

POLL_SECONDS = 5.0  # at most, that `take` waits for a first answer
_GATHER_SECONDS = 0.05  # at most, that a first answer waits for others


class Courier:
    """One node's pool of `workers` processes. `put`, `take` and `close` may be called side by side."""

    def __init__(
        self, domains: Mapping[str, DomainRef], resources: Mapping[str, str], settings: Mapping[str, Any], workers: int
    ) -> None:
        self._pool = Pool(domains, resources, Scoring(**settings), workers, _path())
        self._done: list[Receipt] = []
        self._news = threading.Condition()
        self._wanted = 1
        self._closed = False

    def put(self, parcels: Sequence[Parcel]) -> None:
        """Takes jobs in; does not wait for them."""
        jobs = []
        for number, domain, kind, body in parcels:
            job = Job(domain, kind, body)
            job.future.add_done_callback(partial(self._deliver, number))
            jobs.append(job)
        self._pool.submit(jobs)

    def take(self, wanted: int) -> tuple[list[Receipt], dict[str, bool]]:
        """Answers that have come, and which domains have rewards of their own; waits for up to `wanted`, not for long."""
        with self._news:
            self._wanted = 1
            if self._news.wait_for(lambda: self._done or self._closed, POLL_SECONDS) and wanted > 1:
                self._wanted = wanted
                self._news.wait_for(lambda: len(self._done) >= wanted or self._closed, _GATHER_SECONDS)
            done, self._done = self._done, []
        return done, dict(self._pool.overrides)

    def close(self) -> None:
        """Closes the domains and ends the processes."""
        self._pool.close()
        with self._news:
            self._closed = True
            self._news.notify_all()

    def _deliver(self, number: int, future: Future[Answer]) -> None:
        try:
            answer = future.result()
        except ScoringError:  # closed; the driver has told everybody who waits
            return
        ran = answer.ended - answer.begun if answer.begun else -1.0
        with self._news:
            self._done.append((number, answer.body, answer.limit, answer.error, ran))
            if len(self._done) >= self._wanted:
                self._news.notify_all()


def _path() -> list[str]:
    """What a scoring process may import: what any process on this node can, without the folders that Ray adds for its own."""
    import ray

    own = Path(ray.__file__).parent
    return [entry for entry in sys.path if not Path(entry).is_relative_to(own)]
