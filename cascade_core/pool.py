"""Many scoring processes and one queue: who gets what, what is too long, what is tried again, what is replaced.

One thread owns the processes and never waits for any single one of them, so a hung or dying process delays nobody else,
and callers on other threads (or an event loop) meet only futures. A process has one job at a time; the wall clock of a
job starts when a process that has the domain open is given it.

How a job ends: with a verdict of the domain; with a verdict *limit*, when the process used up the CPU time or memory that one
verdict may have; or with an error, after one more try on a fresh process. What a job means is `scoring.py`'s.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.process import Process, Reply
from cascade_core.settings import Scoring

_OPEN_SECONDS = 60.0  # at least, for an interpreter to start and a domain to import what it needs
_CLOSE_SECONDS = 3.0  # for Domain.close
_REMEMBER_SECONDS = 30.0  # how long a domain that could not be opened twice is not tried again
_PATIENCE = 20  # failures of a domain in a row, after which a failure is not tried again


@dataclass(frozen=True)
class Answer:
    """What became of a job: JSON of the domain's own answer, or a `limit` note, or an `error`."""

    body: bytes = b""
    limit: str = ""
    error: str = ""


@dataclass(eq=False)
class Job:
    """One request for one domain. `kind` is that of `worker.REQUEST`."""

    domain: str
    kind: bytes
    body: bytes
    future: Future[Answer] = field(default_factory=Future)
    cause: str = ""  # of the first failure; not empty means: only a fresh process may try again
    running: bool = False

    def claim(self) -> bool:
        """Whether somebody still waits for it; from then on it cannot be cancelled."""
        self.running = self.running or self.future.set_running_or_notify_cancel()
        return self.running


@dataclass(eq=False)
class _Seat:
    """A process, and what it is doing."""

    process: Process
    job: Job | None = None
    opening: bool = False
    deadline: float = 0.0
    started_cpu: float = 0.0
    domains: set[str] = field(default_factory=set)
    fresh: bool = True
    overdue: bool = False
    gone: bool = False


