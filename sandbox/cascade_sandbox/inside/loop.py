"""One poll loop for everything that the supervisor waits for: sockets, pipes, the end of a process.

Callbacks run inside `step`; what they raise comes out of it, so that a client that hangs up ends the run it is waiting for.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

POLLRDHUP = getattr(select, "POLLRDHUP", 0x2000)
NAP = 1.0  # seconds: hooks are called at least this often


class Loop:
    """File descriptors with callbacks, and hooks that are called after every step."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self.hooks: list[Callable[[], None]] = []

    def add(self, fd: int, events: int, call: Callable[[int], None]) -> None:
        """Calls `call(events)` whenever one of the events is there (or an error, or a hang-up)."""
        self._poll.register(fd, events)
        self._calls[fd] = call

    def change(self, fd: int, events: int) -> None:
        """Other events for a descriptor; nothing for one that was not added, or was removed."""
        if fd in self._calls:
            self._poll.modify(fd, events)

    def remove(self, fd: int) -> None:
        """Forgets a descriptor; safe to repeat."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def step(self, until: float) -> None:
        """Waits for something to happen, at most until then (seconds of `time.monotonic`), and calls back."""
        wait = min(max(until - time.monotonic(), 0.0), NAP)
        for fd, events in self._poll.poll(wait * 1000 + 0.5):
            call = self._calls.get(fd)  # an earlier callback may have removed it
            if call is not None:
                call(events)
        for hook in self.hooks:
            hook()
