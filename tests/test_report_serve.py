"""`cascade report RUN --serve`: follows a run on the loopback address, and changes nothing."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_fixture import Shape, make_run
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.errors import UsageError
from cascade_core.report import serve
from cascade_core.report.serve import Following
from cascade_core.rows import dump


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run", Shape(steps=3, tasks=8, samples=1))


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


class Clock:
    """A clock that goes on by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def add_event(run: Path) -> None:
    with (run / "events.jsonl").open("a") as events:
        events.write(dump({"kind": "step", "stage": "03-math", "step": 77, "time": 9.0, "odd_new_field": 0.5}) + "\n")


def content(run: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in run.rglob("*") if path.is_file()}


def test_a_page_is_made_anew_when_an_event_was_written(run: Path, clock: Clock) -> None:
    following = Following(run, clock)
    before, version = following.page(), following.version()
    assert f'data-version="{version["version"]}"' in before and "odd new field" not in before
    add_event(run)
    clock.now += 3
    assert following.version()["version"] != version["version"]
    assert "odd new field" in following.page()


def test_a_page_is_not_made_anew_while_nothing_changes(
    run: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = Following(run, clock)
    monkeypatch.setattr("cascade_core.report.page.render", lambda *_: pytest.fail("made again"))
    for _ in range(3):
        clock.now += 1000
        assert following.page()
        (run / "stages" / "03-math" / "eval" / "math" / "test.jsonl").touch()


def test_pages_are_made_a_tenth_of_the_time_at_most(run: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    from cascade_core.report import page

    real, made = page.render, []

    def slow(*args: object) -> str:
        clock.now += 2.0
        made.append(clock.now)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(page, "render", slow)
    following = Following(run, clock)
    while clock.now < 300:
        clock.now += 1.0
        add_event(run)
        following.version()
    gaps = [after - before for before, after in itertools.pairwise(made)]
    assert len(made) >= 5 and min(gaps) >= 20.0


def test_finished_is_told_once_the_last_stage_is_through(run: Path, clock: Clock) -> None:
    metrics = run / "stages" / "03-math" / "metrics.json"
    kept = metrics.read_bytes()
    metrics.unlink()
    following = Following(run, clock)
    assert following.version()["finished"] is False
    metrics.write_bytes(kept)
    clock.now += 100
    assert following.version()["finished"] is True


def test_a_folder_that_vanishes_leaves_the_last_page(run: Path, clock: Clock) -> None:
    following = Following(run, clock)
    before = following.page()
    shutil.rmtree(run)
    clock.now += 100
    assert following.page() == before


def test_the_page_of_a_server_may_ask_its_own_server_and_nobody_else(run: Path) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', Following(run).page())
    assert policy and policy[1].count("connect-src &#39;self&#39;;") == 1
    assert policy[1].startswith("default-src &#39;none&#39;;") and "unsafe" not in policy[1]


@pytest.fixture
def served(run: Path) -> Iterator[tuple[Path, int, subprocess.Popen[str]]]:
    # Where the tests themselves run in the background, Ctrl-C may be ignored; here it may not.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from cascade_core.cli import main; main()"
    command = [sys.executable, "-c", code, "report", str(run), "--serve", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    told = ""
    while not told.endswith("}\n") and (line := process.stdout.readline()):
        told += line
    try:
        yield run, int(json.loads(told)["address"].rsplit(":", 1)[1].strip("/")), process
    finally:
        process.kill()
        process.communicate()


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_follows_writes_nothing_and_ends_when_it_is_told_to(
    served: tuple[Path, int, subprocess.Popen[str]], sent: signal.Signals
) -> None:
    run, port, process = served
    before = content(run)
    status, page = ask(port, "/")
    assert status == 200 and "Every benchmark after every stage" in page
    first = json.loads(ask(port, "/version")[1])
    assert first == {"version": first["version"], "finished": True} and first["version"] in page
    assert ask(port, "/", method="HEAD") == (200, "")
    assert ask(port, "/events.jsonl")[0] == ask(port, "/../lock.json")[0] == 404
    assert ask(port, "/", method="POST")[0] == 501
    for host in ("example.org", f"example.org:{port}", "", "127.0.0.1.example.org", "localhost.:1", f"0.0.0.0:{port}"):
        status, body = ask(port, "/", host)
        assert status == 421 and "loopback" in body, host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost", "[::1]:9000", "localhost:9000"):
        assert ask(port, "/version", host)[0] == 200, host
    assert content(run) == before
    add_event(run)
    end = time.monotonic() + 60
    while json.loads(ask(port, "/version")[1]) == first:
        assert time.monotonic() < end
        time.sleep(0.2)
    process.send_signal(sent)
    assert process.communicate(timeout=60) == ("", f"{run} is followed no longer\n") and process.returncode == 0


def test_the_server_listens_on_the_loopback_address_only(run: Path) -> None:
    server = serve._Server(0, Following(run))
    with server:
        assert server.server_address[0] == "127.0.0.1"
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_or_absurd_is_refused_in_words(run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*--port 0"):
            serve.serve(run, port, say=lambda address: None)
    with pytest.raises(UsageError, match="cannot listen on"):
        serve.serve(run, 70_000, say=lambda address: None)


def test_a_port_without_a_server_and_a_folder_without_a_run_are_refused(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(run), "--port", "80"])
    assert done.exit_code == 2 and "--port is for --serve" in done.stderr
    assert not (run / "report.html").exists()
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(app, ["report", str(tmp_path / "empty"), "--serve"])
    assert done.exit_code == 2 and "is no run" in done.stderr
