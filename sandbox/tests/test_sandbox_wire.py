"""Frames: whatever is sent arrives, however it is cut; whatever is no frame is refused, before memory is taken for it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

import pytest
from cascade_sandbox.inside import wire
from hypothesis import given
from hypothesis import strategies as st

HEADERS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name != "blobs"),
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    max_size=4,
)
FRAMES = st.tuples(HEADERS, st.lists(st.binary(max_size=300), max_size=4))


def _bytes(header: dict[str, Any], blobs: list[bytes]) -> bytes:
    return wire.pack(header, blobs) + b"".join(blobs)


def _raw(header: object, rest: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(4, "big") + text + rest


def _receive(data: bytes) -> wire.Frame:
    ours, theirs = socket.socketpair()

    def send() -> None:
        with theirs, contextlib.suppress(OSError):  # who refuses does not read on
            theirs.sendall(data)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with ours:
            ours.settimeout(10)
            return wire.receive(ours)
    finally:
        sender.join()


@given(FRAMES)
def test_a_frame_arrives_as_it_was_sent(frame: tuple[dict[str, Any], list[bytes]]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(theirs, *frame)
        assert wire.receive(ours) == frame


def test_a_frame_larger_than_the_buffers_of_a_socket_arrives() -> None:
    blobs = [b"a" * 3_000_000, b"", b"b" * 2_000_000]
    assert _receive(_bytes({"op": "x"}, blobs)) == ({"op": "x"}, blobs)


@given(st.lists(FRAMES, max_size=4), st.data())
def test_frames_are_found_in_pieces_of_any_length(frames: list[tuple[dict[str, Any], list[bytes]]], data: Any) -> None:
    stream, reader, found = b"".join(_bytes(*frame) for frame in frames), wire.Reader(), []
    while stream:
        length = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:length])
        stream = stream[length:]
    assert found == frames


@pytest.mark.parametrize(
    "data",
    [
        (wire.MAX_HEADER + 1).to_bytes(4, "big"),
        b"HTTP/1.1 200 OK\r\n\r\n",
        _raw([1, 2]),
        _raw({"op": "x"}),
        _raw({"blobs": [-1]}),
        _raw({"blobs": [True]}),
        _raw({"blobs": [1.0]}),
        _raw({"blobs": "12"}),
        _raw({"blobs": [wire.MAX_BLOBS, 1]}),
        _raw({"blobs": [0] * (wire.MAX_BLOB_COUNT + 1)}),
        b'\0\0\0\x13{"a":NaN,"blobs":[]}'[:23],
        b"\0\0\xff\xff" + b"[" * 0xFFFF,
        b"\0\0\0\x02\xff\xff",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        _receive(data)
    with pytest.raises(wire.WireError):
        wire.Reader().feed(data)


@pytest.mark.parametrize("length", [0, 3, 4, 10, 30, 100])
def test_a_stream_that_ends_is_the_end_and_no_frame(length: int) -> None:
    data = _bytes({"op": "result"}, [b"x" * 90])
    assert len(data) > length
    with pytest.raises(EOFError):
        _receive(data[:length])


@pytest.mark.parametrize(
    ("header", "blobs"),
    [({"x": "y" * (wire.MAX_HEADER + 1)}, []), ({}, [b""] * (wire.MAX_BLOB_COUNT + 1))],
    ids=["header", "count"],
)
def test_what_does_not_fit_into_a_frame_is_not_sent(header: dict[str, Any], blobs: list[bytes]) -> None:
    with pytest.raises(wire.WireError, match="allowed"):
        wire.pack(header, blobs)


def test_a_header_that_is_no_json_is_not_sent() -> None:
    with pytest.raises(ValueError):
        wire.pack({"seconds": float("nan")})
