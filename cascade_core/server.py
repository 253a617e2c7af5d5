"""A server in a process of its own, for a `Resource`: started, waited for, watched, ended; nothing of it outlives us.

    server = Server([sys.executable, "-m", "my_server", path], address=f"unix:{path}", seconds=60)
    server.start()  # until the address can be connected to
    server.stop()

The command runs under `guard.py`, a small process that ends it when this one is gone, even where that was killed, and starts
it once more where it ends by itself after it had answered. Both runs have the same address, so clients need only connect
again. What the server prints goes to a file that is gone with it; the last line is quoted when it cannot be started.
Addresses are `unix:/path` and `http://host:port`; `reachable` knows both.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from cascade_core import guard
from cascade_core.errors import ResourceError

_CONNECT_SECONDS = 2.0
_PAUSE_SECONDS = 0.02
_GRACE_SECONDS = 8.0  # more than the guard gives its command to end politely


def reachable(address: str) -> str:
    """`""` where a connection to the address can be made, else why not.

    An address of another kind than `unix:` and `http:` is not tried, and taken to be reachable.
    """
    parts = urlsplit(address)
    try:
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(_CONNECT_SECONDS)
                channel.connect(parts.path)
        elif parts.scheme in ("http", "https"):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((parts.hostname or "", port), _CONNECT_SECONDS).close()
    except (OSError, ValueError) as cause:
        return str(getattr(cause, "strerror", None) or cause).lower()
    return ""


class Server:
    """One command that serves until it is stopped.

    Args:
        command: the program and its arguments.
        address: where it will answer.
        seconds: how long `start` waits for that.
        is_ready: says whether it answers; the default is that a connection can be made.
        environment: variables beside those of this process.
        restarts: how often it is started again where it ends by itself.
    """

    def __init__(
        self,
        command: Sequence[str],
        address: str,
        *,
        seconds: float = 60.0,
        is_ready: Callable[[], bool] | None = None,
        environment: Mapping[str, str] | None = None,
        restarts: int = 1,
    ) -> None:
        self.address = address
        self._command, self._seconds = list(command), seconds
        self._is_ready = is_ready or (lambda: not reachable(address))
        self._environment, self._restarts = dict(environment or {}), restarts
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the command and waits until it answers.

        Raises:
            ResourceError: it ended, or did not answer in time; quotes the last line that it printed.
        """
        with tempfile.TemporaryFile() as printed:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(self._restarts), *self._command],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
            end = time.monotonic() + self._seconds
            while not self._is_ready():
                status = self._guard.poll()
                if status is None and time.monotonic() < end:
                    time.sleep(_PAUSE_SECONDS)
                    continue
                said = _last_line(printed.fileno())
                self.stop()
                how = f"ended with status {status}" if status is not None else f"gave no answer for {self._seconds:g} s"
                raise ResourceError(f"{self._command[0]} {how}{said}")
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):  # it has ended since
            self._guard.stdin.write(b"!")  # from now on an end is an accident
            self._guard.stdin.flush()

    def alive(self) -> bool:
        """Whether the command still runs (or is being started again)."""
        return self._guard is not None and self._guard.poll() is None

    def stop(self) -> None:
        """Ends the command, politely and then not; safe to repeat."""
        process, self._guard = self._guard, None
        if process is not None:
            guard.release(process, _GRACE_SECONDS)


def _last_line(file: int) -> str:
    size = os.fstat(file).st_size
    lines = os.pread(file, 4096, max(0, size - 4096)).decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][-300:]}" if lines else ""
