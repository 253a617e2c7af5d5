"""A whole run whose verdicts come from a real Ray cluster: the files of one that judges here, though its actor is killed.

A drill, since starting Ray takes long. The actor is frozen before there is anything to judge and killed when the stage waits for
it, so that it takes samples with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psutil
import pytest
from small_run import contents

from cascade_core.domain import DomainRef
from cascade_core.errors import ScoringError
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

pytestmark = [
    pytest.mark.drill,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SPEC = """
name: judged
seed: 3
model:
  init: {hidden_size: 32, layers: 1, heads: 2, context: 48, tokenizer: {phrases: ["\\\\boxed{"]}}
domains:
  math: {generator: {name: arithmetic, max_a: 6, max_b: 6}}
stages:
  - {name: sft, kind: sft, domains: math, steps: 120, batch_size: 16, save_every: 0, optim: {lr: 1e-2}}
  - name: rl
    domains: math
    steps: 4
    save_every: 0
    micro_batch: 64
    rollout: {prompts_per_step: 8, samples_per_prompt: 8, max_response_tokens: 6}
evaluation: {benchmarks: []}
scoring: {workers: WORKERS}
"""
ROLLOUTS = "stages/02-rl/rollouts"
SPECS = ("lock.json", "spec.yaml")  # which say who judges
MARK = "CASCADE_TEST_CLUSTER"
PATIENCE = 240.0  # seconds, for what takes a few where nobody else computes


class Ray(NamedTuple):
    """A cluster of one node on this machine; whatever it starts has `mark` in its environment."""

    address: str
    mark: str

    def processes(self, word: str) -> list[psutil.Process]:
        """Those of this cluster whose command line has the word."""
        found = []
        for process in psutil.process_iter():
            try:
                if word in " ".join(process.cmdline()) and process.environ().get(MARK) == self.mark:
                    found.append(process)
            except psutil.Error:
                continue
        return found


def until(found: Callable[[], object], run: subprocess.Popen[bytes], log: Path) -> None:
    last = time.monotonic() + PATIENCE
    while not found():
        assert run.poll() is None and time.monotonic() < last, log.read_text()[-3000:]
        time.sleep(0.05)


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    mark = uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv(MARK, mark)
        cluster = Cluster(initialize_head=True, head_node_args=head)
        patch.delenv(MARK)
        try:
            yield Ray(cluster.address, mark)
        finally:
            cluster.shutdown()


def begun(folder: Path, workers: str, ray: Ray) -> tuple[subprocess.Popen[bytes], Path]:
    """`cascade run`, under way, and its log."""
    spec, log = folder.with_suffix(".yaml"), folder.with_suffix(".log")
    spec.write_text(SPEC.replace("WORKERS", workers))
    command = [sys.executable, "-c", "from cascade_core.cli import main; main()", "run", str(spec)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_ADDRESS": ray.address}
    with log.open("wb") as out:
        return subprocess.Popen([*command, "--folder", str(folder)], env=env, stdout=out, stderr=out), log


@pytest.fixture(scope="module")
def runs(ray: Ray, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that judged here, and one that judged on the cluster and lost its actor with what that had in hand."""
    place = tmp_path_factory.mktemp("judged")
    here, there = place / "here", place / "there"
    run, log = begun(there, "ray", ray)
    until(lambda: ray.processes("ray::Courier.take"), run, log)
    (actor,) = ray.processes("ray::Courier.take")
    actor.suspend()
    assert not (there / ROLLOUTS).exists()
    beside, other = begun(here, "2", ray)
    until((there / "stages/02-rl/prompts.jsonl").exists, run, log)
    until(lambda: beside.poll() is not None, run, log)
    assert beside.returncode == 0, other.read_text()[-3000:]
    assert not list((there / ROLLOUTS).glob("*.jsonl"))  # nobody else judged
    actor.kill()
    assert run.wait(PATIENCE) == 0, log.read_text()[-3000:]
    return here, there


def test_a_run_that_judges_on_ray_ends_with_the_files_of_one_that_judges_here(runs: tuple[Path, Path]) -> None:
    here, there = ({name: data for name, data in contents(run).items() if name not in SPECS} for run in runs)
    assert sorted(there) == sorted(here)
    assert [name for name in here if there[name] != here[name]] == []


def test_an_actor_killed_in_the_middle_of_a_run_costs_no_verdict(runs: tuple[Path, Path]) -> None:
    scores = [
        json.loads(line)["score"]
        for step in sorted((runs[1] / ROLLOUTS).glob("*.jsonl"))
        for line in step.read_text().splitlines()
    ]
    assert len(scores) == 4 * 8 * 8
    assert [score for score in scores if "error" in score] == []
    assert {score["value"] for score in scores} == {0.0, 1.0}


def test_a_run_leaves_nothing_of_its_own_on_the_cluster(runs: tuple[Path, Path], ray: Ray) -> None:
    assert ray.processes("raylet")
    last = time.monotonic() + PATIENCE
    while left := [*ray.processes("ray::Courier"), *ray.processes("cascade_core.worker")]:
        assert time.monotonic() < last, left
        time.sleep(0.1)


def test_a_cluster_of_another_version_is_refused_with_both_versions_and_not_half_joined(
    ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray as library

    there = library.__version__
    monkeypatch.setattr(library, "__version__", "2.0.0")
    told = rf"cannot be joined: .*Ray: {there} .*Ray: 2\.0\.0 .*; install here what is there"
    with pytest.raises(ScoringError, match=told):
        Scorer({"math": DomainRef("math")}, Scoring(workers={"ray": {"address": ray.address}}))
    assert library._private.worker.global_worker.node is None
