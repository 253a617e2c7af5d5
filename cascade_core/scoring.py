"""Responses to verdicts, in processes that are killed at their limits; never raises for a sample.

`Scorer` makes requests of rows (`request.py`), hands them to a `pool.Pool`, and gives back what the answers say (`verdict.py`),
in the rows' order. There is one pool for domains that compute and one for domains that wait for something else (lane `io`),
so that neither's rows stand behind the other's.
Whatever goes wrong with one sample is the `error` of its score: a broken task, a verifier that raises, a lost process.
Only CPU time or memory used up by judging the response is a verdict of its own, value 0 with a note that begins with
`limit`. Advantages, files and error rates are `judge.py`'s; HTTP is not here.

    with Scorer({"math": registry().reference("math")}, Scoring()) as scorer:
        scores = scorer.score(rows)
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from cascade_core import request
from cascade_core.domain import BatchStats, DomainRef, Score
from cascade_core.errors import ScoringError
from cascade_core.pool import Pool
from cascade_core.request import Handed
from cascade_core.rows import Row
from cascade_core.seat import Answer, Job
from cascade_core.settings import OnRay, Scoring
from cascade_core.verdict import Look, Verdict, replied, score_of

if TYPE_CHECKING:
    from cascade_core.fleet.fleet import Fleet

T = TypeVar("T")
_BATCH = 128


class Scorer:
    """Judges rows. Safe to use from several threads at once, and to close twice.

    Args:
        domains: what a row's `domain` may say, and the domain that this stands for.
        settings: workers and limits.
        resources: names to addresses, for `Domain.open`.

    Raises:
        ScoringError: the workers are to be those of a Ray cluster, and it cannot be used (`fleet.fleets`).
    """

    def __init__(
        self, domains: Mapping[str, DomainRef], settings: Scoring, resources: Mapping[str, str] | None = None
    ) -> None:
        self.domains = dict(domains)
        self.settings = settings
        self._lanes = {name: "io" if ref.lane == "io" else "cpu" for name, ref in self.domains.items()}
        self._pools: dict[str, Pool | Fleet] = {}
        self._hire(resources or {})
        self._closed = False

    def _hire(self, resources: Mapping[str, str]) -> None:
        """A pool for each lane: of processes here, or, for lanes that have domains, on the nodes of a Ray cluster."""
        settings = self.settings
        lanes = {
            "cpu": (self._of("cpu"), settings),
            "io": (self._of("io"), settings.model_copy(update={"wall_seconds": settings.io_wall_seconds})),
        }
        self.workers = _cores() if isinstance(settings.workers, OnRay) else settings.workers or _cores()
        self.concurrency = settings.concurrency or 2 * self.workers
        if isinstance(settings.workers, OnRay):
            from cascade_core.fleet import fleets

            found = fleets(lanes, resources, settings.workers.ray)
            self._pools.update(found)
            self.workers = found["cpu"].workers if "cpu" in found else self.workers
            self.concurrency = found["io"].workers if "io" in found else self.concurrency
        for lane, count in (("cpu", self.workers), ("io", self.concurrency)):
            if lane not in self._pools:
                domains, limits = lanes[lane]
                self._pools[lane] = Pool(domains, resources, limits, count)

    def __enter__(self) -> Scorer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the domains and ends the processes."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()

    @property
    def is_closed(self) -> bool:
        """Whether no more rows are judged."""
        return self._closed

    def _of(self, lane: str) -> dict[str, DomainRef]:
        return {name: ref for name, ref in self.domains.items() if self._lanes[name] == lane}

    def _submit(self, jobs: Sequence[Job]) -> None:
        if self._closed:
            raise ScoringError("this scorer is closed")
        for lane, pool in self._pools.items():
            if own := [job for job in jobs if self._lanes[job.domain] == lane]:
                pool.submit(own)

    def score(self, rows: Sequence[Mapping[str, Any]]) -> list[Score]:
        """One score per row, in order; rows that are the same sample are judged once.

        Raises:
            ScoringError: the scorer is closed, before or meanwhile.
        """
        return [verdict.score for verdict in self.verdicts(rows)]

    def hand_over(self, row: Mapping[str, Any], handed: Handed) -> None:
        """Begins to judge a row whose verdict is wanted later, by `verdicts`; does not wait. Safe from several threads.

        Raises:
            ScoringError: the scorer is closed.
        """
        ahead: Handed = {}
        job = request.sample(row, self.domains, ahead)
        if isinstance(job, Job) and handed.setdefault(job.body, job) is job:
            self._submit([job])

    def verdicts(self, rows: Sequence[Mapping[str, Any]], handed: Handed | None = None) -> list[Verdict]:
        """`score`, with the times; rows that were handed over into `handed` are not judged again, others there are forgotten.

        Raises:
            ScoringError: the scorer is closed, before or meanwhile.
        """
        known: Handed = {} if handed is None else handed
        found: list[Score | Job] = []
        try:
            for start in range(0, len(rows), _BATCH):  # the first are judged while the last are still being prepared
                before = len(known)
                found += [request.sample(row, self.domains, known) for row in rows[start : start + _BATCH]]
                self._submit(list(islice(known.values(), before, None)))
            wait([job.future for job in found if isinstance(job, Job)])  # once, not once for each
            return [Verdict.of(one) for one in found]
        finally:
            for job in known.values():
                job.future.cancel()  # of no effect but when interrupted

    def stream(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Row, Score]]:
        """Rows with their scores, in order, as they come; reads at most a few dozen rows ahead.

        An exception of `rows` itself is raised after the rows before it have been yielded.
        """
        ahead: deque[tuple[Row, Score | Job, bytes]] = deque()
        known: Handed = {}
        source, failure, more = iter(rows), None, True
        most = 32 + 4 * (self.workers + (self.concurrency if "io" in self._lanes.values() else 0))
        try:
            while more or ahead:
                while more and len(ahead) < most:
                    try:
                        row = next(source, None)
                    except Exception as cause:  # noqa: BLE001 - raised below, in its turn
                        row, failure = None, cause
                    more = row is not None
                    if row is not None:
                        ahead.append(self._send(row, known))
                if ahead:
                    row, verdict, key = ahead.popleft()
                    score = verdict if isinstance(verdict, Score) else score_of(verdict.future.result())
                    if not any(other is verdict for _, other, _ in ahead):
                        known.pop(key, None)
                    yield row, score
            if failure is not None:
                raise failure
        finally:
            for _, verdict, _ in ahead:
                if isinstance(verdict, Job):
                    verdict.future.cancel()

    def _send(self, row: Mapping[str, Any], known: Handed) -> tuple[Row, Score | Job, bytes]:
        before = len(known)
        verdict = request.sample(row, self.domains, known)
        if isinstance(verdict, Job) and len(known) > before:
            self._submit([verdict])
        return dict(row), verdict, verdict.body if isinstance(verdict, Job) else b""

    def submit(self, row: Mapping[str, Any]) -> Future[Score]:
        """Begins to judge one row; for callers that must not wait, such as an event loop.

        Raises:
            ScoringError: the scorer is closed.
        """
        return self._asked(row, lambda verdict: verdict.score)

    def verdict(self, row: Mapping[str, Any]) -> Future[Verdict]:
        """`submit`, with the times.

        Raises:
            ScoringError: the scorer is closed.
        """
        return self._asked(row, lambda verdict: verdict)

    def _asked(self, row: Mapping[str, Any], read: Callable[[Verdict], T]) -> Future[T]:
        job = request.sample(row, self.domains, {})
        if isinstance(job, Score):
            known: Future[T] = Future()
            known.set_result(read(Verdict.of(job)))
            return known
        self._submit([job])
        queued = job.queued
        return _promise(job, lambda answer: read(Verdict.read(queued, answer)))

    def look(self, rows: Sequence[Mapping[str, Any]], *, explain: bool = False) -> list[Look]:
        """Judges rows one after another, each anew, and says what each verdict cost; `explain` asks for the domain's reasons.

        For people and measurements: what `score` says of a row is not changed by it, and is what counts.

        Raises:
            ScoringError: the scorer is closed.
        """
        looks = []
        for row in rows:
            job = request.sample(row, self.domains, {}, explain=explain)
            if isinstance(job, Job):
                self._submit([job])
                looks.append(Look.of(job.future.result()))
            else:
                looks.append(Look(job))
        return looks

    def reply(self, row: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> Future[str | None]:
        """Asks the domain of a row for the environment's next turn (`Domain.reply`); does not wait.

        The future raises ScoringError where it failed twice, ran into a limit, or gave no text.

        Raises:
            ScoringError: the scorer is closed, or knows no such domain.
        """
        job = self._conversed(str(row.get("domain")), {"row": dict(row), "turns": [dict(turn) for turn in turns]})
        return _promise(job, partial(replied, job.domain))

    def most_turns(self, domain: str) -> int:
        """Turns of the model that a conversation of the domain may have; 0 where it holds none.

        Raises:
            ScoringError: the domain cannot be opened, or says nothing sensible.
        """
        return int(replied(domain, self._conversed(domain, {}).future.result()))

    def _conversed(self, domain: str, more: Mapping[str, Any]) -> Job:
        if domain not in self.domains:
            raise ScoringError(request.unknown(domain, self.domains))
        job = request.conversation(domain, more)
        self._submit([job])
        return job

    def overrides_rewards(self, domain: str) -> bool:
        """Whether the domain has a `rewards` of its own; true where no row of it has been judged yet."""
        return self._pools[self._lanes.get(domain, "cpu")].overrides.get(domain, True)

    def rewards(self, domain: str, group: Sequence[Mapping[str, Any]], batch: BatchStats) -> list[float]:
        """`Domain.rewards` of one group of judged rows (each with its `score`), one finite number per row.

        Raises:
            ScoringError: it failed twice, ran into a limit, or gave anything but finite numbers, one per row.
        """
        (found,) = self.group_rewards(domain, [group], batch)
        if isinstance(found, ScoringError):
            raise found
        return found

    def group_rewards(
        self, domain: str, groups: Sequence[Sequence[Mapping[str, Any]]], batch: BatchStats
    ) -> list[list[float] | ScoringError]:
        """`rewards` of many groups, side by side; what would be raised for a group stands in its place."""
        if domain not in self.domains:
            return [ScoringError(request.unknown(domain, self.domains)) for _ in groups]
        jobs = [request.group(domain, group, batch) for group in groups]
        self._submit(jobs)
        answers = [job.future.result() for job in jobs]
        return [
            ScoringError(f"{domain}: rewards of a group: {answer.limit or answer.error}")
            if answer.limit or answer.error
            else json.loads(answer.body)
            for answer in answers
        ]


def _promise(job: Job, read: Callable[[Answer], T]) -> Future[T]:
    """What `read` makes of the job's answer, once it is there. It cannot be cancelled."""
    promise: Future[T] = Future()
    promise.set_running_or_notify_cancel()

    def keep(answered: Future[Answer]) -> None:
        try:
            promise.set_result(read(answered.result()))
        except Exception as cause:  # noqa: BLE001 - whoever waits must be told, whatever it was
            promise.set_exception(cause)

    job.future.add_done_callback(keep)
    return promise


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
