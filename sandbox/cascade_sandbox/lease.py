"""A client's side of the keeper: `Lease`, one place in a pool, and `ask` for its other questions.

Each lease has a connection to itself, so that a client that dies gives its place back; `Lines` keeps those that were used
for the next one. Waiting for a place has no limit of its own: the keeper bounds it while no container is alive, and the end of the keeper ends the connection.
"""

from __future__ import annotations

import contextlib
import os
import socket

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside.wire import Header, WireError, receive, send


class _KeeperGone(SandboxError):
    """The connection ended."""


class Lines:
    """Connections to the keeper at `address` on which nothing is leased. Safe for threads, and after a fork."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._idle: list[tuple[int, socket.socket]] = []

    def take(self) -> socket.socket | None:
        """One that was used before: the keeper's answer to the last `return` on it has not been read."""
        while True:
            try:
                owner, sock = self._idle.pop()
            except IndexError:
                return None
            if owner == os.getpid():
                sock.settimeout(None)
                return sock
            sock.close()  # the parent's

    def keep(self, sock: socket.socket) -> None:
        """For the next lease."""
        self._idle.append((os.getpid(), sock))

    def close(self) -> None:
        """Closes all of them; the next lease makes a new one."""
        while (sock := self.take()) is not None:
            sock.close()

    __del__ = close


class Lease:
    """A place for one session after the other; waits for it.

    Args:
        checked: whether the keeper must have asked the supervisor, just now, whether it is there.

    Raises:
        SandboxError: the keeper is gone, or had no living container for too long.
    """

    def __init__(self, lines: Lines, role: str, *, checked: bool = False) -> None:
        self._lines = lines
        self._sock: socket.socket | None = None
        question = {"op": "lease", "role": role, "checked": checked}
        while (used := lines.take()) is not None:
            with contextlib.suppress(_KeeperGone):  # since then; perhaps there is another one now
                self.socket = self._ask(used, question, owed=1)
                return
        self.socket = self._ask(_connected(lines.address), question, owed=0)

    def _ask(self, sock: socket.socket, question: Header, owed: int) -> str:
        try:
            _send(sock, question)
            for _ in range(owed):
                _answer(sock)
            place = str(_answer(sock)["socket"])
        except BaseException:
            sock.close()
            raise
        self._sock = sock
        return place

    def give_back(self, runs: int, broken: str = "") -> None:
        """Gives the place back after so many runs; `broken` says why its container must not be used again. Never fails.

        Doing so twice is fine. The keeper is not waited for: its answer is read when the connection is next used.
        """
        sock, self._sock = self._sock, None
        if sock is None:
            return
        try:
            sock.settimeout(10)
            _send(sock, {"op": "return", "broken": bool(broken), "reason": broken[:500], "runs": runs})
        except BaseException as error:
            sock.close()
            if not isinstance(error, SandboxError):  # the keeper is gone, and so is what it kept
                raise
        else:
            self._lines.keep(sock)


def ask(address: str, question: Header) -> Header:
    """The keeper's answer.

    Raises:
        SandboxError: it is gone, or says that something went wrong.
    """
    with _connected(address) as sock:
        return _exchange(sock, question)


def _connected(address: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(address.removeprefix("unix:"))
    except OSError as error:
        sock.close()
        raise SandboxError(f"no sandbox answers at {address}: {error}") from error
    return sock


def _exchange(sock: socket.socket, question: Header) -> Header:
    _send(sock, question)
    return _answer(sock)


def _send(sock: socket.socket, question: Header) -> None:
    try:
        send(sock, question)
    except (OSError, WireError) as error:
        raise _KeeperGone(f"the keeper of the sandbox is gone: {error}") from error


def _answer(sock: socket.socket) -> Header:
    try:
        answer, _ = receive(sock)
    except (OSError, EOFError, WireError) as error:
        raise _KeeperGone(f"the keeper of the sandbox is gone: {error}") from error
    if answer.get("op") == "error":
        raise SandboxError(str(answer.get("reason")))
    return answer
