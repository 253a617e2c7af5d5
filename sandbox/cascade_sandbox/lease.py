"""A client's side of the keeper: `Lease`, one place in a pool, and `ask` for its other questions.

Each lease is a connection of its own, so that a client that dies gives its place back. Waiting for a place has no limit of its own:
the keeper bounds it while no container is alive, and the end of the keeper ends the connection.
"""

from __future__ import annotations

import socket

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside.wire import Header, WireError, receive, send


class Lease:
    """A place for one session after the other; waits for it.

    Args:
        checked: whether the keeper must have asked the supervisor, just now, whether it is there.

    Raises:
        SandboxError: the keeper is gone, or had no living container for too long.
    """

    def __init__(self, address: str, role: str, *, checked: bool = False) -> None:
        self._sock = _connected(address)
        question = {"op": "lease", "role": role, "checked": checked}
        try:
            self.socket = str(_exchange(self._sock, question)["socket"])
        except BaseException:
            self._sock.close()
            raise

    def give_back(self, runs: int, broken: str = "") -> None:
        """Gives the place back after so many runs; `broken` says why its container must not be used again. Never fails."""
        try:
            self._sock.settimeout(10)
            _exchange(self._sock, {"op": "return", "broken": bool(broken), "reason": broken[:500], "runs": runs})
        except SandboxError:
            pass  # the keeper is gone, and so is what it kept
        finally:
            self._sock.close()


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
    try:
        send(sock, question)
        answer, _ = receive(sock)
    except (OSError, EOFError, WireError) as error:
        raise SandboxError(f"the keeper of the sandbox is gone: {error}") from error
    if answer.get("op") == "error":
        raise SandboxError(str(answer.get("reason")))
    return answer
