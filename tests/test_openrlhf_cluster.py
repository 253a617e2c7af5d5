"""A job on a cluster that runs already: followed whatever happens, ended with its stage, never there twice, no secret in it."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import STAND_IN, RayCluster

from cascade_core.errors import TrainerError, UsageError
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_guard as guard
from cascade_core.trainers.openrlhf_client import Client
from cascade_core.trainers.openrlhf_cluster import Submission, host, lend, unbegun, variables
from cascade_core.trainers.openrlhf_launch import end_earlier, launched, places
from cascade_core.trainers.openrlhf_stage import _listening

PROGRAM = Path(guard.__file__).with_name("openrlhf_submit.py")
RAY = "http://127.0.0.1:8265"
LINES = "import time\nfor n in range({n}):\n    print('line', n, flush=True); time.sleep({pause})\n"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path / "ray")
    monkeypatch.setenv("FAKE_RAY", str(made.folder))
    made.start()
    yield made
    made.end()


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The engine's interpreter: it has the stand-in of Ray, and says that it has OpenRLHF."""
    path = tmp_path / "python"
    there = f'PYTHONPATH="{STAND_IN}" exec {sys.executable} "$@"'
    path.write_text(f'#!/bin/sh\ncase "$1" in -P) {there};; esac\necho openrlhf 0.11.2\n')
    path.chmod(0o755)
    return path


AFTER = """
import os
while not os.path.exists({file!r}):
    time.sleep(0.02)
for n in range(20, 30):
    print('line', n, flush=True)
"""


def described(folder: Path, python: Path, code: str, **changes: Any) -> Path:
    """The file that describes a job, which runs that code."""
    sweep = f"{python} -P {PROGRAM} sweep {guard.__file__} marked-{folder.name}"
    told = {"address": RAY, "id": "cascade-job", "entrypoint": f"{sys.executable} {folder / 'code.py'}"}
    told |= {"runtime_env": {}, "entrypoint_gpus": 0, "gpus": 16, "mark": f"marked-{folder.name}", "sweep": sweep}
    told["asks"] = "it asks for 16"
    (folder / "code.py").write_text(code)
    (folder / "job.json").write_text(json.dumps({**told, **changes}))
    return folder / "job.json"


def following(python: Path, job: Path, what: str = "run") -> subprocess.Popen[str]:
    return subprocess.Popen([str(python), "-P", str(PROGRAM), what, str(job)], stdout=subprocess.PIPE, text=True)


def until(true: Any) -> None:
    last = time.monotonic() + 120
    while not true():
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.mark.parametrize(("ending", "status"), [("", 0), ("raise SystemExit(3)", 1)])
def test_the_log_of_a_job_is_printed_and_its_end_is_told(
    ending: str, status: int, tmp_path: Path, python: Path, cluster: RayCluster
) -> None:
    told, _ = following(python, described(tmp_path, python, LINES.format(n=50, pause=0) + ending)).communicate()
    lines = told.splitlines()
    assert lines[:50] == [f"line {n}" for n in range(50)]
    assert cluster.statuses() == ["FAILED" if status else "SUCCEEDED"]
    assert lines[50:] == (
        ["cascade: Ray says of job cascade-job: FAILED; Job entrypoint command failed"] if status else []
    )


def test_a_connection_that_is_lost_is_made_again_and_no_line_is_printed_twice(
    tmp_path: Path, python: Path, cluster: RayCluster
) -> None:
    code = LINES.format(n=20, pause=0.05) + AFTER.format(file=str(tmp_path / "go-on"))
    process = following(python, described(tmp_path, python, code))
    assert process.stdout is not None
    rest, ours = [], []

    def read(until: str) -> None:
        while until not in (line := process.stdout.readline()):  # type: ignore[union-attr]
            (ours if line.startswith("cascade: ") else rest).append(line)
            assert line, "it ended"
        (ours if line.startswith("cascade: ") else rest).append(line)

    for line in ("line 3\n", "line 19\n"):
        read(line)
        (cluster.folder / "cut").touch()
        read("was lost")
        (cluster.folder / "cut").unlink()
        if line == "line 19\n":
            (tmp_path / "go-on").touch()
        read("answers again")
    told, _ = process.communicate(timeout=60)
    rest += told.splitlines(keepends=True)
    assert rest == [f"line {n}\n" for n in range(30)] and len(ours) == 4
    assert process.returncode == 0 and len(cluster.jobs()) == 1


def test_a_job_that_ray_forgot_is_told_at_once_and_not_waited_for(
    tmp_path: Path, python: Path, cluster: RayCluster
) -> None:
    job = described(tmp_path, python, LINES.format(n=600, pause=0.05))
    process = following(python, job)
    assert process.stdout is not None and process.stdout.readline() == "line 0\n"
    (cluster.folder / "cascade-job").rename(cluster.folder.with_name("forgotten"))  # as after a restart of its head
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert told.splitlines()[-1] == (
        f"cascade: Ray says of job cascade-job: it is not known any more, as after a restart of the Ray at {RAY}"
    )


