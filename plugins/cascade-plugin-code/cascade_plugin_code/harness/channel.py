"""Messages between the process of the tests and that of the solution: four bytes of length, then a value as `travel` writes it."""

from __future__ import annotations

from typing import BinaryIO

LONGEST = 64 << 20
CALLBACK = b""
"""Comes before a message of the solution's that calls a function of the tests."""
OF_THE_TESTS = 1 << 32
"""Numbers of objects from here on are functions of the tests."""


class Ended(Exception):
    """The other side has ended, or says what is no message."""


class Channel:
    """One side of the conversation."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing

    def send(self, data: bytes) -> None:
        """Says a message.

        Raises:
            Ended: nobody listens any more.
        """
        try:
            self._writing.write(len(data).to_bytes(4, "big") + data)
            self._writing.flush()
        except OSError:
            raise Ended("the other side does not listen") from None

    def receive(self) -> bytes:
        """The next message.

        Raises:
            Ended: there is none, or it is too long.
        """
        try:
            length = int.from_bytes(self._exactly(4), "big")
            if length > LONGEST:
                raise Ended("a message that is too long")
            return self._exactly(length)
        except (OSError, MemoryError) as cause:
            raise Ended("no message: " + type(cause).__name__) from None

    def _exactly(self, size: int) -> bytes:
        data = self._reading.read(size)
        if len(data) < size:
            raise Ended("the end of the input")
        return data
