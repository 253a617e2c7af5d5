"""A run whose standard input arrives in frames while it runs, and whose standard output leaves in frames: half a conversation.

Nothing here waits for anything: what came for the program lies in a buffer until it reads, what it said lies in one until the
client reads. The buffers need no limit of their own, since a program may not say more than its limit, and what one
half says is what the other half gets.
"""

from __future__ import annotations

import os
import select
import socket

from .child import Command
from .errors import Gone, Trouble
from .execution import CHUNK, Execution, Place
from .loop import POLLRDHUP
from .wire import Reader, WireError, pack

PENDING_BYTES = 256 << 20


class Buffer:
    """Bytes on their way to a descriptor that may not take them now."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def add(self, data: bytes) -> None:
        """Appends.

        Raises:
            Trouble: far more lies here than a run may say.
        """
        self._data += data
        if len(self._data) > PENDING_BYTES:
            raise Trouble(f"more than {PENDING_BYTES} bytes wait for a reader")

    def write(self, fd: int) -> None:
        """Writes what the descriptor takes now.

        Raises:
            OSError: nobody will read any more.
        """
        try:
            del self._data[: os.write(fd, memoryview(self._data)[:CHUNK].tobytes())]
        except BlockingIOError:
            return

    def all(self) -> bytes:
        """Everything that lies here."""
        return bytes(self._data)

    def clear(self) -> None:
        """Forgets everything."""
        self._data.clear()


class Talk(Execution):
    """A run that talks to its client; the client's socket must not block while it lasts."""

    def __init__(self, command: Command, place: Place, client: socket.socket) -> None:
        super().__init__(command, place, None)
        self._client = client
        self._frames = Reader()
        self._to_client = Buffer()
        self._to_program = Buffer()
        self._input_ends = False

    def _listen(self) -> None:
        super()._listen()
        self.loop.add(self._client.fileno(), select.POLLIN | POLLRDHUP, self._on_client)

    def take(self, data: bytes) -> None:
        """Sends a piece of standard output on."""
        self._send({"op": "data"}, [data])

    def finish_output(self) -> None:
        """Says that no more will come."""
        self._send({"op": "eof"}, [])

    def rest(self) -> bytes:
        """What the client has not read yet."""
        return self._to_client.all()

    def _send(self, header: dict[str, str], blobs: list[bytes]) -> None:
        self._to_client.add(pack(dict(header), blobs) + b"".join(blobs))
        self.loop.change(self._client.fileno(), select.POLLIN | POLLRDHUP | select.POLLOUT)

    def _on_client(self, events: int) -> None:
        if events & (select.POLLHUP | select.POLLERR | POLLRDHUP):
            raise Gone("the client hung up")
        if events & select.POLLOUT:
            self._to_client.write(self._client.fileno())
            if not self._to_client:
                self.loop.change(self._client.fileno(), select.POLLIN | POLLRDHUP)
        if events & select.POLLIN:
            self._read_client()

    def _read_client(self) -> None:
        try:
            frames = self._frames.feed(self._client.recv(CHUNK))
        except BlockingIOError:
            return
        except (OSError, WireError) as error:
            raise Gone(f"the client sends no frames: {error}") from error
        for header, blobs in frames:
            self._obey(header, blobs)

    def _obey(self, header: dict[str, object], blobs: list[bytes]) -> None:
        op = header.get("op")
        if op == "data" and not self._input_ends and self.child.stdin >= 0:
            for blob in blobs:
                self._to_program.add(blob)
        elif op == "eof":
            self._input_ends = True
        elif op == "kill":
            self.stop("failed")
        elif op != "data":
            raise Trouble(f"a conversation takes data, eof and kill, found {op!r}")
        self._feed_program()

    def _feed_program(self, events: int = 0) -> None:
        stdin = self.child.stdin
        if stdin < 0:
            return
        try:
            if self._to_program:
                self._to_program.write(stdin)
        except BrokenPipeError:  # it closed its input: what is sent to it is lost, as between any two programs
            self._to_program.clear()
            self._input_ends = True
        if self._to_program:
            self.loop.add(stdin, select.POLLOUT, self._feed_program)
            return
        self.loop.remove(stdin)
        if self._input_ends:
            self.child.close_stdin()

    def _clean_up(self) -> None:
        self.loop.remove(self._client.fileno())
        super()._clean_up()
