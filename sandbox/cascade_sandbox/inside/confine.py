"""How the supervisor gives up what no run needs, and how a child gives up the rest before it becomes the judged program.

What can be inherited the supervisor takes upon itself once (`settle`): no new privileges, no groups, the filter of system calls,
the limits that are the same for every run. A child then has little to do between fork and exec, where each step
costs copies of memory. In a container every run has a user of its own that nothing else ever had, so that it can signal, trace and
read nobody, and its limit of processes counts nobody else's. Outside of one (`uid` is None) there is no other user to
become: the rest stays, and stops accidents, not attackers.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import struct
from typing import Optional

from . import seccomp
from .bounds import FILE_BYTES, OPEN_FILES, Bounds
from .errors import Trouble

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 36, 38
SECCOMP_MODE_FILTER = 2

COMMON_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, FILE_BYTES),
    (resource.RLIMIT_NOFILE, OPEN_FILES),
    (resource.RLIMIT_MEMLOCK, 64 << 10),
    (11, 256),  # RLIMIT_SIGPENDING
    (12, 0),  # RLIMIT_MSGQUEUE
    (13, 0),  # RLIMIT_NICE
    (14, 0),  # RLIMIT_RTPRIO
)

CPU_MARGIN = 1.25
"""RLIMIT_CPU lies above the limit, which the supervisor's clock keeps: it counts ticks, and is for processes left alone."""

NICE = 10
"""A container has one core for all: a program that forks a hundred times must not leave its supervisor a hundredth of it."""


def settle(in_container: bool) -> None:
    """Prepares this process, which is to be a supervisor, and whatever it starts.

    Raises:
        Trouble: this machine's system calls are unknown, and a container must not do without a filter.
        OSError: the kernel refused a step.
    """
    while os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) <= 2:  # a child's standard streams must not meet one of ours
        pass
    for name in os.listdir("/proc/self/fd"):
        if os.path.exists(f"/proc/self/fd/{name}"):  # the one that listed the folder is closed by now
            os.set_inheritable(int(name), int(name) <= 2)
    for number in signal.valid_signals():  # Python ignores two of them, `nohup` one, and programs would inherit that
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # which exec resets
    for kind, value in COMMON_LIMITS:
        _lower(kind, value)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if in_container:
        _prctl(PR_SET_DUMPABLE, 0)  # nobody but root reads what is in this process
        os.setgroups([])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _filter(must=in_container)


def enter(bounds: Bounds, uid: Optional[int]) -> None:
    """Called in the child, last before exec; it cannot undo anything of it.

    Raises:
        OSError: a step failed, and the program must not start.
    """
    _first_to_go()
    seconds = math.ceil(CPU_MARGIN * bounds.cpu_seconds) + 1
    _lower(resource.RLIMIT_CPU, seconds, seconds + 1)
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    _lower(
        resource.RLIMIT_STACK, bounds.stack_bytes, most
    )  # programs raise it themselves; it is address space, as all memory
    if uid is not None:
        os.nice(NICE)
        _lower(
            resource.RLIMIT_NPROC, bounds.processes
        )  # counts a user's: only a user of its own has a limit of its own
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _lower(resource.RLIMIT_AS, bounds.memory_bytes)


def _first_to_go() -> None:
    """When memory runs out, the kernel ends the program and not its supervisor."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)


def _lower(kind: int, value: int, hard: Optional[int] = None) -> None:
    most = resource.getrlimit(kind)[1]
    hard = value if hard is None else hard
    if most != resource.RLIM_INFINITY:
        value, hard = min(value, most), min(hard, most)
    resource.setrlimit(kind, (value, hard))


def _filter(must: bool) -> None:
    machine = os.uname().machine
    if machine not in seccomp.MACHINES:
        if must:
            raise Trouble(f"no system call numbers for {machine}, there are those of {', '.join(seccomp.MACHINES)}")
        return
    code = seccomp.program(machine)
    instructions = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(instructions)))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)


def _prctl(option: int, value: int, pointer: object = 0) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), pointer, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


_libc = ctypes.CDLL(None, use_errno=True)
