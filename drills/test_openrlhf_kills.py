"""`cascade run` with a job of OpenRLHF's under way, killed at ten seeded moments: the old job is ended, none is ever doubled, all steps are done."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faulty import EXTENSION

TESTS = Path(__file__).parents[1] / "tests"
KILLS = 10
CHAINS = 2  # side by side, on two cores
STEPS = 8
SPEC = """
name: killed
seed: 3
trainer: openrlhf
engine: {{python: {python}, cpu: true, stall_seconds: 90}}
model: {{init: {{hidden_size: 16, layers: 1, heads: 2}}}}
domains: {{faulty: {{}}}}
stages:
  - name: s
    domains: faulty
    steps: {steps}
    save_every: 2
    micro_batch: 4
    rollout: {{prompts_per_step: 2, samples_per_prompt: 4, max_response_tokens: 8}}
evaluation: {{benchmarks: []}}
scoring: {{workers: 1}}
"""


def start(spec, folder, pids):
    """A run in a process of its own; the job takes its time, and writes the number of each daemon that it leaves behind."""
    program = f"import sys; sys.path.insert(0, {str(EXTENSION)!r}); from cascade_core.cli import main; main()"
    more = {"FAKE_OPENRLHF": "slow", "FAKE_PIDS": str(pids), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, "run", str(spec), "--folder", str(folder)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, env={**os.environ, **more}, text=True)


def daemons(pids):
    """All that jobs left behind so far, and those of them that still run."""
    found = [int(line) for line in pids.read_text().splitlines()] if pids.exists() else []
    stats = {pid: Path(f"/proc/{pid}/stat") for pid in found}
    alive = [
        pid for pid, path in stats.items() if path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"
    ]
    return found, alive


def steps_of(folder):
    lines = (folder / "events.jsonl").read_text("utf-8").splitlines()
    return [event["step"] for event in map(json.loads, lines) if event["kind"] == "step"]


def check_whole(folder):
    """Every step once, in order, in the events and on the disk; the model is there."""
    (stage,) = folder.glob("stages/01-s")
    assert steps_of(folder) == list(range(STEPS))
    assert sorted(path.name for path in (stage / "rollouts").iterdir()) == [f"step-{n:05d}.jsonl" for n in range(STEPS)]
    for path in (stage / "rollouts").iterdir():
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert len({(row["group"], row["sample"]) for row in rows}) == len(rows) == 8
    assert (stage / "checkpoint" / "config.json").is_file()


def killed(place, engine, seed):
    """One run after another in `place`, killed `KILLS` / `CHAINS` times in all; the last one is let be."""
    place.mkdir()
    spec, folder, pids = place / "spec.yaml", place / "run-0", place / "pids"
    spec.write_text(SPEC.format(python=engine, steps=STEPS))
    chance, kills = random.Random(seed), 0
    while kills < KILLS // CHAINS:
        before = len(daemons(pids)[0])
        with start(spec, folder, pids) as run:
            end = time.monotonic() + 300
            while run.poll() is None and len(daemons(pids)[0]) == before and time.monotonic() < end:
                time.sleep(0.01)
            alive = daemons(pids)[1]
            try:
                run.wait(timeout=chance.uniform(0.0, 2.0))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                kills += 1
            _, errors = run.communicate()
        assert len(alive) <= 1  # the job of before is gone when the next one begins
        assert run.returncode in (0, -signal.SIGKILL), errors[-3000:]
        if run.returncode == 0:  # finished: the kills that are left go to another run
            check_whole(folder)
            folder = place / f"run-{kills}"
    with start(spec, folder, pids) as last:
        _, errors = last.communicate()
    assert last.returncode == 0, errors[-3000:]
    check_whole(folder)
    return daemons(pids)[1]


@pytest.mark.timeout(1800)
def test_ten_kills_with_a_job_running_leave_no_job_behind_and_no_step_out(tmp_path):
    engine = tmp_path / "python"
    engine.write_text(f'#!/bin/sh\nexec {sys.executable} {TESTS / "openrlhf_engine.py"} "$@"\n')
    engine.chmod(0o755)
    with ThreadPoolExecutor(CHAINS) as pool:
        chains = [pool.submit(killed, tmp_path / f"{seed}", engine, 20261130 + seed) for seed in range(CHAINS)]
        assert [one.result() for one in chains] == [[]] * CHAINS
