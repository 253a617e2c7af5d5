"""The filter of system calls as a classic BPF program, built from `syscalls.py` for one machine.

Another architecture's entry (32-bit calls) kills; x32 numbers, the deny list and foreign socket families are refused with EPERM;
`clone3` and calls newer than the list get ENOSYS, so that libc takes the older way. Everything else is allowed: what
guards the rest is that the program has a user of its own, no capabilities, and a container's own filter around this one.
See the kernel's Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import errno
import struct
from typing import NamedTuple

from .syscalls import CLONE, CLONE3, DENIED, NEWEST, SOCKET, SOCKETPAIR


class Machine(NamedTuple):
    """An architecture: its number in audit records, and its column in `syscalls.py`."""

    audit: int
    column: int


MACHINES: dict[str, Machine] = {"x86_64": Machine(0xC000003E, 0), "aarch64": Machine(0xC00000B7, 1)}

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; arguments are little-endian here
KILL, ALLOW, REFUSE = 0x80000000, 0x7FFF0000, 0x00050000
NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
X32 = 0x40000000
FAMILIES = (1, 2, 10)  # unix, inet, inet6

Instruction = tuple[int, int, int, int]


def program(machine: str) -> bytes:
    """The instructions, as `struct sock_filter`s back to back.

    Raises:
        KeyError: no numbers for this machine; `MACHINES` has those that there are.
    """
    audit, column = MACHINES[machine]
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    code += [(AT_LEAST, 0, 1, X32), _refuse(errno.EPERM), (AT_LEAST, 0, 1, NEWEST + 1), _refuse(errno.ENOSYS)]
    for numbers in DENIED.values():
        code += _on(numbers[column], [_refuse(errno.EPERM)])
    code += _on(CLONE3[column], [_refuse(errno.ENOSYS)])
    flags = [
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (ANY_BIT, 0, 1, NAMESPACE_FLAGS),
        _refuse(errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    code += _on(CLONE[column], flags)
    for numbers in (SOCKET, SOCKETPAIR):
        code += _on(numbers[column], _families())
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _families() -> list[Instruction]:
    code: list[Instruction] = [(LOAD, 0, 0, FIRST_ARGUMENT)]
    for family in FAMILIES:
        code += [(EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOW)]
    return [*code, _refuse(errno.EAFNOSUPPORT)]


def _refuse(error: int) -> Instruction:
    return (RETURN, 0, 0, REFUSE | error)


def _on(number: int | None, then: list[Instruction]) -> list[Instruction]:
    """Instructions for one call only; each block returns, or jumps to the next."""
    return [] if number is None else [(EQUAL, 0, len(then), number), *then]
