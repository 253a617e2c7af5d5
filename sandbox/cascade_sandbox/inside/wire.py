"""Frames on a stream: a JSON header and binary blobs. The same file serves both ends.

A frame is the length of the header (4 bytes, big-endian), the header (a JSON object, ASCII) and, back to back, the blobs whose
lengths `header["blobs"]` lists. Nothing that is received is ever executed or unpickled. What a header means is the
business of `session.py` inside and of `cascade_sandbox.slot` outside.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any, NoReturn, Optional

MAX_HEADER = 1 << 20
"""Bytes that a header may have."""

MAX_BLOBS = 256 << 20
"""Bytes that all blobs of one frame may have together."""

MAX_BLOB_COUNT = 1 << 14
"""Blobs that one frame may have."""

Header = dict[str, Any]
Frame = tuple[Header, list[bytes]]


class WireError(Exception):
    """What came is no frame, or what should be sent does not fit into one."""


def pack(header: Header, blobs: Sequence[bytes] = ()) -> bytes:
    """The bytes in front of the blobs.

    Raises:
        WireError: the header or the blobs are too large.
    """
    lengths = [len(blob) for blob in blobs]
    if sum(lengths) > MAX_BLOBS or len(lengths) > MAX_BLOB_COUNT:
        raise WireError(
            f"{len(lengths)} blobs of {sum(lengths)} bytes, at most {MAX_BLOB_COUNT} of {MAX_BLOBS} are allowed"
        )
    text = _ENCODER.encode({**header, "blobs": lengths}).encode("ascii")
    if len(text) > MAX_HEADER:
        raise WireError(f"a header of {len(text)} bytes, at most {MAX_HEADER} are allowed")
    return len(text).to_bytes(4, "big") + text


def send(sock: socket.socket, header: Header, blobs: Sequence[bytes] = ()) -> None:
    """Sends one frame; small blobs travel with the header in one packet.

    Raises:
        WireError: it is too large for a frame.
        OSError: the other end is gone, or did not read within the socket's timeout.
    """
    front = pack(header, blobs)
    if sum(map(len, blobs)) <= 1 << 16:
        sock.sendall(front + b"".join(blobs))
        return
    sock.sendall(front)
    for blob in blobs:
        sock.sendall(blob)


def receive(sock: socket.socket) -> Frame:
    """Waits for one frame, within the socket's timeout for each piece of it.

    Raises:
        EOFError: the other end closed the stream, in front of a frame or in the middle of one.
        WireError: what came is no frame.
        OSError: the stream broke or timed out.
    """
    header, lengths = _parse(_exactly(sock, _header_length(_exactly(sock, 4))))
    return header, [_exactly(sock, length) for length in lengths]


class Reader:
    """Finds frames in a stream that arrives in pieces: for an end that must not wait."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._front: Optional[tuple[Header, list[int], int]] = None

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete with these bytes.

        Raises:
            WireError: what came is no frame.
        """
        self._buffer += data
        frames: list[Frame] = []
        while True:
            frame = self._next()
            if frame is None:
                return frames
            frames.append(frame)

    def _next(self) -> Optional[Frame]:
        if self._front is None:
            self._front = self._read_front()
            if self._front is None:
                return None
        header, lengths, start = self._front
        if len(self._buffer) < start + sum(lengths):
            return None
        blobs = []
        for length in lengths:
            blobs.append(bytes(self._buffer[start : start + length]))
            start += length
        del self._buffer[:start]
        self._front = None
        return header, blobs

    def _read_front(self) -> Optional[tuple[Header, list[int], int]]:
        if len(self._buffer) < 4:
            return None
        end = 4 + _header_length(bytes(self._buffer[:4]))
        if len(self._buffer) < end:
            return None
        header, lengths = _parse(bytes(self._buffer[4:end]))
        return header, lengths, end


def _header_length(data: bytes) -> int:
    length = int.from_bytes(data, "big")
    if length > MAX_HEADER:
        raise WireError(f"a header of {length} bytes is announced, at most {MAX_HEADER} are allowed")
    return length


def _parse(text: bytes) -> tuple[Header, list[int]]:
    try:
        header = _DECODER.decode(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"the header is no JSON object: {error}") from None
    lengths = header.pop("blobs", None) if isinstance(header, dict) else None
    if not isinstance(lengths, list) or not all(type(length) is int and length >= 0 for length in lengths):
        raise WireError("the header is no JSON object with a list of blob lengths")
    if sum(lengths) > MAX_BLOBS or len(lengths) > MAX_BLOB_COUNT:
        raise WireError(f"{len(lengths)} blobs of {sum(lengths)} bytes are announced, more than is allowed")
    return header, lengths


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


# Made once: `json.dumps` and `json.loads` with options of their own make a new one for every frame.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = bytearray(count)
    view = memoryview(data)
    done = 0
    while done < count:
        got = sock.recv_into(view[done:])
        if not got:
            raise EOFError("the other end closed the stream")
        done += got
    return bytes(data)
