"""Two vLLM engines that sample while the model trains, from another job's checkpoint on, and a service that is killed in mid-step and started again.

Slots hold their tasks, groups are whole, steps exact; what was judged twice is what the step had that was cut.
"""

import json
import math
import os
import shutil
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from openrlhf_checks import STALE, assert_gradients_follow_advantages, assert_rewards_vary
from openrlhf_runs import Cascade
from openrlhf_served import TOKEN, Counting, Served, calm_port
from openrlhf_stopped import BROKEN, SAMPLES, SLOTS, grading
from openrlhf_wire import wire
from safetensors.torch import load_file, save_file

from cascade_core.rows import write
from cascade_core.settings import Engine, Stage
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers.openrlhf import saved_steps
from cascade_core.trainers.openrlhf_args import Places, command
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_sizes import Cluster

STEPS = 6
LEFT = range(BROKEN, STEPS)
CUT, JUDGED = BROKEN + 1, 8
"""The step in which the service is killed, and how many of its samples are with the grader by then."""
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
    "overlong": "keep",  # nearly all responses are cut
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


def louder(model, folder):
    """A model that says quite other things: what engines begin with, so that one which never gets the checkpoint's weights is noticed."""
    shutil.copytree(model, folder)
    found = load_file(folder / "model.safetensors")
    save_file({name: 4 * weight for name, weight in found.items()}, folder / "model.safetensors", {"format": "pt"})
    return folder


class Job:
    """The stage in a folder of its own: its service as a process, OpenRLHF's job, and what passed between the two."""

    def __init__(self, engine, place, before):
        self.engine, self.place = Engine(python=str(engine), cpu=True), place
        self.folder = place / "stages" / "01-rl"
        self.model = louder(before.run.stage("start") / "checkpoint", place / "louder")
        self.stage = Stage.model_validate(STAGE)
        self.places = Places.of(self.folder, self.model, self.folder / "checkpoint")
        write(self.folder / "prompts.jsonl", map(task, range(STEPS * SLOTS)))
        write(self.places.data, ({"prompt": f"slot {slot}", "label": str(slot)} for slot in range(SLOTS)))
        shutil.copytree(before.checkpoints, self.places.checkpoints)
        assert saved_steps(self.places.checkpoints) == BROKEN

    def run(self):
        """From the checkpoint to the end of the stage."""
        with (
            grading(lambda: Counting(CUT, JUDGED)) as grader,
            self._served(grader) as service,
            wire(service.url, "ray::RolloutRayActor") as server,
        ):
            variables = engines.environment(os.environ, self.engine, self.place / "lent", server.url, TOKEN)
            variables |= {"CASCADE_OPENRLHF_GPUS": str(THREE.gpus)}
            log, last = self.folder / "train.log", time.monotonic() + 800
            with Running(self._command(), variables, log, self.place / "job.json") as job:
                while (status := job.poll()) is None and time.monotonic() < last:
                    if grader.held.is_set() and not grader.gone.is_set():
                        service.kill()
                        self.stored = sorted(path.name for path in (self.folder / "rollouts").iterdir())
                        grader.gone.set()
                        service.again()
                    time.sleep(0.1)
            assert status == 0, log.read_text("utf-8", "replace")[-3000:]
            self.told = service.stage()
        self.exchanged, self.asked = server.exchanged, grader.asked

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
        told |= {"domains": {"graded": {**domain, "lane": "io"}}, "port": calm_port()}
        settings.write_text(json.dumps(told))
        service = Served(settings)
        try:
            yield service
        finally:
            service.end()


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


def test_a_service_that_is_killed_in_mid_step_judges_again_what_that_step_had_and_nothing_else(job, rows):
    assert job.stored == [f"step-{BROKEN:05d}.jsonl"]
    found = {(row["meta"]["number"], row["response"], row["truncated"]) for row in rows}
    once = Counter((number, text) for number, text, _ in found)
    again = job.asked - once
    assert job.asked - again == once
    assert {number // SLOTS for number, _ in again} == {CUT}
    assert again.total() >= JUDGED and not again - once


def test_each_sample_was_handed_what_is_recorded_whichever_service_judged_it(job, rows):
    groups = {one.asked["group"]: one.told for one in job.exchanged if one.path == "/slot"}
    handed = {}
    for one in job.exchanged:
        if one.path == "/sample":
            task = groups[one.asked["group"]]
            place = f"{task['step']}-{task['slot']}", one.asked["index"]
            assert place not in handed
            handed[place] = one.asked["response"], one.told["scores"], one.told["masked"]
    recorded = {(row["group"], row["sample"]): (row["response"], row["score"]["value"], row["masked"]) for row in rows}
    assert handed == recorded
    assert [one["step"] for one in job.told["done"]] == list(LEFT) and not job.told["waiting"]
    assert all(one["metrics"]["total"] == SLOTS * SAMPLES for one in job.told["done"])


def test_every_slot_held_the_task_that_was_drawn_for_it_whichever_engine_had_it(rows):
    for row in rows:
        assert row["id"] == f"t{row['step'] * SLOTS + int(row['group'].partition('-')[2])}"


def test_there_are_exactly_the_updates_that_were_left(job, rows):
    run = Cascade(job.place)
    told = run.told("rl")
    assert sorted(told) == list(LEFT)
    assert [("async_enable=True" in line, "load_enable=True" in line) for line in run.jobs("rl")] == [(True, True)]
    assert all(map(math.isfinite, [number for step in told.values() for number in step.values()]))
    assert_gradients_follow_advantages({step: numbers["actor_grad_norm"] for step, numbers in told.items()}, rows)


def test_both_engines_sample_with_the_weights_that_are_trained(job):
    for step in Cascade(job.place).told("rl").values():
        assert abs(step["vllm_kl"]) < STALE


def test_both_engines_sample_and_no_group_is_in_two(job):
    groups = {}
    for one in job.exchanged:
        groups.setdefault(one.asked["group"], set()).add(one.pid)
    assert len(groups) == len(LEFT) * SLOTS
    assert all(len(found) == 1 for found in groups.values())
    shares = Counter(pid for found in groups.values() for pid in found)
    assert 0 not in shares and len(shares) == 2
    assert min(shares.values()) >= len(LEFT)


def test_every_group_is_complete(job):
    members = {}
    for one in job.exchanged:
        if one.path == "/sample":
            assert one.status == 200 and "gave_up" not in one.asked
            members.setdefault(one.asked["group"], []).append(one.asked["index"])
    assert all(sorted(found) == list(range(SAMPLES)) for found in members.values())
