"""A conversation between two programs in two containers: what one says is what the other reads.

Everything passes through here, frame by frame; the supervisors hold what their program has not read yet, so nothing here
waits for a program. Both runs get a clock of the sum of both walls, which their supervisors keep, so that a busy machine does not
change how it ends.
"""

from __future__ import annotations

import contextlib
import select
import time

from cascade_sandbox.contract import Dialogue, Result
from cascade_sandbox.inside.wire import Header, Reader, WireError
from cascade_sandbox.seat import Seat
from cascade_sandbox.slot import Lost, check, read_result

_CHUNK = 1 << 16


class _Side:
    """One of the two programs."""

    def __init__(self, seat: Seat, wall: float) -> None:
        self.slot = seat.slot
        self.frames = Reader()
        self.said: list[bytes] = []
        self.result = seat.compiled if seat.compiled is not None and seat.compiled.verdict != "ok" else None
        if self.result is None:
            self.slot.settle()
            seat.runs += 1
            self.slot.send({"op": "talk", "args": [], "files": [], "wall_seconds": wall}, [b""])

    def read(self, other: _Side) -> None:
        """Takes what came from its supervisor and passes on what its program said."""
        try:
            data = self.slot.socket.recv(_CHUNK)
            if not data:
                raise EOFError("the other end closed the stream")
            frames = self.frames.feed(data)
        except (OSError, EOFError, WireError) as error:
            raise Lost(f"the connection broke: {error}") from error
        for header, blobs in frames:
            check(header, "result", "data", "eof")
            if header["op"] == "data":
                self.said += blobs
                other.hear(blobs)
            if header["op"] == "eof":
                other.end_input()
            if header["op"] == "result":
                self.result = read_result(header, [b"".join(self.said), *blobs[1:]])
                other.end_input()
                return  # what follows answers what was sent before this was known

    def hear(self, blobs: list[bytes]) -> None:
        """Sends what the other program said; one that has ended hears nothing."""
        if blobs:
            self._tell({"op": "data"}, blobs)

    def end_input(self) -> None:
        """The other program has ended, or closed its output."""
        self._tell({"op": "eof"}, [])

    def _tell(self, header: Header, blobs: list[bytes]) -> None:
        if self.result is None:
            with contextlib.suppress(
                Lost
            ):  # it has just ended: its result is on the way, or the lack of one is noticed
                self.slot.send(header, blobs)


def converse(left: Seat, right: Seat) -> Dialogue:
    """Passes everything on until both have ended; one that did not compile has ended before it began.

    Raises:
        Lost: a container failed.
    """
    wall = left.slot.limits.wall + right.slot.limits.wall
    sides = _Side(left, wall), _Side(right, wall)
    for side, other in (sides, sides[::-1]):
        if side.result is not None:
            other.end_input()
    deadline = time.monotonic() + 2 * max(side.slot.seconds for side in sides)
    while any(side.result is None for side in sides):
        waiting = [side.slot.socket for side in sides if side.result is None]
        ready, _, _ = select.select(waiting, [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise Lost("the conversation did not end in time")
        for side, other in (sides, sides[::-1]):
            if side.slot.socket in ready:
                side.read(other)
    return Dialogue(*(_result(side) for side in sides))


def _result(side: _Side) -> Result:
    if side.result is None:
        raise Lost("the conversation broke off")
    return side.result
