"""The processes that a run started: finding them, ending them.

The supervisor is pid 1 or a child subreaper, so that whatever loses its parent becomes its child: when it has no children left,
nothing of the run lives. That makes the check after an ordinary run one system call.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import NamedTuple, Optional

from .errors import Broken

TICK = os.sysconf("SC_CLK_TCK")
GRACE = 10.0  # seconds for killed processes to disappear
AGAIN = 0.1  # seconds until those that live still are killed once more


class Member(NamedTuple):
    """A living process: its parent, and the CPU seconds of it and of the children that it waited for."""

    pid: int
    parent: int
    cpu_seconds: float


def members() -> list[Member]:
    """All descendants of this process."""
    children: dict[int, list[Member]] = {}
    for name in os.listdir("/proc"):
        member = _member(int(name)) if name.isdigit() else None
        if member is not None:
            children.setdefault(member.parent, []).append(member)
    found = list(children.pop(os.getpid(), []))
    for member in found:
        found += children.pop(member.pid, [])
    return found


def _member(pid: int) -> Optional[Member]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name in front may hold anything
    except OSError:  # ended meanwhile
        return None
    ticks = sum(int(value) for value in fields[11:15])
    return Member(pid, int(fields[1]), ticks / TICK)


def end(uid: Optional[int], killer: int) -> None:
    """Kills and reaps whatever a run left behind; called when its first process was reaped.

    Raises:
        Broken: something would not die.
    """
    started = time.monotonic()
    killed_at = float("-inf")
    while _alive():
        now = time.monotonic()
        if now - started > GRACE:
            raise Broken("a process of a run cannot be killed")
        if now - killed_at > AGAIN:
            _kill(uid, killer)
            killed_at = now
            continue
        time.sleep(0.001)


def _alive() -> bool:
    """Reaps what ended; whether a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(uid: Optional[int], killer: int) -> None:
    if uid is not None:
        try:
            _kill_user(uid, killer)
            return
        except OSError:  # no process left for the killer: then one by one, which takes a few rounds
            pass
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none forks while others are killed
        for member in members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, number)


def _kill_user(uid: int, killer: int) -> None:
    """Kills every process of a user in one system call, which no fork escapes.

    The child that does it has that user as effective one only: it may signal the user's processes, and they may not signal it.
    """
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(killer, uid, killer)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
