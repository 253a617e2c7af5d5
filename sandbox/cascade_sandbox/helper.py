"""Supervisors on this machine: `Helper`, a process that runs programs, and `Pool`, which keeps some warm.

A helper is the supervisor of the containers, started without one. It lives for many sessions, until this process closes its
standard input, which also happens when this process is killed; then it ends what it runs and removes its folder.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from cascade_sandbox.errors import SandboxError

_SUPERVISOR = Path(__file__).parent / "inside" / "supervisor.py"
_START_SECONDS = 60.0
_END_SECONDS = 20.0
_MAX_FOLDER = 80  # bytes: the path of a socket may have 107


class Helper:
    """A supervisor, ready for clients at the path `socket`.

    Raises:
        SandboxError: it did not start.
    """

    def __init__(self) -> None:
        folder = tempfile.gettempdir()
        self._folder = Path(tempfile.mkdtemp(prefix="cascade-", dir=folder if len(folder) <= _MAX_FOLDER else "/tmp"))
        self.socket = str(self._folder / "s")
        work = self._folder / "w"
        work.mkdir(0o700)
        command = [sys.executable, "-I", "-S", "-X", "utf8", str(_SUPERVISOR), self.socket, str(work), "--here"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # both are pipes
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        ready, _, _ = select.select([self._stdout], [], [], _START_SECONDS)
        if not ready or not self._stdout.readline():
            self.end()
            raise SandboxError(f"a supervisor did not start: status {self._process.returncode}")

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends it, what it runs, and its folder."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Pool:
    """As many helpers as there are slots, each started when it is first needed."""

    def __init__(self, slots: int) -> None:
        self._places = threading.BoundedSemaphore(slots)
        self._lock = threading.Lock()
        self._idle: list[Helper] = []
        self._closed = False

    def take(self) -> Helper:
        """A helper that serves nobody else; waits for a free slot.

        Raises:
            SandboxError: the pool is closed, or a supervisor did not start.
        """
        self._places.acquire()
        try:
            helper = self._idle_one()
            return helper if helper is not None else Helper()
        except BaseException:
            self._places.release()
            raise

    def _idle_one(self) -> Helper | None:
        while True:
            with self._lock:
                if self._closed:
                    raise SandboxError("the sandbox is closed")
                if not self._idle:
                    return None
                helper = self._idle.pop()
            if helper.is_alive:
                return helper
            helper.end()

    def give_back(self, helper: Helper, *, broken: bool) -> None:
        """Makes room for the next; a broken helper is ended and never used again."""
        with self._lock:
            keep = not broken and not self._closed
            if keep:
                self._idle.append(helper)
        if not keep:
            helper.end()
        self._places.release()

    def close(self) -> None:
        """Ends the idle helpers now, and those in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for helper in idle:
            helper.end()
