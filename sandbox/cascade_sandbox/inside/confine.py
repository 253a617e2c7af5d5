"""How a child gives up everything before it becomes the judged program.

In a container every run has a user of its own that nothing else ever had, so that it can signal, trace and read nobody, and its
limit of processes counts nobody else's. Outside of one (`uid` is None) there is no other user to become: limits, no new
privileges and the filter of system calls stay, and they stop accidents, not attackers.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import random
import resource
import signal
import struct
from typing import Optional

from . import seccomp
from .bounds import FILE_BYTES, OPEN_FILES, Bounds
from .errors import Trouble

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 36, 38
SECCOMP_MODE_FILTER = 2
RLIMIT_MSGQUEUE = 12
RLIMIT_SIGPENDING = 11
CPU_MARGIN = 1.25
"""RLIMIT_CPU lies above the limit, which the supervisor's clock keeps: it counts ticks, and is for processes left alone."""

USERS = 1 << 16
"""Users that one supervisor takes, one after the other, never one twice."""

HANDLED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""Signals that Python or we treat in our own way, which a program must not inherit."""

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int, pointer: object = 0) -> None:
    """prctl(2).

    Raises:
        OSError: the kernel refused.
    """
    if _libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def harden_supervisor(is_private: bool) -> None:
    """Whatever a run leaves behind becomes a child of this process, which passes on no descriptor and, if private, is read by none."""
    while os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) <= 2:  # a child's standard streams must not meet one of ours
        pass
    if is_private:
        prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for name in os.listdir("/proc/self/fd"):
        try:
            os.set_inheritable(int(name), int(name) <= 2)
        except OSError:  # the one that listed the folder is closed by now
            continue


class Users:
    """Users for runs: one block of numbers, random, so that the limits of processes of two containers never count together."""

    def __init__(self) -> None:
        start, length = min(_largest_range("uid"), _largest_range("gid"), key=lambda found: found[1])
        first = max(start, 1 << 20) if length > 1 << 28 else max(start, 1000)
        end = min(start + length, (1 << 31) - 1)
        self.size = min(USERS, end - first - 1)
        if self.size < 1:
            raise Trouble(f"no users to run programs as: this namespace has {length} from {start}")
        blocks = max((end - first) // (self.size + 1), 1)
        self.killer = first + (self.size + 1) * random.SystemRandom().randrange(blocks)
        self.used = 0

    def next(self) -> int:
        """A number that no run had.

        Raises:
            Trouble: all were given out; a new container has new ones.
        """
        if self.used >= self.size:
            raise Trouble("every user of this container was given out")
        self.used += 1
        return self.killer + self.used

    def __contains__(self, uid: int) -> bool:
        return self.killer <= uid <= self.killer + self.size


def _largest_range(kind: str) -> tuple[int, int]:
    with open(f"/proc/self/{kind}_map", encoding="ascii") as lines:
        ranges = [(int(line.split()[0]), int(line.split()[2])) for line in lines]
    return max(ranges, key=lambda found: found[1])


class Confinement:
    """What every run's child goes through, prepared once: between fork and exec there is little that may fail."""

    def __init__(self, must_filter: bool) -> None:
        machine = platform.machine()
        if machine not in seccomp.MACHINES and must_filter:
            raise Trouble(f"no system call numbers for {machine}, there are those of {', '.join(seccomp.MACHINES)}")
        code = seccomp.program(machine) if machine in seccomp.MACHINES else b""
        self._code = ctypes.create_string_buffer(code, len(code)) if code else None
        pointer = ctypes.addressof(self._code) if self._code else 0
        self._filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, pointer))

    def enter(self, bounds: Bounds, uid: Optional[int]) -> None:
        """Called in the child; the last step but exec. Nothing here can be undone by it.

        Raises:
            OSError: a step failed, and the program must not start.
        """
        for number in HANDLED:
            signal.signal(number, signal.SIG_DFL)
        _first_to_go()
        seconds = math.ceil(CPU_MARGIN * bounds.cpu_seconds) + 1
        _lower(resource.RLIMIT_CPU, seconds, seconds + 1)
        for kind, value in _limits(bounds, uid):
            _lower(kind, value)
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _lower(resource.RLIMIT_AS, bounds.memory_bytes)
        if self._code is not None:
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self._filter)


def _first_to_go() -> None:
    """When memory runs out, the kernel ends the program and not its supervisor."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)


def _limits(bounds: Bounds, uid: Optional[int]) -> list[tuple[int, int]]:
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_STACK, bounds.stack_bytes),
        (resource.RLIMIT_MEMLOCK, 64 << 10),
        (RLIMIT_MSGQUEUE, 0),
        (RLIMIT_SIGPENDING, 256),
    ]
    if uid is not None:  # counts every process of a user: only a user of its own has a limit of its own
        limits.append((resource.RLIMIT_NPROC, bounds.processes))
    return limits


def _lower(kind: int, value: int, hard: Optional[int] = None) -> None:
    most = resource.getrlimit(kind)[1]
    wanted = [value, value if hard is None else hard]
    soft, hard = (each if most == resource.RLIM_INFINITY else min(each, most) for each in wanted)
    resource.setrlimit(kind, (soft, hard))
