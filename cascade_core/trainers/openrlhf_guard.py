"""The process between a stage and its OpenRLHF job: `python -I -S openrlhf_guard.py TOKEN COMMAND…`; needs nothing of the core.

A job is many processes, in sessions of their own: the program, Ray's daemons, its workers, vLLM's engines. This one is their *subreaper*: what
loses its parent becomes its child and not that of process 1, so that all of them can be found, whatever they call themselves. When the
program has ended, or the end of standard input says that the starter has, whichever way, all are ended: politely, and
after five seconds not. The status is the program's own, 128 + signal where one ended it. Linux only.

Should this process be killed itself, `leftovers` finds the others by the variable `CASCADE_STAGE_TOKEN` in their environments.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

MARK = "CASCADE_STAGE_TOKEN"
_POLITE_SECONDS = 5.0
_KILL_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def guard(command: Sequence[str]) -> int:
    """Runs the command until it or the starter ends, and ends all that came of it; the command's status."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
    status = None
    while status is None:
        status = _reaped(program.pid)
        if status is None and select.select([0], [], [], _LOOK_SECONDS)[0] and not os.read(0, 1):
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    found = _end(program.pid, status is not None)
    return found if status is None else status


def _end(program: int, has_ended: bool) -> int:
    """Ends every descendant; the status of the program."""
    polite = time.monotonic() + _POLITE_SECONDS
    last = polite + _KILL_SECONDS
    status = 0 if has_ended else None
    while time.monotonic() < last:
        found = _reaped(program)
        status = found if status is None else status
        alive = below([os.getpid()])
        if not alive:
            break
        if time.monotonic() > polite or status is not None:  # without the program, the rest has nobody to clean up for
            kill(alive)
        time.sleep(_LOOK_SECONDS / 2)
    return 128 + signal.SIGKILL if status is None else status


def _reaped(program: int) -> int | None:
    """Buries what has ended, the program and what was left to us; the program's status if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == program:
                code = os.waitstatus_to_exitcode(how)
                status = code if code >= 0 else 128 - code
    return status


def below(roots: Iterable[int]) -> list[int]:
    """All descendants of processes, by what the system says of parents; without those that have ended."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = list(roots)
    while todo:
        next_ones = children.get(todo.pop(), [])
        found += next_ones
        todo += next_ones
    return found


def _parents() -> Iterable[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, parent = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            except (OSError, ValueError):  # it has ended meanwhile
                continue
            if state not in "ZX":
                yield int(folder.name), int(parent)


def leftovers(token: str) -> list[int]:
    """Processes of a job that have its token in their environment, and their descendants; not this process."""
    wanted = f"{MARK}={token}".encode()
    marked = []
    for pid, _ in _parents():
        with contextlib.suppress(OSError):  # ended, or somebody else's
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                marked.append(pid)
    return sorted({*marked, *below(marked)} - {os.getpid()})


def is_guard(pid: int, token: str) -> bool:
    """Whether that process is the guard of that job."""
    try:
        return token.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    """Between fork and exec, in a process that has no threads."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # it ends when its starter does, and not before
        signal.signal(number, lambda *_: None)  # a handler, which the command does not inherit
    sys.exit(guard(sys.argv[2:]))
