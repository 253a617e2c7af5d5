"""`cascade eval` from a machine without GPUs: vLLM samples as a job on a Ray that runs already, is killed with it, and gone on with."""

import json
import os
import subprocess
import sys
import time

import pytest
from test_evaluation import in_folder, lively
from test_ray import Ray
from test_ray import ray as ray

SPEC = """
name: elsewhere
trainer: openrlhf
engine: {{python: {python}, ray: "{ray}", gpus: 2}}
model: ./model
domains: {{math: {{generator: {{name: arithmetic, max_a: 999, max_b: 999}}, eval_limit: 30, eval_samples: 1}}}}
stages: [{{name: math, domains: math, steps: 1}}]
scoring: {{workers: 1}}
"""


def words(folder, *more):
    """Greedy answers of the model to the benchmark."""
    program = "from cascade_core.cli import main; main()"
    found = [sys.executable, "-c", program, "eval", "spec.yaml", "--model", "model", "-o", folder, *more]
    return [*found, "--temperature", "0", "--max-response-tokens", "48", "--json"]


def answers(folder):
    """Each task's response."""
    lines = (folder / "completions" / "math" / "test.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row["response"] for row in map(json.loads, lines)}


class Killed:
    """An evaluation that was killed while its job loaded the model, and given again; and the same one sampled here."""

    def __init__(self, python, ray: Ray, place):
        self.place, self.ray = place, ray
        lively(place / "model")
        (place / "spec.yaml").write_text(SPEC.format(python=python, ray=ray.address))
        there, env = words("there", "--vllm", str(python)), {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        with (place / "first.log").open("wb") as log:
            run = subprocess.Popen(there, cwd=place, env=env, stdout=log, stderr=log)
        self.until(lambda: "RUNNING" in ray.jobs().values() or run.poll() is not None)
        run.kill()
        run.wait()
        self.until(lambda: "RUNNING" not in ray.jobs().values())
        self.first = list(ray.jobs().values())
        for command in (there, words("here")):
            done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def until(self, true):
        last = time.monotonic() + 300
        while not true():
            assert time.monotonic() < last, (self.place / "first.log").read_text()[-3000:]
            time.sleep(0.05)


@pytest.fixture(scope="module")
def killed(engine, ray, tmp_path_factory):
    return Killed(engine, ray, tmp_path_factory.mktemp("elsewhere"))


def test_the_job_of_an_evaluation_that_is_killed_is_ended_and_the_next_one_is_done(killed, ray):
    assert killed.first == ["STOPPED"] and list(ray.jobs().values()) == ["STOPPED", "SUCCEEDED"]
    assert all(name.startswith("cascade-there-sampling-") for name in ray.jobs())


def test_what_the_cluster_answers_is_what_the_model_says_here(killed):
    there, here = answers(killed.place / "there"), answers(killed.place / "here")
    assert there.keys() == here.keys() and len(set(here.values())) > 15
    # Where two tokens are equally likely, other roundings choose another; that hardly happens.
    assert sum(there[task] == here[task] for task in here) > len(here) / 2


def test_nothing_of_vllm_is_left(killed):
    killed.until(lambda: in_folder(killed.place) == [])
    assert not (killed.place / "there" / "sampling").exists()
