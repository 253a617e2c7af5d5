"""The parent's handle on one scoring process: start it, talk to it without ever waiting, kill it, learn how it died.

A process is started with `posix_spawn` semantics (never by forking a parent that has threads), in a session of its own, so that
whatever it started dies with it and a Ctrl-C at the terminal does not reach it. What runs inside is `worker.py`; which
process gets which work is `pool.py`'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from cascade_core.worker import REPLY, REQUEST

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from cascade_core.worker import run; run()"
_TAIL = 4096  # bytes of output that are kept, to be quoted when the process dies

# One thread, one hash seed, one time zone: a verdict must not depend on the machine, nor a worker take its neighbours' cores.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
    "TOKENIZERS_PARALLELISM": "false",
    "TZ": "UTC",
}


@dataclass(frozen=True)
class Reply:
    """What came back: the kind of `worker.REPLY`, the process's CPU seconds so far, its wear, and the body."""

    kind: bytes
    cpu: float
    worn: bool
    body: bytes


class Process:
    """One scoring process. No method waits for it.

    Args:
        cpu_seconds, memory_mib: limits of one verdict.
        path: the `sys.path` that its imports see.

    Raises:
        OSError: it cannot be started (no memory, no descriptors, no processes left).
    """

    def __init__(self, cpu_seconds: float, memory_mib: int, path: Sequence[str]) -> None:
        self.channel, theirs = socket.socketpair()
        noise, out = os.pipe()
        limits = (str(theirs.fileno()), str(os.getpid()), repr(cpu_seconds), str(memory_mib))
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(list(path)), *limits],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        except BaseException:
            self.channel.close()
            os.close(noise)
            raise
        finally:
            theirs.close()
            os.close(out)
        os.set_blocking(noise, False)
        self.channel.setblocking(False)
        self.noise = noise  # what it prints, to be read by `drain`
        self.status: int | None = None
        self.cpu = self.total_cpu = 0.0  # seconds of the whole process: at its last reply; when it had ended
        self._inbox, self._outbox, self._tail = bytearray(), bytearray(), bytearray()

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent: then call `flush` when the channel is writable."""
        return bool(self._outbox)

    def send(self, kind: bytes, body: bytes) -> None:
        """Puts a request behind those that wait to be sent; `flush` sends them."""
        self._outbox += REQUEST.pack(kind, len(body)) + body

    def flush(self) -> None:
        """Sends as much as fits now. A process that is gone is noticed when reading."""
        with contextlib.suppress(BlockingIOError, OSError):
            while self._outbox:
                del self._outbox[: self.channel.send(memoryview(self._outbox)[: 2**18].tobytes())]

    def receive(self) -> tuple[list[Reply], bool]:
        """The replies that have come, and whether no more can come: the process closed its end or sent nonsense."""
        ended = False
        try:
            while part := self.channel.recv(2**18):
                self._inbox += part
                if len(part) < 2**18:
                    break
            ended = not part
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        replies: list[Reply] = []
        while len(self._inbox) >= REPLY.size:
            kind, cpu, worn, length = REPLY.unpack_from(self._inbox)
            if kind not in b"oklte" or len(kind) != 1:
                return replies, True
            if len(self._inbox) < REPLY.size + length:
                break
            replies.append(Reply(kind, cpu, worn, bytes(self._inbox[REPLY.size : REPLY.size + length])))
            del self._inbox[: REPLY.size + length]
            self.cpu = cpu
        return replies, ended

    def drain(self) -> bool:
        """Reads what was printed and keeps its end; false where nothing more can come."""
        try:
            part = os.read(self.noise, 2**16)
        except BlockingIOError:
            return True
        self._tail = (self._tail + part)[-_TAIL:]
        return bool(part)

    def kill(self) -> None:
        """Kills the process and all that it started; safe to repeat."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def reap(self) -> bool:
        """Whether the process has ended; then `status`, `total_cpu` and `death` are final."""
        if self.status is not None:
            return True
        try:
            pid, status, usage = _ended(self._popen.pid)
        except ChildProcessError:  # the host program reaps all children itself; how this one died is not known
            pid, status, usage = self._popen.pid, 0, None
        if not pid:
            return False
        self.status = self._popen.returncode = os.waitstatus_to_exitcode(status)
        if usage is not None:
            self.total_cpu = usage.ru_utime + usage.ru_stime
        return True

    def hang_up(self) -> None:
        """Closes the channel: a process that waits for requests ends on its own."""
        self.channel.close()

    def dispose(self) -> None:
        """Closes what the parent held of a process that has ended."""
        self.drain()
        self.channel.close()
        os.close(self.noise)

    @property
    def death(self) -> str:
        """How it ended, in words, with the last line it printed."""
        status = self.status or 0
        how = f"ended with status {status}" if status >= 0 else f"killed by {_signal(-status)}"
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return f"worker lost ({how})" + (f", its last words: {lines[-1][-200:]}" if lines else "")


def _ended(pid: int) -> tuple[int, int, resource.struct_rusage | None]:
    """`wait4` without waiting. While the process is a zombie its group is killed, so that no child of it stays."""
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        return 0, 0, None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.wait4(pid, 0)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
