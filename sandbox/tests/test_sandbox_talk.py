"""Conversations: everything that is said arrives, in both directions, and neither side can make the other wait for ever."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from cascade_sandbox.inside import wire
from supervisors import KINDS, Supervisor, ask, open_program, run, supervisor, until


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    with supervisor(request.param) as running:
        yield running


@pytest.fixture
def client(place: Supervisor) -> Iterator[socket.socket]:
    with place.connect() as connected:
        yield connected


class Talk:
    """The client's side, which reads whenever there is something to read."""

    def __init__(self, client: socket.socket, source: bytes, **limits: Any) -> None:
        self.client = client
        self.heard = b""
        self.ended = False
        self.result: dict[str, Any] | None = None
        self._reader = wire.Reader()
        open_program(client, source, **limits)
        self.send("talk", b"", args=["x"], files=[])

    def send(self, op: str, blob: bytes | None = None, **header: Any) -> None:
        data = wire.pack({"op": op, **header}, [] if blob is None else [blob]) + (blob or b"")
        view = memoryview(data)
        while view:
            readable, writable, _ = select.select([self.client], [self.client], [], 30)
            if readable:
                self.read()
            if writable:
                view = view[self.client.send(view[: 1 << 16]) :]

    def read(self) -> None:
        data = self.client.recv(1 << 16)
        assert data, "the supervisor hung up"
        for header, blobs in self._reader.feed(data):
            assert self.result is None, "the result is the last frame"
            self.heard += blobs[0] if header["op"] == "data" else b""
            self.ended = self.ended or header["op"] == "eof"
            self.result = header if header["op"] == "result" else None

    def until_heard(self, text: bytes) -> None:
        while text not in self.heard:
            self.read()

    def finish(self) -> dict[str, Any]:
        while self.result is None:
            self.read()
        return self.result


def test_question_and_answer(client: socket.socket) -> None:
    talk = Talk(client, b"echo hello $1; while read x; do echo $((x + 1)); done; echo bye")
    talk.until_heard(b"hello x\n")
    for number in (1, 10, 100):
        talk.send("data", b"%d\n" % number)
        talk.until_heard(b"%d\n" % (number + 1))
    talk.send("eof")
    assert talk.finish()["verdict"] == "ok"
    assert talk.heard == b"hello x\n2\n11\n101\nbye\n" and talk.ended


def test_what_arrives_can_be_read_from_a_name(client: socket.socket) -> None:
    talk = Talk(client, b"read x < /dev/stdin; echo $x > /dev/stdout")
    talk.send("data", b"41\n")
    talk.send("eof")
    assert talk.finish()["verdict"] == "ok" and talk.heard == b"41\n"


def test_much_more_than_any_buffer_goes_both_ways(client: socket.socket) -> None:
    data = os.urandom(5 << 20)
    talk = Talk(client, b"cat", output_bytes=8 << 20)
    for start in range(0, len(data), 100_000):
        talk.send("data", data[start : start + 100_000])
    talk.send("eof")
    assert talk.finish()["verdict"] == "ok" and talk.heard == data


def test_what_a_program_does_not_read_holds_nobody_up(client: socket.socket) -> None:
    talk = Talk(client, b"exec <&-; sleep 0.3; echo done")
    talk.send("data", b"x" * (2 << 20))
    talk.send("eof")
    assert talk.finish()["verdict"] == "ok" and talk.heard == b"done\n"


def test_a_client_that_does_not_listen_holds_the_supervisor_up_no_longer_than_it_stays(place: Supervisor) -> None:
    with place.connect() as client:
        open_program(client, b"head -c 4000000 /dev/zero; sleep 1000", output_bytes=8 << 20, wall_seconds=500)
        wire.send(client, {"op": "talk", "args": [], "files": []}, [b""])
        until(lambda: len(place.leftovers()) == 3)
    until(lambda: not place.leftovers())
    with place.connect() as client:
        assert ask(client, {"op": "ping"})[0] == {"op": "pong"}


def test_an_end_can_be_asked_for(client: socket.socket) -> None:
    talk = Talk(client, b"echo here; sleep 1000", wall_seconds=500)
    talk.until_heard(b"here\n")
    talk.send("kill")
    assert talk.finish()["exit_code"] == -9


def test_a_conversation_has_a_clock(client: socket.socket) -> None:
    assert Talk(client, b"read x", wall_seconds=0.5).finish()["verdict"] == "timeout"


def test_more_than_may_be_said_ends_it(client: socket.socket) -> None:
    talk = Talk(client, b"yes", output_bytes=50_000)
    assert talk.finish()["verdict"] == "output" and len(talk.heard) == 50_000


def test_what_holds_the_pipe_is_not_waited_for(place: Supervisor, client: socket.socket) -> None:
    talk = Talk(client, b"sleep 1000 & echo ok")
    assert talk.finish()["verdict"] == "ok" and talk.heard == b"ok\n"
    assert len(place.leftovers()) == 1


def test_what_comes_too_late_is_no_trouble(place: Supervisor, client: socket.socket) -> None:
    talk = Talk(client, b"exit 0")
    talk.finish()
    for _ in range(100):
        client.sendall(wire.pack({"op": "data"}, [b"late"]) + b"late")
    client.close()
    with place.connect() as following:
        open_program(following, b"echo next")
        assert run(following)["stdout"] == b"next\n"


def test_a_word_that_is_none_of_a_conversation_ends_it_with_a_reason(client: socket.socket) -> None:
    open_program(client, b"sleep 1000", wall_seconds=500)
    wire.send(client, {"op": "talk", "args": [], "files": []}, [b""])
    answer, _ = ask(client, {"op": "sing"})
    assert answer["op"] == "error" and "sing" in answer["reason"]
