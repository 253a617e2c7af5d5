"""Many scoring processes and one queue: who gets what, what is too long, what is tried again, what is replaced.

One thread owns the processes and never waits for any single one of them, so a hung or dying process delays nobody else,
and callers on other threads (or an event loop) meet only futures.

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

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.patience import Patience
from cascade_core.process import Process, Reply
from cascade_core.seat import Job, Seat, deal
from cascade_core.settings import Scoring
from cascade_core.threads import started

_OPEN_SECONDS = 60.0  # at least, for an interpreter to start and a domain to import what it needs
_CLOSE_SECONDS = 3.0  # for Domain.close
_REST_SECONDS = 0.002  # at most, between looking at replies of processes that have more to do


class Pool:
    """At most `workers` processes, each of which can host all of `domains`; `path` is their `sys.path`, by default this process's."""

    def __init__(
        self,
        domains: Mapping[str, DomainRef],
        resources: Mapping[str, str],
        settings: Scoring,
        workers: int,
        path: Sequence[str] = (),
    ) -> None:
        self._domains, self._resources = dict(domains), dict(resources)
        self._settings, self._workers = settings, workers
        self.overrides: dict[str, bool] = {}  # whether the domain has `rewards` of its own; known once it was open
        self._path = tuple(path or sys.path)  # as it is now: all processes of a pool see the same modules
        self._queue: deque[Job] = deque()
        self._seats: list[Seat] = []
        self._leaving: list[tuple[Seat, float]] = []  # processes on their way out, and when to kill them
        self._patience = Patience()
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
                self._thread = started(self._run, name="cascade-scoring")
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
                self._rest()
                self._wait(self._pause())
                self._look()
                self._bury()
        finally:
            self._shut()

    def _pause(self) -> float:
        """Seconds until something must be looked at even if no process says anything."""
        if any(seat.busy for seat, _ in self._leaving):
            return 0.005
        return 0.1 if self._leaving or self._queue or any(seat.busy for seat in self._seats) else 5.0

    def _rest(self) -> None:
        """While every process has enough to do, their replies are left to gather: one wake for several of them."""
        if len(self._seats) == self._workers and not self._leaving:
            seconds = min(_REST_SECONDS, *(seat.leisure() for seat in self._seats))
            if seconds > _REST_SECONDS / 8:
                time.sleep(seconds)

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
                self._send(seat)
            if events & selectors.EVENT_READ:
                self._hear(seat)

    def _send(self, seat: Seat) -> None:
        """Sends what fits now, and wants to know when the rest does."""
        seat.process.flush()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if seat.process.unsent else 0)
        if events != seat.watched:
            self._selector.modify(seat.process.channel, events, (seat, False))
            seat.watched = events

    def _hear(self, seat: Seat) -> None:
        replies, ended = seat.process.receive()
        seat.heard(len(replies))
        for reply in replies:
            if seat.busy and not seat.gone:
                self._take(seat, reply)
        if ended and not seat.gone:
            self._dismiss(seat)

    def _take(self, seat: Seat, reply: Reply) -> None:
        if reply.kind == b"o":
            job = seat.jobs[0]
            if job is not None:
                self.overrides[job.domain] = json.loads(reply.body)["rewards"]
            seat.opened()
            self._send(seat)
            return
        opening, job = seat.opening, seat.done()
        retire, text = reply.worn, reply.body.decode("utf-8", "replace")
        if job is None:
            pass  # taken back; whoever has it now answers for it
        elif reply.kind == b"k":
            self._done(job, body=reply.body)
        elif reply.kind == b"l":
            self._done(job, limit=text)
        elif reply.kind == b"t":
            self._done(job, error=text)
        else:
            retire |= self._failed(job, text, opening)
        if retire:
            self._queue.extendleft(reversed([job for job in seat.jobs if job is not None]))
            seat.jobs.clear()
            self._retire(seat)

    def _done(self, job: Job, *, body: bytes = b"", limit: str = "", error: str = "") -> None:
        self._patience.judged(job.domain)
        job.settle(body=body, limit=limit, error=error)

    def _failed(self, job: Job, cause: str, opening: bool = False) -> bool:
        """Queues the job for a fresh process; false where this was that try, or the domain fails at everything."""
        if not job.cause and self._patience.has_more(job.domain):
            job.cause = cause
            self._queue.appendleft(job)
            return True
        self._patience.failed(job.domain)
        if opening:
            self._patience.unopenable(job.domain, cause)
        if job.cause:
            cause = f"{cause}, twice" if cause == job.cause else f"{job.cause}; on a fresh worker: {cause}"
        job.settle(error=cause)
        return False

    def _assign(self) -> None:
        """Gives queued jobs to idle processes, starts those that are missing, and gives the rest ahead."""
        idle = [seat for seat in self._seats if not seat.busy]
        waiting: list[Job] = []
        while self._queue and (idle or len(self._seats) < self._workers):
            job = self._queue.popleft()
            if not job.claim():
                continue
            if refusal := self._patience.refusal(job.domain):
                job.settle(error=refusal)
                continue
            seat = self._seat_for(job, idle)
            if seat is not None:
                self._give(seat, job)
                continue
            waiting.append(job)
            if not idle:
                break
        self._queue.extendleft(reversed(waiting))
        if self._queue and not idle:
            self._give_ahead()

    def _seat_for(self, job: Job, idle: list[Seat]) -> Seat | None:
        able = [seat for seat in idle if seat.fresh or not job.cause]
        if able:
            seat = min(able, key=lambda seat: (job.domain not in seat.domains, not seat.fresh))
            idle.remove(seat)
            return seat
        if len(self._seats) >= self._workers:  # none of the idle ones is fresh, and the job needs one that is
            self._retire(idle.pop())
        return self._start()

    def _give_ahead(self) -> None:
        takers = [seat for seat in self._seats if seat.room() > 0]
        deal(self._queue, takers)
        for seat in takers:
            self._send(seat)

    def _start(self) -> Seat | None:
        if len(self._seats) >= self._workers or not self._patience.may_start():
            return None
        try:
            process = Process(self._settings.cpu_seconds, self._settings.memory_mib, self._path)
        except OSError as cause:
            self._patience.started(str(cause))
            return None
        self._patience.started()
        seat = Seat(process, self._settings.wall_seconds)
        self._seats.append(seat)
        self._selector.register(seat.process.channel, selectors.EVENT_READ, (seat, False))
        seat.watched = selectors.EVENT_READ
        self._selector.register(seat.process.noise, selectors.EVENT_READ, (seat, True))
        return seat

    def _give(self, seat: Seat, job: Job) -> None:
        if job.domain in seat.domains:
            seat.give(job)
        else:
            ref = dataclasses.asdict(self._domains[job.domain])
            request = json.dumps({"domain": job.domain, "ref": ref, "resources": self._resources}).encode()
            seat.open(job, request, max(_OPEN_SECONDS, self._settings.wall_seconds))
        self._send(seat)

    def _look(self) -> None:
        """Now and then: what is overdue, what died without closing its channel, and who waits behind a slow job."""
        now = time.monotonic()
        if now < self._looked + 0.05:
            return
        self._looked = now
        for seat in [seat for seat in self._seats if seat.busy]:
            seat.overdue = now > seat.deadline
            if not seat.overdue and seat.process.reap():
                self._hear(seat)  # its last words
            if not seat.gone and (seat.overdue or seat.process.status is not None):
                self._dismiss(seat)
        others = len(self._seats) < self._workers or not all(seat.busy for seat in self._seats)
        for seat in self._seats if others and not self._queue else ():
            if seat.is_slow(now):
                self._queue.extendleft(reversed(seat.followers()))
        for seat, deadline in self._leaving:
            if now > deadline:
                seat.process.kill()

    def _dismiss(self, seat: Seat) -> None:
        """Kills a process; its running job is settled when its CPU time is known, others never began."""
        self._queue.extendleft(reversed(seat.followers()))
        self._release(seat)
        seat.process.kill()

    def _retire(self, seat: Seat) -> None:
        """Lets a process without a job close its domains and end."""
        self._release(seat)
        seat.process.hang_up()

    def _release(self, seat: Seat) -> None:
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
            job = seat.jobs[0] if seat.busy else None
            seat.jobs.clear()
            if job is not None:
                self._settle(seat, job)

    def _settle(self, seat: Seat, job: Job) -> None:
        limit = self._settings.cpu_seconds
        if seat.opening:
            told = f"it takes more than {_OPEN_SECONDS:g} s" if seat.overdue else seat.process.death
            self._failed(job, f"domain {self._domains[job.domain].name!r} cannot be opened: {told}", opening=True)
        elif seat.used_cpu >= limit:
            self._done(job, limit=f"limit: {limit:g} s of CPU time")
        elif seat.overdue:
            self._failed(job, f"no verdict within {self._settings.wall_seconds:g} s")
        else:
            self._failed(job, seat.process.death)

    def _shut(self) -> None:
        with self._lock:
            self._closing = True
        seats = [*self._seats, *(seat for seat, _ in self._leaving)]
        given = [job for seat in seats for job in seat.jobs if job is not None]
        for job in [*given, *self._queue, *self._new]:
            if job.claim():
                job.future.set_exception(ScoringError("this scorer was closed"))
        for seat in list(self._seats):
            self._retire(seat)
        for seat in seats:
            if seat.busy:
                seat.process.kill()
                seat.jobs.clear()
        while self._leaving:
            self._bury()
            for seat, deadline in self._leaving:
                if time.monotonic() > deadline:
                    seat.process.kill()
            time.sleep(0.002)
        self._selector.close()
        self._waker.close()
        self._alarm.close()
