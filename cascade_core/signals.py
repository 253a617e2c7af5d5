"""SIGTERM and SIGHUP for what has something to clear away: they raise in its main thread, as Ctrl-C does.

A signal that the caller ignored (`nohup`), or handles himself, stays as it is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class Ended(SystemExit):
    """SIGTERM or SIGHUP came; `status` is that of a process that they end."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__(self.status)


def as_ctrl_c() -> AbstractContextManager[None]:
    """Both raise `KeyboardInterrupt` during the block, where this is the main thread."""
    return _handled(signal.default_int_handler)


def as_exit() -> AbstractContextManager[None]:
    """Both raise `Ended` during the block, where this is the main thread."""
    return _handled(_leave)


def _leave(number: int, frame: object) -> None:
    raise Ended(number)


def status(cause: KeyboardInterrupt | Ended) -> int:
    """With what a command ends that was ended so."""
    return cause.status if isinstance(cause, Ended) else 130


@contextmanager
def _handled(handler: Callable[..., object]) -> Iterator[None]:
    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
