"""Threads that no signal is handed to.

The kernel hands a signal to any thread that does not block it, and Python runs its handler in the main thread alone. A main thread that
waits for a lock is woken only if it got the signal itself: a Ctrl-C that another thread gets is lost until something else happens.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any


def started(
    target: Callable[..., Any], args: Sequence[Any] = (), *, name: str, daemon: bool = True
) -> threading.Thread:
    """A thread, started, that leaves all signals to the others. A process that it starts begins with them blocked."""
    thread = threading.Thread(target=target, args=tuple(args), name=name, daemon=daemon)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread
