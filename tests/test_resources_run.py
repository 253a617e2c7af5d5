"""Resources as a person meets them: listed, planned, started once for a command or a run, ended however that ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echoed import EXTENSION, NEED, echo, events, installed, is_running, pids, rows, wait_until
from served import process, server
from strangers import environment
from typer.testing import CliRunner, Result

from cascade_core.cli.app import app
from cascade_core.rows import read, write

__all__ = ["echo", "process", "server"]
CASCADE = [sys.executable, "-c", "from cascade_core.cli import main; main()"]
SPEC = """
name: small
model: {init: {hidden_size: 16, layers: 1, heads: 2, context: 64}}
trainer: copy
domains: {echo: }
resources: {echo-server: {local: {log: LOG}}}
stages:
  - {name: one, domains: echo, steps: 2, rollout: {prompts_per_step: 2, samples_per_prompt: 2, max_response_tokens: 4}}
  - {name: two, domains: echo, steps: 1, rollout: {prompts_per_step: 2, samples_per_prompt: 2, max_response_tokens: 4}}
scoring: {workers: 1, concurrency: 3}
evaluation: {limit: 2, sampling: {max_response_tokens: 4}}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def spec(tmp_path: Path, log: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("LOG", str(log)))
    return path


def cascade(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def local(log: Path, **options: Any) -> str:
    return f"{NEED}={json.dumps({'local': {'log': str(log), **options}})}"


def sampled(folder: Path, *responses: str) -> Path:
    path = folder / "rows.jsonl"
    write(path, rows(*responses))
    return path


def test_they_are_listed_with_what_they_provide(echo: None) -> None:
    found = {plugin["distribution"]: plugin for plugin in json.loads(cascade("plugins", "--json").stdout)["plugins"]}
    assert found["cascade-plugin-echo"]["offers"]["resource"] == ["echo-server/broken", "echo-server/local"]


def test_a_plan_says_what_will_be_started_and_starts_nothing(echo: None, spec: Path, log: Path) -> None:
    told = json.loads(cascade("plan", spec, "--json").stdout)["resources"]
    options = {"log": str(log)}
    assert [(one["need"], one["name"], one["options"], one["domains"]) for one in told] == [
        (NEED, "local", options, ["echo"])
    ]
    assert "with the run" in cascade("plan", spec).stdout
    assert "runs already" in cascade("plan", spec, "--set", f"resources.{NEED}=unix:/x").stdout
    assert not log.exists()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"resources.{NEED}=lokal",
            f"resources.{NEED}: nothing that provides 'echo-server' is called 'lokal', did you",
        ),
        (f"resources.{NEED}={{local: {{slot: 1}}}}", "resource 'local': unknown option 'slot', did you mean 'slots'"),
        (
            "resources.echo-serve=local",
            "resources.echo-serve: no domain here needs 'echo-serve', did you mean 'echo-server'",
        ),
        (f"resources.{NEED}={{local: , broken: }}", "must be one name with its options, found 2"),
        (f"resources.{NEED}=3", "must be a name, an address or a mapping of one name to its options, found 3"),
        (f"resources.{NEED}=", "must be a name, an address or a mapping of one name to its options, found None"),
        (f"resources.{NEED}=[local]", "must be a name, an address or a mapping of one name to its options, found ["),
        ("resources=local", "resources: must be a mapping"),
        (f"resources.{NEED}=ftp://x", f"resources.{NEED}: an echo is at no ftp://x"),
        (f"resources.{NEED}=http://[1", f"resources.{NEED}: echo-server: 'http://[1' is no address"),
    ],
)
def test_a_spec_that_says_it_wrongly_is_refused_with_its_place(echo: None, spec: Path, said: str, told: str) -> None:
    refused = cascade("plan", spec, "--set", said)
    assert refused.exit_code == 2 and told in refused.stderr and "--set" in refused.stderr, refused.stderr


