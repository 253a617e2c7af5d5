"""Responses to verdicts, in processes that are killed at their limits; never raises for a sample.

`Scorer` turns rows into requests, hands them to a `pool.Pool`, and turns what comes back into `Score`s in the rows' order.
There is one pool for domains that compute and one for domains that wait for something else (lane `io`), so that neither's rows
stand behind the other's.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cascade_core.domain import BatchStats, DomainRef, Score
from cascade_core.errors import ScoringError
from cascade_core.pool import Pool
from cascade_core.rows import Row, json_score
from cascade_core.seat import Answer, Job
from cascade_core.settings import OnRay, Scoring

if TYPE_CHECKING:
    from cascade_core.fleet.fleet import Fleet

_JUDGED = ("id", "prompt", "answer", "mode", "source", "meta", "response", "prefill", "truncated", "turns")
"""The fields that a verdict may depend on. Rows that agree in them are one sample."""


_BATCH = 128

Handed = dict[bytes, Job]
"""Samples that were handed over one by one, to be picked up by `Scorer.verdicts`; whoever makes one keeps it, empty at first."""


@dataclass(frozen=True)
class Verdict:
    """A score, and what it took in seconds of the clock: in the queue (a try that failed counts there), and to be judged.

    `ended` is a reading of the monotonic clock.
    """

    score: Score
    queue_seconds: float
    run_seconds: float
    ended: float


@dataclass(frozen=True)
class Look:
    """One verdict with what it cost: seconds of the clock and of CPU time, bytes that its process held afterwards.

    `explanation` is the domain's own, `trouble` why there is none. Without a verdict of the domain (a limit, a failure) nothing
    was measured: the numbers are `None`.
    """

    score: Score
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    held_bytes: int | None = None
    explanation: Mapping[str, Any] | None = None
    trouble: str = ""


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
        job = _request(row, self.domains, ahead)
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
                found += [_request(row, self.domains, known) for row in rows[start : start + _BATCH]]
                self._submit(list(islice(known.values(), before, None)))
            wait([job.future for job in found if isinstance(job, Job)])  # once, not once for each
            return [_timed(one) for one in found]
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
                    score = _verdict(verdict)
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
        verdict = _request(row, self.domains, known)
        if isinstance(verdict, Job) and len(known) > before:
            self._submit([verdict])
        return dict(row), verdict, verdict.body if isinstance(verdict, Job) else b""

    def submit(self, row: Mapping[str, Any]) -> Future[Score]:
        """Begins to judge one row; for callers that must not wait, such as an event loop.

        Raises:
            ScoringError: the scorer is closed.
        """
        promise: Future[Score] = Future()
        promise.set_running_or_notify_cancel()
        verdict = _request(row, self.domains, {})
        if isinstance(verdict, Score):
            promise.set_result(verdict)
            return promise
        verdict.future.add_done_callback(lambda future: _keep(promise, future))
        self._submit([verdict])
        return promise

    def look(self, rows: Sequence[Mapping[str, Any]], *, explain: bool = False) -> list[Look]:
        """Judges rows one after another, each anew, and says what each verdict cost; `explain` asks for the domain's reasons.

        For people and measurements: what `score` says of a row is not changed by it, and is what counts.

        Raises:
            ScoringError: the scorer is closed.
        """
        looks = []
        for row in rows:
            job = _request(row, self.domains, {}, explain=explain)
            if isinstance(job, Job):
                self._submit([job])
                looks.append(_look(job.future.result()))
            else:
                looks.append(Look(job))
        return looks

    def reply(self, row: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> Future[str | None]:
        """Asks the domain of a row for the environment's next turn (`Domain.reply`); does not wait.

        The future raises ScoringError where it failed twice, ran into a limit, or gave no text.

        Raises:
            ScoringError: the scorer is closed, or knows no such domain.
        """
        promise: Future[str | None] = Future()
        promise.set_running_or_notify_cancel()
        job = self._conversed(str(row.get("domain")), {"row": dict(row), "turns": [dict(turn) for turn in turns]})
        job.future.add_done_callback(lambda future: _keep_reply(job.domain, promise, future))
        return promise

    def most_turns(self, domain: str) -> int:
        """Turns of the model that a conversation of the domain may have; 0 where it holds none.

        Raises:
            ScoringError: the domain cannot be opened, or says nothing sensible.
        """
        return int(_replied(domain, self._conversed(domain, {}).future.result()))

    def _conversed(self, domain: str, request: Mapping[str, Any]) -> Job:
        if domain not in self.domains:
            raise ScoringError(_unknown(domain, self.domains))
        job = Job(domain, b"c", json.dumps({"domain": domain, **request}).encode())
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
            return [ScoringError(_unknown(domain, self.domains)) for _ in groups]
        jobs = [Job(domain, b"r", _group_body(domain, group, batch)) for group in groups]
        self._submit(jobs)
        answers = [job.future.result() for job in jobs]
        return [
            ScoringError(f"{domain}: rewards of a group: {answer.limit or answer.error}")
            if answer.limit or answer.error
            else json.loads(answer.body)
            for answer in answers
        ]


def _keep(promise: Future[Score], future: Future[Answer]) -> None:
    try:
        promise.set_result(_score(future.result()))
    except ScoringError as cause:
        promise.set_exception(cause)


def _keep_reply(domain: str, promise: Future[str | None], future: Future[Answer]) -> None:
    try:
        promise.set_result(_replied(domain, future.result()))
    except ScoringError as cause:
        promise.set_exception(cause)


def _replied(domain: str, answer: Answer) -> Any:
    if answer.limit or answer.error:
        raise ScoringError(f"{domain}: a turn of a conversation: {answer.limit or answer.error}")
    return json.loads(answer.body)


def _verdict(verdict: Score | Job) -> Score:
    return verdict if isinstance(verdict, Score) else _score(verdict.future.result())


def _timed(verdict: Score | Job) -> Verdict:
    if isinstance(verdict, Score):
        return Verdict(verdict, 0.0, 0.0, 0.0)
    answer = verdict.future.result()
    begun = answer.begun or answer.ended
    return Verdict(_score(answer), begun - verdict.queued, answer.ended - begun, answer.ended)


def _score(answer: Answer) -> Score:
    if answer.error:
        return Score.failed(answer.error)
    return Score(0.0, note=answer.limit) if answer.limit else json_score(json.loads(answer.body))


def _look(answer: Answer) -> Look:
    if answer.error or answer.limit:
        return Look(_score(answer), trouble=answer.error or answer.limit)
    found = json.loads(answer.body)
    return Look(**{**found, "score": json_score(found["score"])})


def _request(
    row: Mapping[str, Any], domains: Mapping[str, DomainRef], known: Handed, explain: bool | None = None
) -> Score | Job:
    """The job that judges the row, the one already known where it is the same sample; a score where none can.

    `explain` (either way) makes it a job of `look`.
    """
    domain = row.get("domain")
    if not isinstance(domain, str) or domain not in domains:
        return Score.failed(_unknown(domain, domains))
    try:
        fields = {name: row[name] for name in _JUDGED if name in row}
        more = {} if explain is None else {"explain": explain}
        body = json.dumps({"domain": domain, "row": fields, **more}).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        return Score.failed(f"row {row.get('id')!r} is not JSON: {cause}")
    return known.setdefault(body, Job(domain, b"s" if explain is None else b"x", body))


def _group_body(domain: str, group: Sequence[Mapping[str, Any]], batch: BatchStats) -> bytes:
    rows = [{name: row[name] for name in (*_JUDGED, "score") if name in row} for row in group]
    return json.dumps({"domain": domain, "group": rows, "batch": asdict(batch)}).encode()


def _unknown(domain: object, domains: Mapping[str, DomainRef]) -> str:
    return f"no domain {domain!r} is scored here (allowed: {', '.join(sorted(domains)) or 'none'})"


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
