"""The process between a `server.Server` and its command: `python -I -S guard.py RESTARTS COMMAND…`; needs nothing of the core.

Its standard input is a pipe that the starter holds open and nobody else. The end of it means that the starter is gone, however it
went: then the command's process group gets SIGTERM, and SIGKILL after five seconds. A byte on it means that the command has
answered: from then on one that ends by itself is started again, RESTARTS times; before, its end is the guard's own. Should the guard itself be killed, the command dies with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

_POLITE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1


def guard(restarts: int, command: Sequence[str]) -> int:
    """Runs the command until it or the starter ends; the command's status."""
    answered = False
    process = _start(command)
    while True:
        if select.select([0], [], [], _LOOK_SECONDS)[0]:
            if not os.read(0, 1):
                _end(process)
                return process.returncode
            answered = True
        if process.poll() is None:
            continue
        _kill(process)  # what it started and left
        if not answered or restarts < 1:
            return process.returncode
        restarts -= 1
        process = _start(command)


def release(guard: subprocess.Popen[bytes], seconds: float) -> None:
    """For the starter: lets go of a guard by the end of its input, waits until its work is done, and then for nothing more."""
    assert guard.stdin is not None
    with contextlib.suppress(OSError):
        guard.stdin.close()
    try:
        guard.wait(seconds)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)


def _die_with_parent() -> None:
    """Between fork and exec, in a process that has no threads."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_POLITE_SECONDS)
    _kill(process)
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # it ends when its starter does, and not before
        signal.signal(
            number, lambda *_: None
        )  # a handler, which the command does not inherit; an ignored signal it would
    sys.exit(guard(int(sys.argv[1]), sys.argv[2:]) % 256)