class Pool:
    """At most `workers` processes, each of which can host all of `domains`."""

    def __init__(
        self, domains: Mapping[str, DomainRef], resources: Mapping[str, str], settings: Scoring, workers: int
    ) -> None:
        self._domains, self._resources, self._settings, self._workers = (
            dict(domains),
            dict(resources),
            settings,
            workers,
        )
        self.overrides: dict[str, bool] = {}  # whether the domain has `rewards` of its own; known once it was open
        self._path = tuple(sys.path)  # as it is now: all processes of a pool see the same modules
        self._queue: deque[Job] = deque()
        self._seats: list[_Seat] = []
        self._leaving: list[tuple[_Seat, float]] = []  # processes on their way out, and when to kill them
        self._unopenable: dict[str, tuple[float, str]] = {}
        self._failures: dict[str, int] = {}  # in a row
        self._stuck = (0.0, 0.0, "")  # no process could be started: since when, when to try again, why
        self._looked = 0.0
        self._lock = threading.Lock()
        self._new: list[Job] = []
        self._closing = False
        self._thread: threading.Thread | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues jobs; each one's future gets an `Answer`, or `ScoringError` where the pool is closed first.

        Raises:
            ScoringError: the pool is closed.
        """
        with self._lock:
            if self._closing:
                raise ScoringError("this scorer is closed")
            self._new += jobs
            if self._thread is None:
                self._selector = selectors.DefaultSelector()
                self._waker, self._alarm = socket.socketpair()
                self._waker.setblocking(False)
                self._alarm.setblocking(False)
                self._selector.register(self._alarm, selectors.EVENT_READ)
                self._thread = threading.Thread(target=self._run, name="cascade-scoring", daemon=True)
                self._thread.start()
        self._wake()

    def close(self) -> None:
        """Ends all processes; jobs that are not done get `ScoringError`. Safe to repeat."""
        with self._lock:
            self._closing = True
            thread = self._thread
        if thread is not None:
            self._wake()
            thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake; closed: it is gone
            self._waker.send(b"!")

    # From here on everything runs in the pool's own thread.

    def _run(self) -> None:
        try:
            while not self._closing:
                with self._lock:
                    self._queue.extend(self._new)
                    self._new.clear()
                self._assign()
                self._wait(self._pause())
                self._look()
                self._bury()
        finally:
            self._shut()

    def _pause(self) -> float:
        """Seconds until something must be looked at even if no process says anything."""
        if any(seat.job for seat, _ in self._leaving):
            return 0.005
        return 0.25 if self._leaving or self._queue or any(seat.job for seat in self._seats) else 5.0

    def _wait(self, seconds: float) -> None:
        for key, events in self._selector.select(seconds):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    while self._alarm.recv(4096):
                        pass
                continue
            seat, is_noise = key.data
            if seat.gone:
                continue
            if is_noise:
                if not seat.process.drain():
                    self._selector.unregister(key.fileobj)
                continue
            if events & selectors.EVENT_WRITE:
                seat.process.flush()
                self._watch(seat)
            if events & selectors.EVENT_READ:
                self._hear(seat)

    def _watch(self, seat: _Seat) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if seat.process.unsent else 0)
        self._selector.modify(seat.process.channel, events, (seat, False))

    def _hear(self, seat: _Seat) -> None:
        replies, ended = seat.process.receive()
        for reply in replies:
            if seat.job is not None and not seat.gone:
                self._take(seat, seat.job, reply)
        if ended and not seat.gone:
            self._dismiss(seat)

    def _take(self, seat: _Seat, job: Job, reply: Reply) -> None:
        if reply.kind == b"o":
            seat.domains.add(job.domain)
            self.overrides[job.domain] = json.loads(reply.body)["rewards"]
            self._begin(seat, job)
            return
        opening, seat.job, seat.opening = seat.opening, None, False
        retire, text = reply.worn, reply.body.decode("utf-8", "replace")
        if reply.kind == b"k":
            self._done(job, Answer(reply.body))
        elif reply.kind == b"l":
            self._done(job, Answer(limit=text))
        elif reply.kind == b"t":
            self._done(job, Answer(error=text))
        else:
            retire |= self._failed(job, text, opening)
        if retire:
            self._retire(seat)

    def _done(self, job: Job, answer: Answer) -> None:
        self._failures[job.domain] = 0
        job.future.set_result(answer)

    def _failed(self, job: Job, cause: str, opening: bool = False) -> bool:
        """Queues the job for a fresh process; false where this was that try, or the domain fails at everything."""
        failures = self._failures.get(job.domain, 0)
        if not job.cause and failures < _PATIENCE:
            job.cause = cause
            self._queue.appendleft(job)
            return True
        self._failures[job.domain] = failures + 1
        if opening:
            self._unopenable[job.domain] = (time.monotonic() + _REMEMBER_SECONDS, cause)
        if job.cause:
            cause = f"{cause}, twice" if cause == job.cause else f"{job.cause}; on a fresh worker: {cause}"
        job.future.set_result(Answer(error=cause))
        return False

    def _assign(self) -> None:
        """Gives queued jobs to idle processes, and starts those that are missing."""
        idle = [seat for seat in self._seats if seat.job is None]
        waiting: list[Job] = []
        while self._queue and (idle or len(self._seats) < self._workers):
            job = self._queue.popleft()
            if not job.claim() or self._refused(job):
                continue
            able = [seat for seat in idle if seat.fresh or not job.cause]
            if able:
                seat: _Seat | None = min(able, key=lambda seat: (job.domain not in seat.domains, not seat.fresh))
                idle.remove(seat)  # type: ignore[arg-type]
            else:
                if len(self._seats) >= self._workers:  # none of the idle ones is fresh, and the job needs one that is
                    self._retire(idle.pop())
                seat = self._start()
            if seat is not None:
                self._give(seat, job)
                continue
            waiting.append(job)
            if not idle:
                break
        self._queue.extendleft(reversed(waiting))

    def _refused(self, job: Job) -> bool:
        """Answers at once where the domain, or any process at all, was found not to start."""
        now = time.monotonic()
        until, cause = self._unopenable.get(job.domain, (0.0, ""))
        since, _, why = self._stuck
        if now >= until:
            cause = f"no worker can be started: {why}" if why and now > since + _REMEMBER_SECONDS else ""
        if cause:
            job.future.set_result(Answer(error=cause))
        return bool(cause)

    def _start(self) -> _Seat | None:
        now = time.monotonic()
        since, again, _ = self._stuck
        if len(self._seats) >= self._workers or now < again:
            return None
        try:
            seat = _Seat(Process(self._settings.cpu_seconds, self._settings.memory_mib, self._path))
        except OSError as cause:
            self._stuck = (since or now, now + 1.0, str(cause))
            return None
        self._stuck = (0.0, 0.0, "")
        self._seats.append(seat)
        self._selector.register(seat.process.channel, selectors.EVENT_READ, (seat, False))
        self._selector.register(seat.process.noise, selectors.EVENT_READ, (seat, True))
        return seat

    def _give(self, seat: _Seat, job: Job) -> None:
        seat.job = job
        if job.domain in seat.domains:
            self._begin(seat, job)
            return
        seat.opening = True
        seat.deadline = time.monotonic() + max(_OPEN_SECONDS, self._settings.wall_seconds)
        ref = dataclasses.asdict(self._domains[job.domain])
        self._send(seat, b"o", json.dumps({"domain": job.domain, "ref": ref, "resources": self._resources}).encode())

    def _begin(self, seat: _Seat, job: Job) -> None:
        seat.opening = seat.fresh = False
        seat.started_cpu = seat.process.cpu
        seat.deadline = time.monotonic() + self._settings.wall_seconds
        self._send(seat, job.kind, job.body)

    def _send(self, seat: _Seat, kind: bytes, body: bytes) -> None:
        seat.process.send(kind, body)
        if seat.process.unsent:
            self._watch(seat)

    def _look(self) -> None:
        """Now and then: what is overdue, and what died without closing its channel."""
        now = time.monotonic()
        if now < self._looked + 0.1:
            return
        self._looked = now
        for seat in [seat for seat in self._seats if seat.job is not None]:
            seat.overdue = now > seat.deadline
            if seat.overdue or seat.process.reap():
                self._dismiss(seat)
        for seat, deadline in self._leaving:
            if now > deadline:
                seat.process.kill()

    def _dismiss(self, seat: _Seat) -> None:
        """Kills a process; its job is settled when its CPU time is known."""
        self._release(seat)
        seat.process.kill()

    def _retire(self, seat: _Seat) -> None:
        """Lets a process without a job close its domains and end."""
        self._release(seat)
        seat.process.hang_up()

    def _release(self, seat: _Seat) -> None:
        """Frees the seat of a process that is on its way out."""
        seat.gone = True
        self._seats.remove(seat)
        self._selector.unregister(seat.process.channel)
        with contextlib.suppress(KeyError):
            self._selector.unregister(seat.process.noise)
        self._leaving.append((seat, time.monotonic() + _CLOSE_SECONDS))

    def _bury(self) -> None:
        """Settles the jobs of processes that have ended."""
        leaving, self._leaving = self._leaving, []
        for seat, deadline in leaving:
            seat.process.drain()
            if not seat.process.reap():
                self._leaving.append((seat, deadline))
                continue
            seat.process.dispose()
            if seat.job is not None:
                self._settle(seat, seat.job)

    def _settle(self, seat: _Seat, job: Job) -> None:
        limit = self._settings.cpu_seconds
        if seat.opening:
            told = f"it takes more than {_OPEN_SECONDS:g} s" if seat.overdue else seat.process.death
            self._failed(job, f"domain {self._domains[job.domain].name!r} cannot be opened: {told}", opening=True)
        elif seat.process.cpu - seat.started_cpu >= limit:
            self._done(job, Answer(limit=f"limit: {limit:g} s of CPU time"))
        elif seat.overdue:
            self._failed(job, f"no verdict within {self._settings.wall_seconds:g} s")
        else:
            self._failed(job, seat.process.death)

    def _shut(self) -> None:
        with self._lock:
            self._closing = True
        seats = [*self._seats, *(seat for seat, _ in self._leaving)]
        for job in [*self._queue, *self._new, *(seat.job for seat in seats if seat.job)]:
            if job.claim():
                job.future.set_exception(ScoringError("this scorer was closed"))
        for seat in list(self._seats):
            self._retire(seat)
        for seat in seats:
            if seat.job is not None:
                seat.process.kill()
                seat.job = None
        while self._leaving:
            self._bury()
            for seat, deadline in self._leaving:
                if time.monotonic() > deadline:
                    seat.process.kill()
            time.sleep(0.002)
        self._selector.close()
        self._waker.close()
        self._alarm.close()