@pytest.mark.slow
def test_a_file_is_judged_with_one_resource_for_all_workers(echo: None, tmp_path: Path, log: Path) -> None:
    path = sampled(tmp_path, "meet 3", "meet 3", "meet 3", "wrong")
    done = cascade("score", path, "--resource", local(log), "--workers", 1, "--concurrency", 3, "--json")
    assert done.exit_code == 0, done.output
    scores = [row["score"] for row in read(tmp_path / "rows.scored.jsonl")]
    assert [score["value"] for score in scores] == [1.0, 1.0, 1.0, 0.0]
    assert events(log) == ["start", "stop"]
    assert {score["note"] for score in scores} == {f"from {pids(log)[0]}"}


def test_what_judged_a_file_is_pinned_but_for_what_is_free(echo: None, tmp_path: Path, log: Path) -> None:
    path = sampled(tmp_path, "right")
    assert cascade("score", path, "--resource", local(log)).exit_code == 0
    pins = json.loads((tmp_path / "rows.scored.jsonl.lock.json").read_text())["domains"]
    assert pins["echo"]["resources"] == {NEED: {"local": {}}} and "resources" not in pins["if"]
    assert cascade("score", path, "--resource", local(log, slots=2)).exit_code == 0
    refused = cascade("score", path, "--resource", local(log, strict=False))
    assert refused.exit_code == 1 and "resources {'echo-server': {'local': {}}}, now" in refused.stderr


