"""Two vLLM engines that sample while the model trains, from another job's checkpoint on: slots hold their tasks, groups are whole, steps exact."""

import json
import math
import os
import shutil
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from openrlhf_checks import assert_rewards_vary
from openrlhf_runs import Cascade
from openrlhf_stopped import BROKEN, EXTENSION, SAMPLES, SLOTS, grading
from openrlhf_wire import wire
from serving import Program

from cascade_core.rows import write
from cascade_core.settings import Engine, Stage
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers.openrlhf import saved_steps
from cascade_core.trainers.openrlhf_args import Places, command
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_sizes import Cluster

STEPS = 6
LEFT = range(BROKEN, STEPS)
TOKEN = "that of this test"
# `engine: {cpu: true}` has one process of each kind. This is what a spec with three GPUs has: one trains, two sample.
THREE = Cluster(nodes=1, gpus_per_node=3)
STAGE = {
    "name": "rl",
    "domains": {"graded": 1},
    "steps": STEPS,
    "save_every": 2,
    "micro_batch": 8,
    "rollout": {"prompts_per_step": SLOTS, "samples_per_prompt": SAMPLES, "max_response_tokens": 12},
    "optim": {"lr": 1e-4},
    "trainer_args": {
        "train.async_enable": True,
        "train.partial_rollout_enable": True,
        "actor.num_nodes": 1,
        "actor.num_gpus_per_node": 1,
        "vllm.num_engines": 2,
    },
}


def task(number):
    """Every other one has the prompt of the one before, so that it is in flight twice."""
    prompt = f"train {number // 2}: "
    return {"domain": "graded", "id": f"t{number}", "prompt": prompt, "answer": None, "meta": {"number": number}}


class Job:
    """The stage in a folder of its own: its service as a process, OpenRLHF's job, and what passed between the two."""

    def __init__(self, engine, place, before):
        self.engine, self.place = Engine(python=str(engine), cpu=True), place
        self.folder, self.model = place / "stages" / "01-rl", before.run.stage("start") / "checkpoint"
        self.stage = Stage.model_validate(STAGE)
        self.places = Places.of(self.folder, self.model, self.folder / "checkpoint")
        write(self.folder / "prompts.jsonl", map(task, range(STEPS * SLOTS)))
        write(self.places.data, ({"prompt": f"slot {slot}", "label": str(slot)} for slot in range(SLOTS)))
        shutil.copytree(before.checkpoints, self.places.checkpoints)
        assert saved_steps(self.places.checkpoints) == BROKEN

    def run(self):
        """From the checkpoint to the end of the stage."""
        with grading() as grader, self._served(grader) as address, wire(address, "ray::RolloutRayActor") as server:
            grader.is_mended = True
            variables = engines.environment(os.environ, self.engine, self.place / "lent", server.url, TOKEN)
            variables |= {"CASCADE_OPENRLHF_GPUS": str(THREE.gpus)}
            log, last = self.folder / "train.log", time.monotonic() + 800
            with Running(self._command(), variables, log, self.place / "job.json") as job:
                while (status := job.poll()) is None and time.monotonic() < last:
                    time.sleep(0.2)
            assert status == 0, log.read_text("utf-8", "replace")[-3000:]
        self.exchanged = server.exchanged

    def _command(self):
        return command(
            self.stage,
            1,
            THREE,
            self.places,
            resume=True,
            known=engines.known(self.engine, "rl"),
            python=engines.interpreter(self.engine),
            adapt=lambda flags: engines.adapted(self.engine, flags),
        )

    @contextmanager
    def _served(self, grader):
        settings, options = self.place / "service.json", {"grader": f"http://127.0.0.1:{grader.server_port}"}
        domain = {"name": "graded", "options": options, "distribution": "cascade-plugin-graded", "version": "0.1.0"}
        told = {"stage": STAGE, "seed": 1, "folder": str(self.folder), "model": str(self.model), "attempt": "one"}
        told |= {"prompts": str(self.folder / "prompts.jsonl"), "start_step": BROKEN, "scoring": {"workers": 1}}
        settings.write_text(json.dumps({**told, "domains": {"graded": {**domain, "lane": "io"}}}))
        path = os.pathsep.join(filter(None, [str(EXTENSION), os.environ.get("PYTHONPATH", "")]))
        words = ("-m", "cascade_core.serve.staged", str(settings))
        service = Program(*words, CASCADE_SERVE_TOKEN=TOKEN, PYTHONPATH=path)
        try:
            yield service.served.url
        finally:
            service.process.terminate()
            assert service.end() == 0


@pytest.fixture(scope="module")
def job(engine, stopped, tmp_path_factory):
    found = Job(engine, tmp_path_factory.mktemp("engines"), stopped)
    found.run()
    return found


@pytest.fixture(scope="module")
def rows(job):
    return Cascade(job.place).rollouts("rl")


def test_every_sample_was_judged_once_though_engines_run_ahead_of_the_training(rows):
    found = Counter((row["step"], row["group"], row["sample"]) for row in rows)
    assert found == Counter(
        (step, f"{step}-{slot}", i) for step in LEFT for slot in range(SLOTS) for i in range(SAMPLES)
    )
    assert_rewards_vary(rows)


def test_every_slot_held_the_task_that_was_drawn_for_it_whichever_engine_had_it(rows):
    for row in rows:
        assert row["id"] == f"t{row['step'] * SLOTS + int(row['group'].partition('-')[2])}"


def test_there_are_exactly_the_updates_that_were_left(job):
    run = Cascade(job.place)
    told = run.told("rl")
    assert sorted(told) == list(LEFT)
    assert [("async_enable=True" in line, "load_enable=True" in line) for line in run.jobs("rl")] == [(True, True)]
    for step in told.values():
        assert all(map(math.isfinite, step.values()))
        assert 0 < step["actor_grad_norm"] < 1e3


def test_both_engines_sample_and_no_group_is_in_two(job):
    groups = {}
    for one in job.exchanged:
        groups.setdefault(one.asked["group"], set()).add(one.pid)
    assert len(groups) == len(LEFT) * SLOTS
    assert all(len(found) == 1 for found in groups.values())
    shares = Counter(pid for found in groups.values() for pid in found)
    assert 0 not in shares and len(shares) == 2
    assert min(shares.values()) > len(groups) / 4


def test_every_group_is_complete(job):
    members = {}
    for one in job.exchanged:
        if one.path == "/sample":
            assert one.status == 200 and "gave_up" not in one.asked
            members.setdefault(one.asked["group"], []).append(one.asked["index"])
    assert all(sorted(found) == list(range(SAMPLES)) for found in members.values())
