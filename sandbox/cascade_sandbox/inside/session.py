"""One client and its program: open, then any number of runs and conversations, until it closes or hangs up.

Every request is answered by one frame. `error` is the last one: then the connection is closed. A conversation is the last thing that
a client may ask for. While a program runs, all that is watched of the client is whether it is still there: one that hangs up
ends what runs for it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from typing import Any, Optional

from . import folder, wire
from .bounds import Bounds
from .child import Command
from .errors import Broken, Gone, Trouble
from .execution import Execution, Outcome
from .loop import POLLRDHUP
from .program import Host, Opened
from .talk import Talk

IDLE_SECONDS = 600.0
"""A client that sends nothing for so long is dropped."""

SEND_SECONDS = 60.0
"""A client that does not take or send a piece of a frame for so long is dropped."""


class Session:
    """One connection, served to its end."""

    def __init__(self, client: socket.socket, host: Host) -> None:
        self._client = client
        self._host = host
        self._loop = host.place.loop
        self._opened: Optional[Opened] = None

    def serve(self) -> None:
        """Returns when the client is gone.

        Raises:
            Broken: this supervisor must serve nobody any more.
        """
        try:
            self._client.settimeout(SEND_SECONDS)
            while self._answer(*self._receive()):
                pass
        except (Gone, EOFError, wire.WireError, OSError):
            return
        finally:
            self._client.close()
            self._close()

    def _receive(self) -> wire.Frame:
        self._wait()
        return wire.receive(self._client)

    def _wait(self) -> bool:
        """Waits until the client sends something or hangs up."""
        fd, deadline = self._client.fileno(), time.monotonic() + IDLE_SECONDS
        ready: list[int] = []
        self._loop.add(fd, select.POLLIN, ready.append)
        try:
            while not ready:
                if time.monotonic() > deadline:
                    raise Gone("the client sends nothing")
                self._loop.step(deadline)
        finally:
            self._loop.remove(fd)
        return True

    def _answer(self, header: wire.Header, blobs: list[bytes]) -> bool:
        """Does what a frame asks for; whether to go on."""
        try:
            op = header.get("op")
            if op == "close":
                return False
            if op == "ping":
                wire.send(self._client, {"op": "pong"})
            elif op == "open":
                self._open(header, blobs)
            elif op in ("run", "talk"):
                self._run(op == "talk", header, blobs)
            else:
                raise Trouble(f"a client may open, run, talk, ping and close, found {op!r}")
            return True
        except Trouble as error:
            wire.send(self._client, {"op": "error", "reason": str(error)})
            if isinstance(error, Broken):
                raise
            return False

    def _open(self, header: wire.Header, blobs: list[bytes]) -> None:
        self._close()
        with _explained():
            self._opened = Opened(header, blobs, self._host)
        with self._hang_up_noticed(), _explained():
            outcome = self._opened.compile()
        if outcome is None:
            wire.send(self._client, {"op": "ready", "compiled": None})
        else:
            wire.send(self._client, {"op": "ready", "compiled": _fields(outcome)}, [outcome.stdout, outcome.stderr])

    def _run(self, is_talk: bool, header: wire.Header, blobs: list[bytes]) -> None:
        if self._opened is None or not blobs:
            raise Trouble("run and talk take a standard input, after open")
        path, uid = self._host.new()
        try:
            with _explained():
                command = self._opened.prepare(header, blobs[1:], path, uid)
            outcome = self._talk(command, header) if is_talk else self._execute(command, blobs[0])
        finally:
            folder.remove(path)
        wire.send(self._client, {"op": "result", **_fields(outcome)}, [outcome.stdout, outcome.stderr])
        if is_talk:
            self._wait_for_hang_up()

    def _execute(self, command: Command, given: bytes) -> Outcome:
        with self._hang_up_noticed(), _explained():
            return Execution(command, self._host.place, given).run()

    def _talk(self, command: Command, header: wire.Header) -> Outcome:
        wall = header.get("wall_seconds", command.bounds.wall_seconds)
        bounds = Bounds.read({**command.bounds._asdict(), "wall_seconds": wall}, command.bounds.stack_bytes)
        self._client.setblocking(False)
        try:
            with _explained():
                talk = Talk(command._replace(bounds=bounds), self._host.place, self._client)
                outcome = talk.run()
        finally:
            self._client.settimeout(SEND_SECONDS)
        self._client.sendall(talk.rest())
        return outcome._replace(stdout=b"")

    def _wait_for_hang_up(self) -> None:
        """What still comes was sent before the client knew that the conversation had ended, the last of it perhaps in pieces."""
        while self._wait() and self._client.recv(1 << 16):
            pass
        raise Gone("the conversation is over")

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextlib.contextmanager
    def _hang_up_noticed(self) -> Iterator[None]:
        fd = self._client.fileno()
        self._loop.add(fd, POLLRDHUP, self._hung_up)
        try:
            yield
        finally:
            self._loop.remove(fd)

    def _hung_up(self, events: int) -> None:
        raise Gone("the client hung up")


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """What is wrong with a request, or with this place, is told to the client."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Trouble(f"{type(error).__name__}: {error}") from error


def _fields(outcome: Outcome) -> dict[str, Any]:
    fields = outcome._asdict()
    del fields["stdout"], fields["stderr"]
    return fields
