"""The supervisor and its clients: ones that hang up, come too many, send nonsense; its end; and programs that are compiled."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox.inside import wire
from supervisors import COMPILED, KINDS, LIMITS, PYTHON, SHELL, Supervisor, ask, open_program, run, supervisor, until


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    with supervisor(request.param, impatient=True) as running:
        yield running


@pytest.fixture
def client(place: Supervisor) -> Iterator[socket.socket]:
    with place.connect() as connected:
        yield connected


def _works(place: Supervisor) -> bool:
    """Whether the next client is served, with nothing of the one before."""
    with place.connect() as client:
        open_program(client, b"echo ok")
        assert len(place.leftovers()) == 1
        return bool(run(client)["stdout"] == b"ok\n")


def test_a_client_that_hangs_up_ends_what_runs_for_it(place: Supervisor) -> None:
    with place.connect() as client:
        open_program(client, b"echo $$ > /proc/self/cwd/pid; sleep 1000", wall_seconds=500)
        wire.send(client, {"op": "run", "args": [], "files": []}, [b""])
        until(lambda: len(place.leftovers()) == 3)
    until(lambda: not place.leftovers())
    assert _works(place)


def test_a_client_that_hangs_up_ends_the_compiler(place: Supervisor) -> None:
    with place.connect() as client:
        header = {"op": "open", "language": COMPILED, "limits": LIMITS, "files": []}
        wire.send(client, header, [b"sleep 1000"])
        until(lambda: len(place.leftovers()) == 3)
    until(lambda: not place.leftovers())
    assert _works(place)


def test_a_second_client_is_told_so_in_time(place: Supervisor, client: socket.socket) -> None:
    open_program(client, b"sleep 1.5; echo mine", wall_seconds=30)
    wire.send(client, {"op": "run", "args": [], "files": []}, [b""])
    with place.connect() as second:
        started = time.monotonic()
        header, _ = ask(second, {"op": "ping"})
        assert header["op"] == "error" and "busy" in header["reason"]
        assert time.monotonic() - started < 10
    assert wire.receive(client)[1][0] == b"mine\n"


def test_a_client_that_comes_while_another_leaves_is_served(place: Supervisor) -> None:
    for _ in range(20):
        with place.connect() as client:
            assert ask(client, {"op": "ping"})[0] == {"op": "pong"}


@pytest.mark.parametrize("nonsense", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\2{}", b"\0\0", b"\xff" * 100])
def test_nonsense_costs_only_its_own_connection(place: Supervisor, nonsense: bytes) -> None:
    with place.connect() as client:
        client.sendall(nonsense)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # what is left of the nonsense is not read any more
            assert client.recv(100) == b""
    assert _works(place)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"op": "sudo"}, "sudo"),
        ({"op": ["ping"]}, "ping"),
        ({"op": "run", "args": [], "files": []}, "after open"),
        ({"op": "open", "language": SHELL, "limits": {**LIMITS, "cpu_seconds": 0}, "files": []}, "cpu_seconds"),
        ({"op": "open", "language": SHELL, "limits": {**LIMITS, "processes": True}, "files": []}, "processes"),
        ({"op": "open", "language": SHELL, "limits": {}, "files": []}, "memory_bytes"),
        ({"op": "open", "language": SHELL, "limits": LIMITS, "files": ["a"]}, "names of 0 files"),
        ({"op": "open", "language": {**SHELL, "file": "../x"}, "limits": LIMITS, "files": []}, "without a slash"),
        ({"op": "open", "language": {**SHELL, "run": []}, "limits": LIMITS, "files": []}, "list of words"),
        ({"op": "open", "language": None, "limits": LIMITS, "files": []}, "language"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_request_is_answered_with_its_reason(place: Supervisor, header: dict[str, Any], reason: str) -> None:
    with place.connect() as client:
        answer, _ = ask(client, header, [b"source"])
        assert answer["op"] == "error" and reason in answer["reason"]
    assert _works(place)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"files": {"../x": b""}}, "without a slash"),
        ({"args": ["a\0b"]}, "NUL"),
        ({"args": ["\ud800"]}, "surrogates"),
        ({"args": ["x" * 200_000]}, "Argument list too long"),
    ],
    ids=["name", "nul", "surrogate", "long"],
)
def test_an_input_that_cannot_be_is_an_error_and_no_verdict(
    place: Supervisor, client: socket.socket, given: dict[str, Any], reason: str
) -> None:
    open_program(client, b"echo ok")
    answer = run(client, **given)
    assert answer["op"] == "error" and reason in answer["reason"]


def test_a_missing_interpreter_is_an_error_and_no_verdict(client: socket.socket) -> None:
    open_program(client, b"x", {**SHELL, "run": ["no-such-interpreter", "{source}"]})
    answer = run(client)
    assert answer["op"] == "error" and "no-such-interpreter" in answer["reason"]


def test_a_missing_compiler_is_an_error_and_no_verdict(client: socket.socket) -> None:
    answer = open_program(client, b"x", {**COMPILED, "compile": ["no-such-compiler"]})
    assert answer["op"] == "error" and "no-such-compiler" in answer["reason"]


def test_a_program_is_compiled_once_and_run_often(client: socket.socket) -> None:
    answer = open_program(client, b"#!/bin/sh\nread x\necho got $x", COMPILED)
    assert answer["compiled"]["verdict"] == "ok"
    assert [run(client, stdin=word)["stdout"] for word in (b"a\n", b"b\n")] == [b"got a\n", b"got b\n"]


@pytest.mark.parametrize(
    "source",
    [b"echo no >&2; exit 1", b"rm *", b"rm *; ln -s /bin/sh program", b"rm *; mkdir program", b"kill -9 $$"],
    ids=["fails", "makes nothing", "makes a link", "makes a folder", "dies"],
)
def test_what_does_not_compile_says_so_and_leaves_nothing(
    place: Supervisor, client: socket.socket, source: bytes
) -> None:
    assert open_program(client, source, COMPILED)["compiled"]["verdict"] == "compile_error"
    assert len(place.leftovers()) == 1


def test_a_compiled_program_that_cannot_start_has_failed(client: socket.socket) -> None:
    open_program(client, b"#!/no/such/interpreter\n", COMPILED)
    assert run(client)["verdict"] == "failed"


def test_what_was_compiled_is_nobodys_to_change(place: Supervisor, client: socket.socket) -> None:
    open_program(client, b"#!/bin/sh\nchmod u+s program 2>/dev/null\n", COMPILED)
    (program,) = place.work.glob("*/program")
    assert stat.S_IMODE(program.stat().st_mode) == 0o555 and program.stat().st_uid == os.geteuid()


def test_opening_again_replaces_the_program(place: Supervisor, client: socket.socket) -> None:
    for word in (b"one", b"two"):
        open_program(client, b"echo " + word)
        assert run(client)["stdout"] == word + b"\n"
        assert len(place.leftovers()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_told_to_end_it_ends_what_runs(kind: str) -> None:
    with supervisor(kind) as place, place.connect() as client:
        open_program(client, b"sleep 1000", wall_seconds=500)
        wire.send(client, {"op": "run", "args": [], "files": []}, [b""])
        until(lambda: len(place.leftovers()) == 3)
        running = next(word for word in place.leftovers() if word.isdigit())
        place.process.terminate()
        assert place.process.wait(30) == 0
        until(lambda: not Path(f"/proc/{running}").exists())  # it was killed; somebody else reaps it


def test_the_one_on_this_machine_ends_with_its_owner() -> None:
    with supervisor("here") as place, place.connect() as client:
        open_program(client, b"sleep 1000", wall_seconds=500)
        wire.send(client, {"op": "run", "args": [], "files": []}, [b""])
        until(lambda: len(place.leftovers()) == 3)
        assert place.process.stdin is not None
        place.process.stdin.close()
        assert place.process.wait(30) == 0
        assert not place.folder.exists()


def test_a_program_that_kills_its_supervisor_is_an_end_of_the_connection_and_no_verdict() -> None:
    with supervisor("here") as place, place.connect() as client:
        open_program(client, b"import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", PYTHON)
        with pytest.raises((EOFError, ConnectionResetError)):
            run(client)
        assert place.process.wait(30) == -signal.SIGKILL
