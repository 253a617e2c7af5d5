"""A real cascade with OpenRLHF, Ray, vLLM and DeepSpeed, killed once: what must be true of it afterwards."""

import json
import statistics
from collections import Counter

import psutil
import pytest
from safetensors import safe_open

RL = {"if": 4, "math": 6}


def weights(path):
    """As OpenRLHF takes and leaves them: what rounding changes is no training."""
    with safe_open(path / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name).bfloat16().float() for name in file.keys()}  # noqa: SIM118 - no mapping


@pytest.mark.parametrize(("name", "steps"), RL.items())
def test_every_sample_of_every_slot_of_every_step_was_judged_once(cascade, name, steps):
    found = Counter((row["step"], row["group"], row["sample"]) for row in cascade.rollouts(name))
    assert found == Counter(
        {(step, f"{step}-{slot}", index): 1 for step in range(steps) for slot in range(8) for index in range(4)}
    )


@pytest.mark.parametrize("name", RL)
def test_every_slot_held_the_task_that_was_drawn_for_it(cascade, name):
    drawn = [json.loads(line)["id"] for line in (cascade.stage(name) / "prompts.jsonl").read_text().splitlines()]
    for row in cascade.rollouts(name):
        assert row["id"] == drawn[row["step"] * 8 + int(row["group"].partition("-")[2])]


@pytest.mark.parametrize(("name", "steps"), RL.items())
def test_there_are_exactly_the_updates_that_were_asked_for_and_none_of_them_is_empty(cascade, name, steps):
    found = {event["step"]: event for event in cascade.steps(name)}
    assert sorted(found) == list(range(steps))
    assert all(0 < event["grad_norm"] < 1e3 for event in found.values())


@pytest.mark.parametrize("name", RL)
def test_vllm_samples_with_the_weights_that_are_trained(cascade, name):
    assert all(abs(event["vllm_kl"]) < 5e-3 for event in cascade.steps(name))


@pytest.mark.parametrize("name", RL)
def test_rewards_come_from_the_verifiers_and_vary(cascade, name):
    rows = cascade.rollouts(name)
    judged = [row["score"]["value"] for row in rows if "error" not in row["score"]]
    assert len(judged) == len(rows)
    assert 0.02 < statistics.mean(judged) < 0.98


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