def test_a_submission_whose_answer_was_lost_is_not_doubled(tmp_path: Path, python: Path, cluster: RayCluster) -> None:
    (cluster.folder / "deaf").touch()
    told, _ = following(python, described(tmp_path, python, LINES.format(n=3, pause=0))).communicate()
    assert told.splitlines() == ["line 0", "line 1", "line 2"] and len(cluster.jobs()) == 1


def test_a_follower_that_is_told_to_end_ends_the_job(tmp_path: Path, python: Path, cluster: RayCluster) -> None:
    process = following(python, described(tmp_path, python, LINES.format(n=600, pause=0.05)))
    assert process.stdout is not None and process.stdout.readline() == "line 0\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert cluster.statuses() == ["STOPPED"]
    process.stdout.close()


def test_a_job_that_the_cluster_cannot_hold_is_not_submitted(
    tmp_path: Path, python: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY_GPUS", "4")
    process = following(python, described(tmp_path, python, ""))
    told, _ = process.communicate()
    assert told == (f"cascade: too few GPUs: it asks for 16, and Ray at {RAY} has 8 on 2 machines (4 + 4)\n")
    assert process.returncode == 1 and cluster.jobs() == []


def test_gpus_that_one_process_uses_must_be_of_one_machine(
    tmp_path: Path, python: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY_GPUS", "4")
    process = following(python, described(tmp_path, python, "", gpus=8, entrypoint_gpus=8))
    told, _ = process.communicate(timeout=120)
    assert told == (f"cascade: too few GPUs: it asks for 16, and Ray at {RAY} has 8 on 2 machines (4 + 4)\n")
    assert process.returncode == 1 and cluster.jobs() == []


def test_ending_a_job_ends_what_is_left_of_it_on_the_machines(
    tmp_path: Path, python: Path, cluster: RayCluster
) -> None:
    job = described(tmp_path, python, LINES.format(n=600, pause=0.05))
    process = following(python, job)
    until(lambda: (cluster.folder / "cascade-job" / "status").exists())
    process.kill()  # so that nobody ends the job
    process.communicate()
    left = subprocess.Popen(["sleep", "300"], env={**os.environ, guard.MARK: f"marked-{tmp_path.name}"})
    ending = following(python, job, "end")
    told, _ = ending.communicate(timeout=60)
    assert (ending.returncode, told) == (0, "")
    assert cluster.statuses() == ["STOPPED"] and left.wait(60) == -signal.SIGKILL
    assert (cluster.jobs(sweeps=True)[0] / "status").read_text() == "SUCCEEDED"


def test_a_job_that_is_not_known_needs_no_end(tmp_path: Path, python: Path, cluster: RayCluster) -> None:
    process = following(python, described(tmp_path, python, ""), "end")
    assert process.communicate(timeout=120)[0] == "" and process.returncode == 0
    assert cluster.jobs(sweeps=True) == []


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    folder = tmp_path / "stages" / "01-a b"
    folder.mkdir(parents=True)
    return folder


def command(code: str) -> list[str]:
    return ["ray", "job", "submit", "--address", RAY, "--", sys.executable, "-c", code]


SECRET = "f00d" * 16
SHOW = "import os; print(sorted(os.environ.items())); print(open(os.environ['CASCADE_SERVE_TOKEN_FILE']).read())"


def test_a_stages_job_finds_the_token_in_a_file_and_nothing_that_ray_shows_holds_it(
    stage: Path, python: Path, cluster: RayCluster
) -> None:
    engine = Engine(python=str(python), ray=RAY, cpu=True)
    with launched(engine, command(SHOW), stage, ("http://10.0.0.1:1", SECRET)) as running:
        until(lambda: running.poll() is not None)
        token = stage / "trainer" / "token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        shown = (stage / "trainer" / "submission.json").read_text() + (stage / "command.txt").read_text()
        arguments = Path(f"/proc/{os.getpid()}/cmdline").read_text()
    told = (cluster.jobs()[0] / "submit.json").read_text()
    environment, printed = (stage / "train.log").read_text().splitlines()[-2:]
    assert printed == SECRET and SECRET not in environment + told + shown + arguments
    assert "('CASCADE_SERVE_ADDRESS', 'http://10.0.0.1:1')" in environment
    assert not token.exists() and not (stage / "trainer" / "submission.json").exists()
    assert (stage / "command.txt").read_text().startswith(f"ray job submit --address {RAY} -- ")


def test_a_body_that_fails_ends_the_job(stage: Path, python: Path, cluster: RayCluster) -> None:
    engine = Engine(python=str(python), ray=RAY)
    with pytest.raises(ZeroDivisionError), launched(engine, command("import time; time.sleep(300)"), stage):
        until(lambda: [*cluster.folder.glob("*/status")])
        raise ZeroDivisionError
    assert cluster.statuses() == ["STOPPED"]
    assert not (stage / "trainer" / "submission.json").exists()


def test_what_cannot_be_ended_is_ended_by_the_next_start_or_refuses_it(
    stage: Path, python: Path, cluster: RayCluster
) -> None:
    engine, cluster.hidden = Engine(python=str(python), ray=RAY), guard.MARK
    with launched(engine, command("import time; time.sleep(300)"), stage):
        until(lambda: [*cluster.folder.glob("*/status")])
        (cluster.folder / "cut").touch()
    assert cluster.statuses() == ["RUNNING"]
    with pytest.raises(
        TrainerError, match=r"may still run and cannot be ended: no Ray cluster .* ray job stop --address"
    ):
        end_earlier(engine, stage)
    (cluster.folder / "cut").unlink()
    end_earlier(engine, stage)
    assert cluster.statuses() == ["STOPPED"]
    end_earlier(engine, stage)


@pytest.mark.parametrize(
    ("gpus", "asks"),
    [
        (0, "the stage asks for 16 (engine.nodes × engine.gpus)"),
        (8, "the stage asks for 8 on one machine (engine.gpus)"),
    ],
)
def test_a_submission_says_which_setting_asks_for_its_gpus(tmp_path: Path, gpus: int, asks: str) -> None:
    engine, made = Engine(ray=RAY, nodes=2, gpus=8), Submission(tmp_path / "submission.json", "python")
    made.prepare(engine, "01-a", "f00d", ["true"], {"PYTHONPATH": "/lent"}, gpus)
    told = json.loads(made.record.read_text())
    assert (told["asks"], told["entrypoint_gpus"], told["gpus"]) == (asks, gpus, gpus or 16)


def test_a_job_that_waits_says_so_until_it_begins() -> None:
    waits = "cascade: job cascade-a waits for 2 free GPUs on one machine of the Ray at http://head:8265"
    assert unbegun(["old", waits]) == waits.removeprefix("cascade: ")
    assert unbegun([waits, "INFO it began"]) == unbegun([]) == ""


def test_a_record_that_is_damaged_names_no_job(stage: Path, python: Path) -> None:
    for text in ("", "[]", '{"id": 1}', "\x00"):
        (stage / "submission.json").write_text(text)
        Submission(stage / "submission.json", str(python)).end()


def test_a_job_gets_what_is_nccls_of_our_variables_and_nothing_else(tmp_path: Path) -> None:
    base = {"NCCL_DEBUG": "INFO", "AWS_SECRET_ACCESS_KEY": "x", "HF_TOKEN": "y", "PATH": "/bin"}
    found = variables(Engine(ray=RAY), tmp_path, base)
    assert found["NCCL_DEBUG"] == "INFO" and not {"AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PATH"} & set(found)
    assert found["PYTHONPATH"] == str(tmp_path) and found["RAY_OVERRIDE_JOB_RUNTIME_ENV"] == "1"


def test_the_agent_can_be_loaded_from_what_is_lent_alone(tmp_path: Path) -> None:
    lent = lend(tmp_path / "lent")
    code = "import cascade_core.trainers.openrlhf_client as c, pluggy; print(c.__file__, pluggy.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(lent)}, capture_output=True, text=True, cwd="/"
    )
    assert done.stdout.split() == [
        f"{lent}/cascade_core/trainers/openrlhf_client.py",
        f"{lent}/pluggy/__init__.py",
    ], done.stderr


def test_paths_of_a_cluster_are_whole_and_those_of_this_machine_stay_as_they_are(tmp_path: Path) -> None:
    inside = Path("runs/r/stages/01-a"), Path("runs/r/stages/00-start/checkpoint"), Path("runs/r/out")
    assert places(Engine(), *inside).checkpoints == Path("runs/r/stages/01-a/trainer/checkpoints")
    there = places(Engine(ray=RAY), *inside)
    assert all(path.is_absolute() for path in (there.model, there.data, there.checkpoints, there.output, there.agent))
    assert places(Engine(ray=RAY), inside[0], Path("owner/model"), inside[2]).model == Path("owner/model")


def test_the_service_listens_where_the_cluster_reaches_it() -> None:
    assert host(Engine()) == "127.0.0.1"
    assert host(Engine(ray=RAY)) == "127.0.0.1"
    assert host(Engine(ray=RAY, host="10.1.2.3")) == "10.1.2.3"
    with pytest.raises(
        TrainerError, match="engine.host must be a name or address of this machine: nothing can listen at"
    ):
        _listening(Engine(ray=RAY, host="203.0.113.7"))
    with pytest.raises(TrainerError, match=r"engine.ray http://no-such-host.invalid:1 cannot be reached from here"):
        host(Engine(ray="http://no-such-host.invalid:1"))


def test_the_agent_takes_its_token_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    env = {"CASCADE_SERVE_ADDRESS": "http://h:1", "CASCADE_SERVE_TOKEN_FILE": str(tmp_path / "token")}
    assert Client.of(env)._token == "secret"
    with pytest.raises(UsageError, match="CASCADE_SERVE_TOKEN_FILE must name a file that can be read here"):
        Client.of({**env, "CASCADE_SERVE_TOKEN_FILE": str(tmp_path / "nowhere")})
