"""One place in the pool: a scoring process, the jobs it was given, and how long each of them may take.

A process works its jobs off one after another. While verdicts come quickly it is given a few jobs ahead, so that neither side
waits for the other to be woken; only the first of them is running, and only its clock is. Jobs behind one that turns out
to be slow can be taken back: somebody else does them, and the process's own late answer to them is ignored.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from cascade_core.process import Process

_AHEAD_SECONDS = 0.02  # so much work is given ahead
_AHEAD = 32  # so many jobs at most
_SLOW_SECONDS = 0.1  # a running job that takes longer has its followers taken back


@dataclass(frozen=True)
class Answer:
    """What became of a job: JSON of the domain's own answer, or a `limit` note, or an `error`.

    `begun` and `ended` are readings of the monotonic clock, of the try that decided; 0 where it never began.
    """

    body: bytes = b""
    limit: str = ""
    error: str = ""
    begun: float = 0.0
    ended: float = 0.0


@dataclass(eq=False)
class Job:
    """One request for one domain. `kind` is that of `worker.REQUEST`."""

    domain: str
    kind: bytes
    body: bytes
    future: Future[Answer] = field(default_factory=Future)
    cause: str = ""  # of the first failure; not empty means: only a fresh process may try again
    running: bool = False
    queued: float = field(default_factory=time.monotonic)
    begun: float = 0.0

    def claim(self) -> bool:
        """Whether somebody still waits for it; from then on it cannot be cancelled."""
        self.running = self.running or self.future.set_running_or_notify_cancel()
        return self.running

    def settle(self, *, body: bytes = b"", limit: str = "", error: str = "") -> None:
        """Hands its answer to whoever waits for it."""
        self.future.set_result(Answer(body, limit, error, self.begun, time.monotonic()))


@dataclass(eq=False)
class Seat:
    """A process and its jobs; `None` among them is one that was taken back."""

    process: Process
    wall_seconds: float
    jobs: deque[Job | None] = field(default_factory=deque)
    domains: set[str] = field(default_factory=set)  # that are open there
    opening: bool = False  # the domain of the first job is being opened
    fresh: bool = True  # nothing was judged there yet
    overdue: bool = False
    gone: bool = False  # on its way out
    begun: float = 0.0
    deadline: float = 0.0
    started_cpu: float = 0.0
    pace: float = 1.0  # seconds that a job takes, lately
    watched: int = 0  # the events that the pool waits for

    @property
    def busy(self) -> bool:
        """Whether anything is running."""
        return bool(self.jobs)

    @property
    def used_cpu(self) -> float:
        """CPU seconds of the running job; known when the process has ended."""
        return self.process.total_cpu - self.started_cpu

    def room(self) -> int:
        """How many more jobs may be given ahead."""
        if not self.jobs or self.opening:
            return 0
        return min(_AHEAD, int(_AHEAD_SECONDS / max(self.pace, 1e-6))) - len(self.jobs)

    def leisure(self) -> float:
        """Seconds for which it surely has enough to do: half of what it was given, which may turn out to be quick."""
        return 0.0 if self.opening else (len(self.jobs) - 1) * self.pace / 2

    def open(self, job: Job, request: bytes, seconds: float) -> None:
        """Begins to open the domain of a job, which follows when that is done."""
        self.jobs.append(job)
        self.opening = True
        self._clock(seconds)
        self.process.send(b"o", request)

    def opened(self) -> None:
        """The domain is open: the job that waited for it is sent."""
        job = self.jobs.popleft()
        self.opening = False
        if job is not None:
            self.domains.add(job.domain)
            self.give(job)

    def give(self, job: Job) -> None:
        """Sends a job; it runs at once if it is the only one."""
        self.jobs.append(job)
        self.fresh = False
        if len(self.jobs) == 1:
            self._clock(self.wall_seconds)
        self.process.send(job.kind, job.body)

    def heard(self, replies: int) -> None:
        """So many jobs were answered since the clock was started: learns how long one takes."""
        if replies and not self.opening:
            self.pace = (self.pace + (time.monotonic() - self.begun) / replies) / 2

    def done(self) -> Job | None:
        """Takes away the job that was answered; the next one's clock starts."""
        self.opening = False
        job = self.jobs.popleft()
        if self.jobs:
            self._clock(self.wall_seconds)
        return job

    def followers(self) -> list[Job]:
        """Takes back the jobs that are not running."""
        taken = [job for job in list(self.jobs)[1:] if job is not None]
        for place in range(1, len(self.jobs)):
            self.jobs[place] = None
        return taken

    def is_slow(self, now: float) -> bool:
        """Whether jobs wait behind one that takes long."""
        return len(self.jobs) > 1 and now > self.begun + _SLOW_SECONDS

    def _clock(self, seconds: float) -> None:
        self.begun = time.monotonic()
        if self.jobs and self.jobs[0] is not None:
            self.jobs[0].begun = self.begun
        self.deadline = self.begun + seconds
        self.started_cpu = self.process.cpu


def deal(queue: deque[Job], seats: Iterable[Seat]) -> None:
    """Deals jobs round to processes that are quick, in order, until one cannot be given or all have enough."""
    takers = list(seats)
    while takers:
        for seat in list(takers):
            job = queue[0] if queue else None
            if job is None or job.cause or job.domain not in seat.domains:
                return
            queue.popleft()
            if job.claim():
                seat.give(job)
            if seat.room() <= 0:
                takers.remove(seat)
