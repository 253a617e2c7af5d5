"""A stage as a job of OpenRLHF's: all steps or a reason, nothing left behind, whichever way it ends."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny_stage as tiny
from faulty import faulty_scorer

from cascade_core.errors import CheckpointError, SpecError, TooManyFailures, TrainerError
from cascade_core.folder import fingerprint
from cascade_core.judge import Judge
from cascade_core.lock import pinned_spec
from cascade_core.rows import read
from cascade_core.scoring import Scorer
from cascade_core.settings import Advantage, Engine, Rollout, Spec, Stage
from cascade_core.trainers import Job, trainer_of
from cascade_core.trainers import openrlhf_guard as guard
from cascade_core.trainers import openrlhf_log as log
from cascade_core.trainers.openrlhf import OpenRlhfTrainer
from cascade_core.trainers.openrlhf_engine import environment
from cascade_core.trainers.openrlhf_job import Running, end_old

pytestmark = pytest.mark.drill

HERE = Path(__file__).parent
ROLLOUT = Rollout(prompts_per_step=2, samples_per_prompt=4, max_response_tokens=8)


def stage(**changes: Any) -> Stage:
    settings = {"domains": "faulty", "steps": 4, "save_every": 2, "rollout": ROLLOUT, "micro_batch": 4, **changes}
    return tiny.stage("rl", **settings)


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAKE_PIDS", str(tmp_path / "pids"))
    return tmp_path / "pids"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "openrlhf_engine.py"} "$@"\n')
    path.chmod(0o755)
    return Engine(python=str(path), stall_seconds=90.0)


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with faulty_scorer(workers=1) as found:
        yield found


def job(folder: Path, settings: Stage, scorer: Scorer) -> Job:
    rows = [{**row, "domain": "faulty"} for row in tiny.tasks(settings.steps * ROLLOUT.prompts_per_step)]
    folder.mkdir(parents=True, exist_ok=True)
    return tiny.job(folder, settings, Judge(scorer, settings, 7, folder, 0.02), rows=rows)


def train(folder: Path, engine: Engine, scorer: Scorer, **changes: Any) -> Job:
    made = job(folder, stage(**changes), scorer)
    trainer = OpenRlhfTrainer()
    trainer.engine = engine
    trainer.train(made)
    return made


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    told = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return [event for event in told if event["kind"] == kind]


def alive(pids: Path) -> list[int]:
    """Those of the daemons that still run."""
    found = [int(line) for line in pids.read_text().splitlines()]
    states = {pid: Path(f"/proc/{pid}/stat") for pid in found}
    return [
        pid for pid, path in states.items() if path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"
    ]


def test_a_stage_is_trained_for_exactly_its_steps(tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path) -> None:
    made = train(tmp_path / "stage", engine, scorer)
    told = events(made.folder, "step")
    assert [event["step"] for event in told] == [0, 1, 2, 3]
    assert {"loss", "grad_norm", "vllm_kl", "reward_mean", "verify_seconds", "generate_seconds"} <= set(told[0])
    assert [event["step"] for event in events(made.folder, "checkpoint")][-1] == 4
    assert fingerprint(made.output)
    assert len(alive(pids)) == 0
    rows = [row["id"] for step in range(4) for row in read(made.folder / "rollouts" / f"step-{step:05d}.jsonl")]
    assert rows == [f"t{place}" for place in range(8) for _ in range(4)]


def test_the_token_of_the_service_is_in_no_file(tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path) -> None:
    made = train(tmp_path / "stage", engine, scorer, steps=2)
    assert "CASCADE_SERVE_TOKEN" not in (made.folder / "train.log").read_text()
    assert not [path for path in made.folder.rglob("*.json*") if "TOKEN" in path.read_text()]


def test_a_finished_stage_is_not_trained_again(tmp_path: Path, scorer: Scorer) -> None:
    made = job(tmp_path / "stage", stage(), scorer)
    made.output.mkdir()
    OpenRlhfTrainer().train(made)  # no engine is there
    assert list(made.output.iterdir()) == []


@pytest.mark.parametrize("last", [1, 2])
def test_a_job_that_was_killed_goes_on_from_its_checkpoint(
    last: int, tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", f"die {last}")
    with pytest.raises(TrainerError, match=r"ended with status 137 at step \d of 4"):
        train(folder, engine, scorer)
    assert OpenRlhfTrainer().resume_step(folder) == 2
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    train(folder, engine, scorer)
    steps = [event["step"] for event in events(folder, "step")]
    assert sorted(set(steps)) == [0, 1, 2, 3] and steps[-2:] == [2, 3]
    assert sorted(path.name for path in (folder / "rollouts").iterdir()) == [f"step-{n:05d}.jsonl" for n in range(4)]
    assert alive(pids) == []


def test_a_job_that_was_killed_after_its_last_checkpoint_only_hands_on(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", "die 3")
    with pytest.raises(TrainerError, match="ended with status 137"):
        train(folder, engine, scorer)
    before = (folder / "events.jsonl").read_text()
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    assert train(folder, engine, scorer).output.is_dir()
    assert (folder / "events.jsonl").read_text() == before


def test_a_step_whose_line_was_lost_is_taken_from_the_trainers_own_files(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "quiet")
    made = train(tmp_path / "stage", engine, scorer)
    assert [(event["step"], event["loss"]) for event in events(made.folder, "step")] == [(n, 0.5) for n in range(4)]


def test_a_job_that_leaves_out_a_step_has_not_done_its_stage(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "short")
    with pytest.raises(TrainerError, match="ended after 3 updates, and 3 of 4 steps were judged"):
        train(tmp_path / "stage", engine, scorer)
    assert not (tmp_path / "stage" / "checkpoint").exists()


def test_samples_that_cannot_be_judged_stop_the_stage_and_its_job(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "fail")
    rollout = Rollout(prompts_per_step=2, samples_per_prompt=12, max_response_tokens=8)
    rows = [{**row, "domain": "faulty"} for row in tiny.tasks(4)]
    settings = stage(steps=2, rollout=rollout)
    folder = tmp_path / "stage"
    folder.mkdir()
    trainer = OpenRlhfTrainer()
    trainer.engine = engine
    with pytest.raises(TooManyFailures, match="24 of the last 24 samples of domain 'faulty'"):
        trainer.train(tiny.job(folder, settings, Judge(scorer, settings, 7, folder, 0.02), rows=rows))
    assert alive(pids) == []


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "lower micro_batch"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "flash-attn is missing"),
        ("OSError: [Errno 98] Address already in use", "a port is in use"),
        ("Watchdog caught collective operation timeout: WorkNCCL", "NCCL failed or timed out"),
        ("train_ppo_ray.py: error: unrecognized arguments: --a.b 1", "--a.b 1"),
        ("ImportError: cannot import name 'x' from 'vllm'", "do not fit it"),
        ("cascade_core.errors.TrainerError: slot 1, step 0: a prompt of 99 tokens (allowed: 1 … 40, what data.max_len 48 leaves)", "a prompt of 99"),
        ("ValueError: Free memory on device (1/80 GiB) on startup is less than desired GPU memory utilization", "gpu_memory_utilization"),
        ("RuntimeError: something that nobody foresaw", "RuntimeError: something that nobody foresaw"),
    ],
)  # fmt: skip
def test_a_failure_is_explained_by_what_was_printed(printed: str, told: str) -> None:
    noise = ["(PPOTrainer pid=7) INFO 11-30 14:00:00 ppo_trainer.py:300] Sample: ['No module named openrlhf', 1]"]
    assert told in log.reason([*noise, "Traceback:", f"\x1b[36m(raylet)\x1b[0m {printed}", "bye"], "python")


def test_a_failed_job_is_told_in_one_line(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "say torch.OutOfMemoryError: CUDA out of memory")
    with pytest.raises(TrainerError) as caught:
        train(tmp_path / "stage", engine, scorer)
    assert "ended with status 1 at step 0 of 4: a GPU ran out of memory; lower micro_batch" in str(caught.value)
    assert "\n" not in str(caught.value) and "train.log" in str(caught.value)
    assert alive(pids) == []


def test_a_job_that_waits_for_gpus_for_ever_is_ended_and_said_so(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "FAKE_OPENRLHF", "hang Warning: The following resource request cannot be scheduled right now: {GPU: 9}"
    )
    with pytest.raises(TrainerError, match=r"no progress for 6 s \(engine.stall_seconds\).*does not find the GPUs"):
        train(tmp_path / "stage", engine.model_copy(update={"stall_seconds": 6.0}), scorer)
    assert alive(pids) == []


def test_a_job_whose_engine_cannot_start_is_not_waited_for(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "actor ModuleNotFoundError: No module named 'aiohttp'")
    with pytest.raises(TrainerError, match=r"could not start one of its actors .*: No module named 'aiohttp'"):
        train(tmp_path / "stage", engine.model_copy(update={"stall_seconds": 200.0}), scorer)
    assert alive(pids) == []


def test_a_job_whose_service_has_ended_is_ended_too_and_said_so(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def short(_: object) -> None:
        await asyncio.sleep(1.0)

    monkeypatch.setattr("cascade_core.serve.listen._Server.main_loop", short)
    monkeypatch.setenv("FAKE_OPENRLHF", "hang waiting")
    with pytest.raises(TrainerError, match="was ended, because the service of the stage has ended"):
        train(tmp_path / "stage", engine, scorer)
    assert alive(pids) == []


def test_what_the_service_says_is_in_the_log(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "fail")
    with pytest.raises((TooManyFailures, TrainerError)):
        train(
            tmp_path / "stage",
            engine,
            scorer,
            rollout=Rollout(prompts_per_step=2, samples_per_prompt=12, max_response_tokens=8),
        )
    assert "cascade: stopped: 24 of the last 24" in (tmp_path / "stage" / "train.log").read_text()


def test_an_interpreter_without_openrlhf_is_named(tmp_path: Path, scorer: Scorer) -> None:
    with pytest.raises(TrainerError, match=r"OpenRLHF is not installed in the environment of .*; set engine.python"):
        train(tmp_path / "stage", Engine(python="/bin/false"), scorer)


def test_a_checkpoint_of_other_tasks_is_refused(
    tmp_path: Path, engine: Engine, scorer: Scorer, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", "die 2")
    with pytest.raises(TrainerError):
        train(folder, engine, scorer)
    (folder / "trainer" / "data.json").write_text('{"data": "other"}')
    with pytest.raises(CheckpointError, match="other tasks"):
        train(folder, engine, scorer)


def test_advantages_that_do_not_sum_to_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match=r"advantage.shaping must be none"):
        OpenRlhfTrainer().settings(stage(advantage=Advantage(shaping="tanh")))


def test_where_a_trainer_runs_is_not_pinned_but_the_flags_that_follow_are() -> None:
    spec = {"name": "a", "model": "m", "trainer": "openrlhf", "domains": {"faulty": {}}}
    stages = [{"name": "a", "domains": "faulty", "steps": 1}]
    here, there = (
        Spec.model_validate({**spec, "stages": stages, "engine": engine}) for engine in ({}, {"gpus": 8, "python": "x"})
    )
    assert pinned_spec(here) == pinned_spec(there)
    flags = [dict(trainer_of(OpenRlhfTrainer, one.engine).settings(one.stages[0])) for one in (here, there)]
    assert [one["actor.num_gpus_per_node"] for one in flags] == [1, 8]


def test_flags_that_a_cpu_cannot_have_are_replaced_where_the_engine_has_none() -> None:
    flags = trainer_of(OpenRlhfTrainer, Engine(cpu=True)).settings(stage())
    assert (flags["ds.attn_implementation"], flags["vllm.sync_backend"]) == ("sdpa", "gloo")
    assert (flags["actor.num_gpus_per_node"], flags["vllm.num_engines"]) == (1, 1)


def test_without_gpus_as_many_processes_train_and_sample_as_the_spec_has_gpus(tmp_path: Path) -> None:
    engine = Engine(cpu=True, gpus=3, nodes=2, tensor_parallel_size=3)
    found = environment({}, engine, tmp_path / "lent", "http://127.0.0.1:1", "secret")
    assert found["CASCADE_OPENRLHF_GPUS"] == "3"
    beside = {"train.async_enable": True, "actor.num_gpus_per_node": 1, "vllm.num_engines": 2}
    flags = trainer_of(OpenRlhfTrainer, engine).settings(stage(trainer_args=beside))
    assert (flags["actor.num_nodes"], flags["actor.num_gpus_per_node"], flags["vllm.num_engines"]) == (1, 1, 2)


def test_without_gpus_no_model_is_spread_over_processes() -> None:
    spread = stage(trainer_args={"vllm.tensor_parallel_size": 2})
    with pytest.raises(
        SpecError, match=r"trainer_args\.vllm\.tensor_parallel_size must be 1 with engine\.cpu, found 2"
    ):
        trainer_of(OpenRlhfTrainer, Engine(cpu=True, gpus=2)).settings(spread)


@pytest.mark.parametrize("cpu", [False, True])
def test_a_job_has_a_ray_of_its_own_and_asks_no_network(cpu: bool, tmp_path: Path) -> None:
    base = {"RAY_ADDRESS": "auto", "PYTHONPATH": "mine", "HOME": "/h"}
    found = environment(base, Engine(cpu=cpu), tmp_path / "lent", "http://127.0.0.1:1", "secret")
    assert found.get("RAY_ADDRESS") == (None if cpu else "local")
    assert found["HF_HUB_OFFLINE"] == "1" and found["HOME"] == "/h"
    assert "mine" in found["PYTHONPATH"].split(os.pathsep) and str(tmp_path / "lent") in found["PYTHONPATH"]
    assert (tmp_path / "lent" / "cascade_core" / "trainers" / "openrlhf_agent.py").is_file()


@contextmanager
def running(folder: Path, command: list[str]) -> Iterator[Running]:
    with Running(command, dict(os.environ), folder / "log", folder / "job.json") as found:
        yield found


CHILDREN = "import subprocess, sys, time; [subprocess.Popen(['sleep', '300'], start_new_session=True) for _ in range(3)]; print('up', flush=True); {}"


def wait_for(folder: Path, word: str) -> None:
    last = time.monotonic() + 120
    while word not in (folder / "log").read_text():
        assert time.monotonic() < last
        time.sleep(0.05)


@pytest.mark.parametrize("ends", ["time.sleep(300)", "sys.exit(3)", "1/0"])
def test_nothing_of_a_job_outlives_it(ends: str, tmp_path: Path) -> None:
    with running(tmp_path, [sys.executable, "-c", CHILDREN.format(ends)]) as found:
        wait_for(tmp_path, "up")
        if "sleep" not in ends:
            while found.poll() is None:
                time.sleep(0.05)
        token = found.token
    assert guard.leftovers(token) == []


def test_what_a_killed_guard_leaves_is_ended_at_the_next_start(tmp_path: Path) -> None:
    with running(tmp_path, [sys.executable, "-c", CHILDREN.format("time.sleep(300)")]) as found:
        wait_for(tmp_path, "up")
        token = found.token
        os.kill(json.loads((tmp_path / "job.json").read_text())["guard"], signal.SIGKILL)
        found.poll()
        assert len(guard.leftovers(token)) >= 3
        assert end_old(tmp_path / "job.json") >= 3
        assert guard.leftovers(token) == []


def test_a_record_that_is_damaged_names_no_job(tmp_path: Path) -> None:
    for text in ("", "[]", '{"token": 1}', '{"token": "x", "guard": "y"}', "\x00"):
        (tmp_path / "job.json").write_text(text)
        assert end_old(tmp_path / "job.json") == 0


KILLED = """
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
import test_openrlhf_launch as t
from faulty import faulty_scorer
from cascade_core.settings import Engine
if __name__ == "__main__":
    with faulty_scorer(workers=1) as scorer:
        t.train(Path({folder!r}), Engine(python={python!r}, stall_seconds=60.0), scorer)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "how"), list(enumerate([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
)
def test_a_run_that_is_killed_leaves_no_process_and_goes_on(
    seed: int,
    how: signal.Signals,
    tmp_path: Path,
    engine: Engine,
    scorer: Scorer,
    pids: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, code = tmp_path / "stage", tmp_path / "child.py"
    code.write_text(KILLED.format(here=str(HERE), folder=str(folder), python=engine.python))
    child = subprocess.Popen(
        [sys.executable, str(code)], env={**os.environ, "FAKE_OPENRLHF": "slow"}, stderr=subprocess.DEVNULL
    )
    last = time.monotonic() + 120
    while not pids.exists():
        assert child.poll() is None and time.monotonic() < last
        time.sleep(0.02)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    child.send_signal(how)
    assert child.wait(120) != 0
    train(folder, engine, scorer)
    assert alive(pids) == []
    assert sorted({event["step"] for event in events(folder, "step")}) == [0, 1, 2, 3]
    assert sorted(path.name for path in (folder / "rollouts").iterdir()) == [f"step-{n:05d}.jsonl" for n in range(4)]
