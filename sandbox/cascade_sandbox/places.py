"""The waiting line of a pool: `Places` hands free containers to those who wait, in the order in which they came.

A role has places of its own: `judged` programs never run where `private` ones do. Waiting is bounded only while no container of
the role is alive: with one alive, whoever waits gets a turn, however long the others take.

Everything here runs in one event loop; nothing here starts or ends containers (`place.py` does).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal, get_args

from cascade_sandbox.errors import SandboxError

Role = Literal["judged", "private"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(eq=False)
class Warm:
    """A running container: the socket that its supervisor answers on, how often it was used, and whether it is over."""

    socket: str
    runs: int = 0
    over: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, reason: str) -> None:
        """Nobody gets it any more; `over` has the first reason that was given."""
        if not self.over.done():
            self.over.set_result(reason)


class Places:
    """The containers of one role, and who waits for them.

    Args:
        patience: seconds that anyone waits while no container is alive.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._idle: deque[Warm] = deque()
        self._waiting: deque[tuple[asyncio.Future[Warm], float]] = deque()
        self._alive: set[Warm] = set()
        self._dead_since = time.monotonic()
        self.trouble = ""
        self.recreated: Counter[str] = Counter()
        self.sessions = 0
        self.runs = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many containers are alive, idle and leased, and how many wait for one."""
        idle = sum(not warm.over.done() for warm in self._idle)
        return {
            "alive": len(self._alive),
            "idle": idle,
            "leased": len(self._alive) - idle,
            "waiting": len(self._waiting),
        }

    def add(self, warm: Warm) -> None:
        """A container that has just started."""
        self._alive.add(warm)
        self.trouble = ""
        self.give(warm)

    def give(self, warm: Warm) -> None:
        """A container that nobody uses: the first who waits gets it."""
        if warm.over.done():
            return
        while self._waiting:
            waiter, _ = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(warm)
                return
        self._idle.append(warm)

    def drop(self, warm: Warm, reason: str) -> None:
        """A container that is over."""
        self.recreated[reason] += 1
        self._alive.discard(warm)
        if warm in self._idle:
            self._idle.remove(warm)
        if not self._alive:
            self._dead_since = time.monotonic()

    def lease(self) -> asyncio.Future[Warm]:
        """The next free container; cancel it, and the turn goes to the next one. Fails with `SandboxError`."""
        waiter: asyncio.Future[Warm] = asyncio.get_running_loop().create_future()
        while self._idle:
            warm = self._idle.popleft()
            if not warm.over.done():
                waiter.set_result(warm)
                return waiter
        self._waiting.append((waiter, time.monotonic()))
        return waiter

    def look(self) -> None:
        """Sends those away who have waited for too long while no container was alive; call it every second."""
        now = time.monotonic()
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()
        while self._waiting and not self._alive and now - max(self._dead_since, self._waiting[0][1]) > self._patience:
            waiter, _ = self._waiting.popleft()
            if not waiter.done():
                why = self.trouble or "none has started yet"
                waiter.set_exception(
                    SandboxError(f"no container has been alive for {self._patience:.0f} seconds: {why}")
                )
