"""A server under its guard: waited for, watched, started once more, ended; nothing of it is left."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from echoed import EXTENSION, events, is_running, pids, wait_until

from cascade_core.errors import ResourceError
from cascade_core.server import Server, reachable

SERVE = EXTENSION / "cascade_plugin_echo" / "serve.py"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def made(log: Path, fault: str = "", **more: object) -> Server:
    path = log.with_name("socket")
    command = [sys.executable, "-I", str(SERVE), str(path), "4", str(log), fault]
    return Server(command, f"unix:{path}", **{"seconds": 20.0, **more})  # type: ignore[arg-type]


@pytest.fixture
def server(log: Path) -> Iterator[Server]:
    made_one = made(log)
    yield made_one
    made_one.stop()


def say(server: Server, text: str) -> None:
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(server.address.removeprefix("unix:"))
        channel.sendall(text.encode() + b"\n")
        channel.recv(100)


def test_it_answers_when_start_returns_and_is_gone_when_stop_does(server: Server, log: Path) -> None:
    assert not server.alive() and reachable(server.address)
    server.start()
    assert server.alive() and not reachable(server.address)
    server.stop()
    server.stop()
    assert events(log) == ["start", "stop"] and not is_running(*pids(log))
    assert not server.alive() and reachable(server.address)


def test_one_that_ends_at_once_is_told_with_its_last_words(log: Path) -> None:
    with pytest.raises(ResourceError, match="ended with status 1: no port is free"):
        made(log, "early").start()


def test_one_that_never_answers_is_told_and_ended(log: Path) -> None:
    server = made(log, "mute", seconds=1.0)
    with pytest.raises(ResourceError, match="gave no answer for 1 s"):
        server.start()
    assert not is_running(*pids(log))


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="no-such-program ended with status 1: .*No such file"):
        Server([str(tmp_path / "no-such-program")], f"unix:{tmp_path}/socket").start()


def test_one_that_ends_by_itself_is_started_once_more_at_its_address(server: Server, log: Path) -> None:
    server.start()
    say(server, '"die"')
    wait_until(lambda: len(pids(log)) == 2 and not reachable(server.address))
    assert server.alive()
    say(server, '"die"')
    wait_until(lambda: not server.alive())
    assert len(pids(log)) == 2


@pytest.mark.slow
def test_one_that_is_deaf_to_a_polite_end_is_killed(log: Path) -> None:
    server = made(log, "deaf")
    server.start()
    server.stop()
    assert not is_running(*pids(log)) and events(log) == ["start"]


STARTER = """
import sys, time
from cascade_core.server import Server
server = Server(sys.argv[2:], sys.argv[1])
server.start()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("what", ["starter", "guard"])
def test_it_ends_when_its_starter_or_its_guard_is_killed(what: str, log: Path) -> None:
    server = made(log)
    command = [sys.executable, "-c", STARTER, server.address, *server._command]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert starter.stdout is not None and starter.stdout.readline() == b"ready\n"
        (pid,) = pids(log)
        guard = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(starter.pid if what == "starter" else guard, signal.SIGKILL)
        wait_until(lambda: not is_running(pid) and not is_running(guard))
        assert events(log) == (["start", "stop"] if what == "starter" else ["start"])
    finally:
        starter.kill()
        starter.communicate()


def test_addresses_of_both_kinds_are_tried_and_others_believed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        assert reachable(f"http://127.0.0.1:{port}/score") == ""
    assert "refused" in reachable(f"http://127.0.0.1:{port}")
    assert "no such file" in reachable(f"unix:{tmp_path}/none")
    assert reachable("http://127.0.0.1:99999")
    assert reachable("process:") == ""


def test_it_may_be_started_from_a_thread_that_ends(server: Server, log: Path) -> None:
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    assert not reachable(server.address)
    say(server, '"right"')
    assert server.alive() and is_running(*pids(log))
