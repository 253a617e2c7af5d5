"""Whole stages on a stand-in of a Ray cluster: trained for exactly their steps, killed at seeded moments, never with two jobs."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import faulty_scorer
from ray_cluster import STAND_IN, RayCluster
from test_openrlhf_launch import events, train

from cascade_core.errors import TrainerError
from cascade_core.folder import fingerprint
from cascade_core.scoring import Scorer
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_guard as guard

pytestmark = pytest.mark.drill

HERE = Path(__file__).parent
RAY = "http://127.0.0.1:8265"
CHILD = """
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
from test_openrlhf_launch import train
from faulty import faulty_scorer
from cascade_core.settings import Engine
if __name__ == "__main__":
    with faulty_scorer(workers=1) as scorer:
        train(Path({folder!r}), Engine(python={python!r}, ray={ray!r}, cpu=True, stall_seconds=60.0), scorer)
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path / "ray")
    monkeypatch.setenv("FAKE_RAY", str(made.folder))
    made.start()
    yield made
    made.end()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    path = tmp_path / "python"
    there = f'PYTHONPATH="{STAND_IN}" exec {sys.executable} "$@"'
    path.write_text(
        f'#!/bin/sh\ncase "$1" in -P) {there};; esac\nexec {sys.executable} {HERE / "openrlhf_engine.py"} "$@"\n'
    )
    path.chmod(0o755)
    return Engine(python=str(path), ray=RAY, cpu=True, stall_seconds=60.0)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with faulty_scorer(workers=1) as found:
        yield found


def test_a_stage_on_a_cluster_is_trained_for_exactly_its_steps(
    tmp_path: Path, engine: Engine, scorer: Scorer, cluster: RayCluster
) -> None:
    made = train(tmp_path / "stage", engine, scorer)
    assert [event["step"] for event in events(made.folder, "step")] == [0, 1, 2, 3]
    assert fingerprint(made.output)
    assert cluster.statuses() == ["SUCCEEDED"] and cluster.jobs(sweeps=True) == []


def test_a_job_that_fails_there_is_told_in_one_line(
    tmp_path: Path, engine: Engine, scorer: Scorer, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "say torch.OutOfMemoryError: CUDA out of memory")
    with pytest.raises(
        TrainerError, match="ended with status 1 at step 0 of 4: a GPU ran out of memory; lower micro_b"
    ):
        train(tmp_path / "stage", engine, scorer)
    assert cluster.statuses() == ["FAILED"]


def test_a_job_that_stands_still_is_stopped_there(
    tmp_path: Path, engine: Engine, scorer: Scorer, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "hang waiting for GPUs")
    cluster.hidden = guard.MARK
    with pytest.raises(TrainerError, match=r"no progress for 3 s \(engine.stall_seconds\)"):
        train(tmp_path / "stage", engine.model_copy(update={"stall_seconds": 3.0}), scorer)
    assert cluster.statuses() == ["STOPPED"]


@pytest.mark.parametrize(
    ("seed", "how"), list(enumerate([signal.SIGKILL] * 8 + [signal.SIGINT, signal.SIGTERM]))
)  # fmt: skip
def test_a_run_that_is_killed_goes_on_with_one_job_at_a_time(
    seed: int,
    how: signal.Signals,
    tmp_path: Path,
    engine: Engine,
    scorer: Scorer,
    cluster: RayCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.hidden = guard.MARK  # they are on other machines, and only Ray can end them
    folder, code = tmp_path / "stage", tmp_path / "child.py"
    code.write_text(CHILD.format(here=str(HERE), folder=str(folder), python=engine.python, ray=RAY))
    path = os.pathsep.join(sys.path)
    with (tmp_path / "log").open("wb") as log:
        env = {**os.environ, "FAKE_OPENRLHF": "slow", "PYTHONPATH": path}
        child = subprocess.Popen([sys.executable, str(code)], env=env, stdout=log, stderr=log)
    last = time.monotonic() + 60
    while not cluster.jobs():
        assert child.poll() is None and time.monotonic() < last, (tmp_path / "log").read_text()[-2000:]
        time.sleep(0.02)
    time.sleep(random.Random(seed).uniform(0.0, 2.0))
    child.send_signal(how)
    child.wait(60)
    train(folder, engine, scorer)
    *earlier, last_one = cluster.statuses()  # the first may have been done when its run was killed
    assert last_one == "SUCCEEDED" and len(earlier) <= 1 and set(earlier) <= {"STOPPED", "SUCCEEDED"}
    assert cluster.most == 1
    assert sorted({event["step"] for event in events(folder, "step")}) == [0, 1, 2, 3]
    assert sorted(path.name for path in (folder / "rollouts").iterdir()) == [f"step-{n:05d}.jsonl" for n in range(4)]
