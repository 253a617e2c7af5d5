"""SIGTERM and SIGHUP for commands that have something to clear away: they end such a command as Ctrl-C does.

A signal that the caller ignored (`nohup`) stays ignored.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Both raise `KeyboardInterrupt` during the block, where this is the main thread."""
    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
