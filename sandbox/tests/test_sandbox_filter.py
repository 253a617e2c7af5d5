"""The filter of system calls, run by an interpreter of the kernel's instructions, for every machine that it has numbers for."""

from __future__ import annotations

import errno
import os
import struct

import pytest
from cascade_sandbox.inside import seccomp, syscalls
from hypothesis import given
from hypothesis import strategies as st

MACHINES = sorted(seccomp.MACHINES)
ORDINARY = {
    "read": (0, 63),
    "write": (1, 64),
    "openat": (257, 56),
    "mmap": (9, 222),
    "execve": (59, 221),
    "kill": (62, 129),
    "wait4": (61, 260),
    "pipe2": (293, 59),
    "futex": (202, 98),
    "prlimit64": (302, 261),
    "memfd_create": (319, 279),
    "pidfd_open": (434, 434),
    "setresuid": (117, 147),
    "getrandom": (318, 278),
}
"""What programs and the supervisor itself use (x86_64, aarch64)."""


def verdict(machine: str, number: int, argument: int = 0, audit: int | None = None) -> str | int:
    """What the kernel does: allow, kill, or an error number."""
    architecture = seccomp.MACHINES[machine].audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, argument, 0, 0, 0, 0, 0)
    code = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
    accumulator = place = 0
    while True:
        operation, when_true, when_false, value = code[place]
        place += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation in (0x15, 0x35, 0x45):
            tests = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}
            place += when_true if tests[operation] else when_false
        else:
            assert operation == 0x06
            return {0x7FFF0000: "allow", 0x80000000: "kill"}.get(value, value & 0xFFFF)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_on_the_list_is_refused(machine: str) -> None:
    column = seccomp.MACHINES[machine].column
    for name, numbers in syscalls.DENIED.items():
        if numbers[column] is not None:
            assert verdict(machine, numbers[column]) == errno.EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_what_programs_use_is_allowed(machine: str) -> None:
    column = seccomp.MACHINES[machine].column
    for name, numbers in ORDINARY.items():
        assert verdict(machine, numbers[column]) == "allow", name


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_may_be_cloned_but_no_namespace(machine: str) -> None:
    clone = syscalls.CLONE[seccomp.MACHINES[machine].column]
    assert clone is not None
    assert verdict(machine, clone, 17) == "allow"  # SIGCHLD: fork
    assert verdict(machine, clone, 0x003D0F00) == "allow"  # what a thread is made with
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, clone, flag | 17) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_the_filter_cannot_judge_look_like_those_of_an_older_kernel(machine: str) -> None:
    for number in (syscalls.CLONE3[0], syscalls.NEWEST + 1, 1000):
        assert number is not None and verdict(machine, number) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 60))
def test_only_local_and_internet_sockets_can_be_made(machine: str, family: int) -> None:
    column = seccomp.MACHINES[machine].column
    for numbers in (syscalls.SOCKET, syscalls.SOCKETPAIR):
        number = numbers[column]
        assert number is not None
        assert verdict(machine, number, family) == ("allow" if family in (1, 2, 10) else errno.EAFNOSUPPORT)


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, (1 << 32) - 1))
def test_calls_of_another_architecture_kill(machine: str, number: int) -> None:
    for audit in (0x40000003, 0x40000028, *(m.audit for name, m in seccomp.MACHINES.items() if name != machine)):
        assert verdict(machine, number, audit=audit) == "kill"


@given(number=st.integers(0x40000000, (1 << 32) - 1))
def test_the_other_numbers_of_x86_64_lead_nowhere(number: int) -> None:
    assert verdict("x86_64", number) == errno.EPERM


def test_no_number_is_listed_for_two_calls() -> None:
    for column in (0, 1):
        numbers = [pair[column] for pair in syscalls.DENIED.values() if pair[column] is not None]
        assert len(numbers) == len(set(numbers))


def test_this_machine_has_a_filter() -> None:
    assert os.uname().machine in seccomp.MACHINES
