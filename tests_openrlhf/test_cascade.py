"""A real cascade with OpenRLHF, Ray, vLLM and DeepSpeed, killed once: what must be true of it afterwards."""

import json
import math
import subprocess
import sys

import psutil
import pytest
from openrlhf_checks import (
    assert_every_sample_was_judged_once,
    assert_gradients_follow_advantages,
    assert_rewards_follow_the_answers,
    assert_rewards_vary,
    assert_weights_are_synced,
)
from safetensors import safe_open

from cascade_core.folder import model_fingerprint

RL = {"if": 4, "math": 8}


def weights(path):
    """As OpenRLHF takes and leaves them: what rounding changes is no training."""
    with safe_open(path / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name).bfloat16().float() for name in file.keys()}  # noqa: SIM118 - no mapping


@pytest.mark.parametrize(("name", "steps"), RL.items())
def test_every_sample_of_every_slot_of_every_step_was_judged_once(cascade, name, steps):
    assert_every_sample_was_judged_once(cascade.rollouts(name), steps, 8, 4)


@pytest.mark.parametrize("name", RL)
def test_every_slot_held_the_task_that_was_drawn_for_it(cascade, name):
    drawn = [json.loads(line)["id"] for line in (cascade.stage(name) / "prompts.jsonl").read_text().splitlines()]
    for row in cascade.rollouts(name):
        assert row["id"] == drawn[row["step"] * 8 + int(row["group"].partition("-")[2])]


@pytest.mark.parametrize(("name", "steps"), RL.items())
def test_there_are_exactly_the_updates_that_were_asked_for(cascade, name, steps):
    assert [event["step"] for event in cascade.steps(name)] == list(range(steps))


@pytest.mark.parametrize("name", RL)
def test_vllm_samples_with_the_weights_that_are_trained(cascade, name):
    assert_weights_are_synced(cascade.steps(name))


@pytest.mark.parametrize("name", RL)
def test_the_model_is_trained_wherever_there_are_advantages(cascade, name):
    norms = {event["step"]: event["grad_norm"] for event in cascade.steps(name)}
    assert_gradients_follow_advantages(norms, cascade.rollouts(name))


@pytest.mark.parametrize("name", RL)
def test_rewards_come_from_the_verifiers_and_vary(cascade, name):
    assert_rewards_vary(cascade.rollouts(name))
    assert_rewards_follow_the_answers(cascade.rollouts(name))


@pytest.mark.parametrize("name", RL)
def test_no_number_that_openrlhf_tells_is_nan_and_the_ratio_is_one(cascade, name):
    told = cascade.told(name)
    assert sorted(told) == list(range(RL[name]))
    for step in told.values():
        assert all(map(math.isfinite, step.values()))
        assert abs(step["ppo_kl"]) < 1e-3
        assert step["ppo_clip_ratio"] == 0


@pytest.mark.parametrize("name", RL)
def test_verdicts_of_a_run_are_those_of_cascade_score_over_its_rows(cascade, name, tmp_path):
    """Judged as they came from the engine, many at a time, they are what they are one file later."""
    rows, out = tmp_path / "rows.jsonl", tmp_path / "scored.jsonl"
    stored = cascade.rollouts(name)
    bare = [{key: row[key] for key in row if key not in ("score", "reward", "advantage", "masked")} for row in stored]
    rows.write_text("".join(json.dumps(row) + "\n" for row in bare))
    score = [sys.executable, "-c", "from cascade_core.cli import main; main()", "score", str(rows), "-o", str(out)]
    done = subprocess.run(score, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    anew = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [row["score"] for row in anew] == [row["score"] for row in stored]


@pytest.mark.parametrize(("name", "before"), [("if", "sft"), ("math", "if")])
def test_a_stage_begins_with_the_very_checkpoint_that_the_one_before_recorded(cascade, name, before):
    folder = cascade.stage(before)
    assert json.loads((folder / "metrics.json").read_text())["checkpoint"] == model_fingerprint(folder / "checkpoint")
    assert all(f"model_name_or_path='{folder / 'checkpoint'}'" in job for job in cascade.jobs(name))


def test_the_killed_stage_went_on_from_its_checkpoint(cascade):
    resumed = [["load_enable=True" in job for job in cascade.jobs(name)] for name in RL]
    assert resumed == [[False], [False, True]]


@pytest.mark.parametrize(("name", "before"), [("if", "sft"), ("math", "if")])
def test_a_stage_changes_the_weights_of_the_one_before_a_little(cascade, name, before):
    old, new = (weights(cascade.stage(one) / "checkpoint") for one in (before, name))
    moved = [float((new[key] - old[key]).norm() / old[key].norm()) for key in old if key in new]
    assert len(moved) == len(old)
    assert 0 < max(moved) < 0.1  # random weights would be at sqrt(2)


def test_the_run_is_finished_with_its_matrix_and_its_report(cascade):
    for name in ("sft", *RL):
        assert {"if/test", "math/test"} <= set(
            json.loads((cascade.stage(name) / "metrics.json").read_text())["benchmarks"]
        )
    assert (cascade.folder / "report.html").stat().st_size > 10_000


def test_nothing_of_the_jobs_is_left_running(cascade):
    here = str(cascade.folder)
    left = []
    for process in psutil.process_iter():
        try:
            if any(here in part for part in (*process.cmdline(), *process.environ().values())):
                left.append(process.cmdline())
        except psutil.Error:
            continue
    assert left == []
