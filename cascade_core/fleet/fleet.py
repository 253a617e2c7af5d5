"""The driver's side: one queue, a post on every node, and what becomes of the jobs of a node that is lost.

To `scoring.Scorer` a fleet is a pool. Each node is given what its processes work off in a quarter of a second or so, and has a thread
here that waits for its answers. When a node or its courier is lost, the jobs that it had are given to others, once; a job that two
of them had when they were lost could not be judged. Nodes that join later, or come back, are used as soon as they are found fit.
Verdicts and limits are the business of the pools on the nodes.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.fleet.cluster import Cluster, Node, Refusal, check_addresses, line, pinned
from cascade_core.fleet.courier import POLL_SECONDS, Courier, Parcel, Receipt
from cascade_core.seat import Job
from cascade_core.settings import Scoring
from cascade_core.threads import started

_AHEAD_SECONDS = 0.25  # so much work is given to a node beyond what runs there
_PARCELS, _PARCEL_BYTES = 64, 2**21  # jobs and bytes in one message, about
_SILENT_SECONDS = 60.0  # a courier that says nothing for so long, where it should after `POLL_SECONDS`, is lost
_LOOK_SECONDS = 5.0  # between looks for nodes that have joined
_ALONE_SECONDS = 60.0  # so long a queue waits for a node when there is none


@dataclass(eq=False)
class _Post:
    """A node at work: its courier, the jobs that it has, and how many a second it answers."""

    node: Node
    courier: Any
    workers: int
    rate: float
    given: dict[int, Job] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)  # messages that it has not confirmed
    heard: float = field(default_factory=time.monotonic)

    def room(self) -> int:
        return self.workers + int(self.rate * _AHEAD_SECONDS) - len(self.given)

    def learn(self, answers: int) -> None:
        """How quick it is, of an answer to `take`."""
        now = time.monotonic()
        if answers:
            self.rate = (self.rate + answers / max(now - self.heard, 1e-3)) / 2
        self.heard = now


class Fleet:
    """Judges on `nodes`. See `pool.Pool` for `submit`, `close` and `overrides`."""

    def __init__(
        self,
        domains: Mapping[str, DomainRef],
        resources: Mapping[str, str],
        settings: Scoring,
        cluster: Cluster,
        nodes: Sequence[Node],
        *,
        waits: bool,
    ) -> None:
        self._domains, self._resources, self._settings = dict(domains), dict(resources), settings
        self._cluster, self._waits = cluster, waits
        self.overrides: dict[str, bool] = {}
        self._queue: deque[Job] = deque()
        self._posts: list[_Post] = []
        self._unfit: set[str] = set()  # ids of nodes that joined later and must not judge
        self._number = 0
        self._change = threading.Condition()
        self._closing = False
        self._alone_since: float | None = None
        self._threads: list[threading.Thread] = []
        for node in nodes:
            self._man(node)
        self._threads.append(started(self._keep, name="cascade-fleet"))

    @property
    def workers(self) -> int:
        """Processes on all nodes together."""
        with self._change:
            return sum(post.workers for post in self._posts)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues jobs; each one's future gets an `Answer`, or `ScoringError` where the fleet is closed first.

        Raises:
            ScoringError: the fleet is closed.
        """
        with self._change:
            if self._closing:
                raise ScoringError("this scorer is closed")
            self._queue.extend(jobs)
            self._deal()

    def close(self) -> None:
        """Ends the couriers with their processes; jobs that are not done get `ScoringError`. Safe to repeat."""
        with self._change:
            first, self._closing = not self._closing, True
            posts, self._posts = self._posts, []
            left = [job for post in posts for job in post.given.values()] + list(self._queue)
            self._queue.clear()
            self._change.notify_all()
        for job in left:
            if job.claim():
                job.future.set_exception(ScoringError("this scorer was closed"))
        if first:
            _dismiss(posts)
            for thread in self._threads:
                thread.join(2 * POLL_SECONDS)
            self._cluster.close()

    # Dealing: the lock is held.

    def _deal(self) -> None:
        """Gives queued jobs to the nodes that have most room, until none has any."""
        while self._queue and self._posts:
            post = max(self._posts, key=_Post.room)
            if post.room() <= 0 or not (parcels := self._pack(post)):
                return
            try:
                post.sent.append(post.courier.put.remote(parcels))
            except Exception as cause:  # noqa: BLE001 - the connection itself is gone; whoever submits is not the one to hear of it
                self._lose(post, line(cause))

    def _pack(self, post: _Post) -> list[Parcel]:
        """Takes jobs off the queue for one message."""
        parcels: list[Parcel] = []
        share = -(-len(self._queue) // len(self._posts))  # so that a short queue keeps all nodes busy
        size, most = 0, min(post.room(), _PARCELS, share)
        while self._queue and len(parcels) < most and size < _PARCEL_BYTES:
            job = self._queue.popleft()
            if job.claim():
                self._number += 1
                post.given[self._number] = job
                parcels.append((self._number, job.domain, job.kind, job.body))
                size += len(job.body)
        return parcels

    # Listening: a thread for every node.

    def _listen(self, post: _Post) -> None:
        import ray

        try:
            while not self._closing:
                wanted = max(1, len(post.given) // 3)
                receipts, overrides = ray.get(post.courier.take.remote(wanted), timeout=POLL_SECONDS + _SILENT_SECONDS)
                self._hear(post, receipts, overrides)
                ray.get(self._confirmed(post))  # raises what kept a message from being taken in
        except Exception as cause:  # noqa: BLE001 - whatever it was, this node's jobs are done elsewhere
            self._lose(post, line(cause))

    def _confirmed(self, post: _Post) -> list[Any]:
        import ray

        with self._change:
            ready: list[Any] = []
            if post.sent:
                ready, post.sent = ray.wait(post.sent, num_returns=len(post.sent), timeout=0)
        return ready

    def _hear(self, post: _Post, receipts: Iterable[Receipt], overrides: Mapping[str, bool]) -> None:
        settled: list[tuple[Job, Receipt]] = []
        with self._change:
            for receipt in receipts:
                job = post.given.pop(receipt[0], None)
                if job is not None:
                    settled.append((job, receipt))
            post.learn(len(settled))
            self.overrides.update(overrides)
            self._deal()
        now = time.monotonic()
        for job, (_, body, limit, error, ran) in settled:
            job.begun = now - ran if ran >= 0 else 0.0
            if error and job.cause:
                error = f"{job.cause}; elsewhere: {error}"
            job.settle(body=body, limit=limit, error=error)

    def _lose(self, post: _Post, cause: str) -> None:
        """Takes a node off the list; its jobs go to others, but for those that were lost once before."""
        told = f"{post.node} was lost while it had this sample ({cause})"
        with self._change:
            if post not in self._posts:  # closed meanwhile
                return
            self._posts.remove(post)
            given = list(post.given.values())
            post.given.clear()
            twice = [job for job in given if job.cause]
            again = [job for job in given if not job.cause]
            for job in again:
                job.cause = told
            self._queue.extendleft(reversed(again))
            self._deal()
            self._change.notify_all()
        for job in twice:
            job.settle(error=f"{job.cause}; again: {told}")
        _dismiss([post], politely=False)

    # Keeping: one thread that looks after the nodes.

    def _keep(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closing, 1.0 if not self._posts else _LOOK_SECONDS)
                if self._closing:
                    return
                manned = {post.node.id for post in self._posts}
            try:
                self._recruit([node for node in self._cluster.nodes() if node.id not in manned | self._unfit])
            except Exception as cause:  # noqa: BLE001 - the cluster itself may be gone; told where samples wait for it
                self._give_up_if_alone(line(cause))
            else:
                self._give_up_if_alone("none is alive")

    def _recruit(self, nodes: Sequence[Node]) -> None:
        """Lets nodes judge that have joined, or whose courier was lost, and that are fit for it."""
        if not nodes:
            return
        refused = self._cluster.refusals(nodes, self._domains.values())
        for node in nodes:
            refusal = refused.get(node) or self._out_of_reach(node)
            if refusal is None:
                self._man(node)
            elif refusal.final:
                self._unfit.add(node.id)
                print(f"cascade: a node that joined does not judge: {refusal.why}", file=sys.stderr)

    def _out_of_reach(self, node: Node) -> Refusal | None:
        try:
            check_addresses(self._resources, [node.host])
        except ScoringError as cause:
            return Refusal(str(cause), True)
        return None

    def _man(self, node: Node) -> None:
        import ray

        workers = self._settings.concurrency or 2 * node.workers if self._waits else node.workers
        actor = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=4)(Courier)
        limits = self._settings.model_dump(mode="json", exclude={"workers"})
        courier = actor.options(scheduling_strategy=pinned(node)).remote(
            self._domains, self._resources, limits, workers
        )
        post = _Post(node, courier, workers, rate=20.0 * workers)
        with self._change:
            if self._closing:
                return
            self._posts.append(post)
            self._alone_since = None
            self._deal()
        self._threads.append(started(partial(self._listen, post), name=f"cascade-fleet-{node.id[:8]}"))

    def _give_up_if_alone(self, why: str) -> None:
        """Fails what is queued where no node has been there for long."""
        with self._change:
            if self._posts:
                return
            self._alone_since = self._alone_since or time.monotonic()
            if time.monotonic() < self._alone_since + _ALONE_SECONDS:
                return
            left = list(self._queue)
            self._queue.clear()
        for job in left:
            if job.claim():
                job.settle(error=f"no node of the Ray cluster is left to judge ({why})")


def _dismiss(posts: Sequence[_Post], *, politely: bool = True) -> None:
    """Ends couriers; politely: their domains are closed first."""
    import ray

    with contextlib.suppress(Exception):  # of no matter any more: they die with their node or with this process
        if politely:
            ray.get([post.courier.close.remote() for post in posts], timeout=2 * POLL_SECONDS)
    for post in posts:
        with contextlib.suppress(Exception):
            ray.kill(post.courier)
