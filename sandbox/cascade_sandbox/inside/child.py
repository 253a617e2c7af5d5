"""Starts one confined program: fork, give up everything, exec.

Standard input is a file, the null device, or a pipe that the caller writes to; output and errors are pipes. A fourth pipe says
whether the program could not be started at all, which nothing that it does can imitate: exec closes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn, Optional

from .bounds import Bounds
from .confine import enter

NOT_STARTED = 125
"""Exit status of a child that never became the program."""

READABLE, WRITABLE = 0o604, 0o602
"""Modes of pipes, which are the supervisor's: a program of another user may open `/dev/stdin` and `/dev/stdout` by name, too."""

PATH = "/usr/local/bin:/usr/bin:/bin"
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class Failure(NamedTuple):
    """Why a child did not become the program: an error number (0 where there is none), and whether exec itself refused."""

    number: int
    at_exec: bool
    text: str


class Command(NamedTuple):
    """What to start, where (a folder of the run's own), as whom, and within which limits.

    `is_ours` says that `argv[0]` was not made from what is judged: if it cannot be started, that is our fault.
    """

    argv: list[str]
    folder: str
    environment: Mapping[str, str]
    bounds: Bounds
    uid: Optional[int]
    is_ours: bool = True


class Child:
    """A started process and our ends of its pipes; `stdin` is -1 unless it was asked for."""

    def __init__(self, pid: int, pidfd: int, stdin: int, stdout: int, stderr: int, failure: int) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.failure = failure

    def kill(self) -> None:
        """Kills the first process of the run; it is not reaped yet, so the number is its own."""
        os.kill(self.pid, signal.SIGKILL)

    def close_stdin(self) -> None:
        """The program reads the end of its input; safe to repeat."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        """Closes our ends of the pipes, once."""
        self.close_stdin()
        for fd in (self.stdout, self.stderr, self.failure, self.pidfd):
            os.close(fd)

    def failure_to_start(self) -> Optional[Failure]:
        """Why it never became the program; None when it did."""
        try:
            data = os.read(self.failure, 4096)
        except BlockingIOError:
            return None
        number, at_exec, text = data.decode("utf-8", "replace").split(" ", 2) if data else ("", "", "")
        return Failure(int(number), at_exec == "exec", text) if data else None


def start(command: Command, given: Optional[bytes]) -> Child:
    """Starts the program on this input; with None its standard input is a pipe.

    Raises:
        OSError: no process, no memory or no descriptors left.
    """
    here = {"HOME": command.folder, "TMPDIR": command.folder}
    ready = command._replace(environment={**ENVIRONMENT, **here, **command.environment})
    inner: list[int] = []
    outer: list[int] = []
    pid = 0
    try:
        _open_pipes(given, inner, outer)
        pid = os.fork()
        if pid == 0:
            _become(ready, inner)
        outer.insert(0, os.pidfd_open(pid))
    except BaseException:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        _close(outer)
        raise
    finally:
        _close(inner)
    return Child(pid, *outer)


def _open_pipes(given: Optional[bytes], inner: list[int], outer: list[int]) -> None:
    """The child's ends (input, output, errors, failure) and ours, appended one by one, so that none gets lost."""
    if given is None:
        both = os.pipe()
        inner.append(both[0])
        outer.append(both[1])
        os.fchmod(both[0], READABLE)
    else:
        inner.append(_input(given))
        outer.append(-1)
    for _ in range(3):
        both = os.pipe()
        outer.append(both[0])
        inner.append(both[1])
    for fd in inner[1:3]:
        os.fchmod(fd, WRITABLE)
    for fd in outer:
        if fd >= 0:
            os.set_blocking(fd, False)


def _input(given: bytes) -> int:
    """A descriptor from which the program reads exactly this, sealed, at its own pace."""
    if not given:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(given)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def _become(command: Command, inner: Sequence[int]) -> NoReturn:
    """In the child: never returns. Every other descriptor closes itself on exec."""
    stage = "confine"
    try:
        os.setsid()
        os.dup2(inner[0], 0)
        os.dup2(inner[1], 1)
        os.dup2(inner[2], 2)
        os.chdir(command.folder)
        enter(command.bounds, command.uid)
        stage = "exec"
        os.execve(command.argv[0], command.argv, command.environment)
    except MemoryError:
        os.write(inner[3], b"%d confine no memory" % errno.ENOMEM)
    except BaseException as error:  # noqa: BLE001 whatever it is, this must not go on as a second supervisor
        number = (error.errno or 0) if isinstance(error, OSError) else 0
        os.write(inner[3], f"{number} {stage} {error}".encode("utf-8", "replace")[:4096])
    finally:
        os._exit(NOT_STARTED)