def test_a_file_without_rows_that_need_it_starts_nothing(echo: None, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write(path, [{"domain": "none", "id": "a", "prompt": "a", "response": "a"}])
    done = cascade("score", path, "--max-error-rate", 1)
    assert done.exit_code == 1 and "no domain 'none' is scored here" in done.stdout
    assert "no domain here needs 'echo-server'" in cascade("score", path, "--resource", f"{NEED}=broken").stderr


def test_what_cannot_be_started_ends_the_command_before_anything_is_written(echo: None, tmp_path: Path) -> None:
    path = sampled(tmp_path, "right")
    refused = cascade("score", path, "--resource", f"{NEED}=broken")
    assert refused.exit_code == 1 and "`echo doctor` says how to get one" in refused.stderr
    assert [found.name for found in tmp_path.iterdir()] == ["rows.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "audit", "explain", "eval"])
def test_every_command_that_judges_starts_it_and_ends_it(
    command: str, echo: None, tmp_path: Path, log: Path, server: Any
) -> None:
    arguments: dict[str, list[object]] = {
        "check": ["echo", "--tasks", 2],
        "audit": ["echo", "--tasks", 2],
        "explain": [sampled(tmp_path, "right")],
        "eval": ["--endpoint", server.url, "--model", "m", "--benchmark", "echo/test", "--limit", 2],
    }
    more: list[object] = ["--output", tmp_path / "out"] if command == "eval" else []
    done = cascade(command, *arguments[command], *more, "--resource", local(log), "--json")
    assert done.exit_code == 0, done.output
    assert events(log) == ["start", "stop"]
    if command == "eval":
        assert json.loads(done.stdout)["benchmarks"]["echo/test"]["estimates"]["avg@1"]["value"] == 1.0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_nothing_is_left_of_a_command_that_is_stopped(number: int, status: int, tmp_path: Path, log: Path) -> None:
    path = sampled(tmp_path, "sleep 600", "sleep 600")
    command = [*CASCADE, "score", str(path), "--resource", local(log)]
    env = {**environment(EXTENSION), "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: len(children(running.pid)) >= 3)  # the guard and two that judge
        started = [*children(running.pid), *pids(log)]
        running.send_signal(number)
        assert running.wait(60) == status
        wait_until(lambda: not any(map(is_running, started)))
    finally:
        running.kill()
        said = running.communicate()[1]
    assert events(log) == ["start", "stop"]
    assert said.endswith(b"cascade: interrupted; the same command goes on from here\n") == (number != signal.SIGKILL)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for child in (task / "children").read_text().split()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Path]]:
    """A run, the spec of it, and what its servers told."""
    base = tmp_path_factory.mktemp("whole")
    path, log = base / "spec.yaml", base / "log"
    path.write_text(SPEC.replace("LOG", str(log)))
    with installed():
        done = cascade("run", path, "--folder", base / "run")
        assert done.exit_code == 0, done.output
        yield base / "run", path, log


@pytest.mark.slow
def test_a_run_starts_it_once_for_all_stages_and_benchmarks(whole: tuple[Path, Path, Path]) -> None:
    folder, _, log = whole
    assert events(log) == ["start", "stop"]
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    (resources,) = (event for event in told if event["kind"] == "resources")
    assert resources[NEED] == {"name": "local", "python": 3}
    for stage in ("00-start", "01-one", "02-two"):
        for row in read(folder / "stages" / stage / "eval" / "echo" / "test.jsonl"):
            assert row["score"]["note"] == f"from {pids(log)[0]}"


@pytest.mark.slow
def test_every_step_tells_what_its_verdicts_took(whole: tuple[Path, Path, Path]) -> None:
    folder, _, _ = whole
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    steps = [event for event in told if event["kind"] == "step"]
    keys = {f"{name}_seconds/echo" for name in ("queue", "run", "run_max", "wait")}
    assert len(steps) == 3 and all(keys <= set(step) and all(step[key] >= 0 for key in keys) for step in steps)
    page = (folder / "report.html").read_text()
    assert "mean time of a verdict by domain, s" in page and "wait for the last verdict by domain, s" in page


@pytest.mark.slow
def test_a_finished_run_starts_nothing_whatever_is_free_and_refuses_what_is_not(
    whole: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    folder, path, log = whole
    pinned = json.loads((folder / "lock.json").read_text())
    assert pinned["resources"] == {NEED: {"local": {}}}
    assert pinned["plugins"][f"resource {NEED}/local"]["distribution"] == "cascade-plugin-echo"
    more = f"resources.{NEED}={{local: {{slots: 3, log: {tmp_path}/other}}}}"
    assert cascade("run", path, "--folder", folder, "--set", more).exit_code == 0
    assert events(log) == ["start", "stop"] and not (tmp_path / "other").exists()
    refused = cascade("run", path, "--folder", folder, "--set", f"resources.{NEED}=unix:/x")
    assert refused.exit_code == 1 and f"resources.{NEED}.local was" in refused.stderr


@pytest.mark.slow
def test_an_unfinished_run_goes_on_only_with_what_its_resources_were(
    echo: None, spec: Path, log: Path, tmp_path: Path
) -> None:
    model, folder = Path(f"{log}.model"), tmp_path / "run"
    model.write_text("one")
    assert cascade("run", spec, "--folder", folder).exit_code == 0
    assert json.loads((folder / "lock.json").read_text())["started"] == {NEED: {"model": "one"}}
    shutil.rmtree(folder / "stages" / "02-two")
    model.write_text("two")
    refused = cascade("run", spec, "--folder", folder)
    assert refused.exit_code == 1 and f"started.{NEED}.model was 'one' and is 'two'; put it back" in refused.stderr
    assert not (folder / "stages" / "02-two").exists() and events(log)[-1] == "stop"
    model.write_text("one")
    assert cascade("run", spec, "--folder", folder).exit_code == 0


@pytest.mark.slow
def test_one_that_goes_in_the_middle_of_a_run_stops_it_and_is_named(
    whole: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cascade_core import evaluate

    _, path, _ = whole
    log, take = tmp_path / "log", evaluate.take

    def taken(exam: Any, *rest: Any, **more: Any) -> None:
        for _ in range(2):  # the first time it is started once more
            (pid,) = filter(is_running, pids(log))
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]
            wait_until(lambda: any(map(is_running, pids(log))) or len(pids(log)) == 2)
        wait_until(lambda: not any(map(is_running, pids(log))))
        take(exam, *rest, **more)

    monkeypatch.setattr(evaluate, "take", taken)
    more = f"resources.{NEED}={{local: {{log: {log}}}}}"
    stopped = cascade("run", path, "--folder", tmp_path / "run", "--set", more)
    assert stopped.exit_code == 1
    assert "what provides 'echo-server' (local, cascade-plugin-echo 0.1.0) has gone" in stopped.stderr
    assert "could not be judged" in stopped.stderr
    monkeypatch.undo()
    assert cascade("run", path, "--folder", tmp_path / "run", "--set", more).exit_code == 0
    assert len(pids(log)) == 3
