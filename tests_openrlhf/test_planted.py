"""A stage whose verdicts are planned, trained by the real OpenRLHF and by trl from one spec: masks, advantages, thoughts, swapped answers."""

import json
import math
import statistics
from pathlib import Path

import pytest
from openrlhf_checks import (
    assert_every_sample_was_judged_once,
    assert_rewards_follow_the_answers,
    assert_weights_are_synced,
)
from openrlhf_runs import Cascade, finished

from cascade_core.advantages import advantages, grid

EXTENSION = Path(__file__).parent / "extension"
SPEC = """
name: planted
seed: 2
trainer: TRAINER
engine: {python: PYTHON, cpu: true, stall_seconds: 600}
model:
  init: {hidden_size: 64, layers: 2, heads: 2, context: 64, tokenizer: {phrases: ["\\\\boxed{", "</think>"]}}
domains:
  planted:
stages:
  - name: sft
    kind: sft
    trainer: trl
    domains: planted
    steps: 250
    batch_size: 86
    optim: {lr: 5e-3, betas: [0.9, 0.98], warmup_steps: 20, schedule: linear, decay_steps: 50}
  - name: rl
    domains: planted
    steps: 4
    micro_batch: 1
    rollout: {prompts_per_step: 10, samples_per_prompt: 4, max_response_tokens: 8}
    optim: {lr: 1e-5}
    overlong: mask
scoring: {workers: 1, max_error_rate: 1}
evaluation: {sampler: transformers, sampling: {max_response_tokens: 8}}
"""
STEPS, SLOTS, SAMPLES = 4, 10, 4


def run(place, python, trainer):
    spec = place / f"{trainer}.yaml"
    spec.write_text(SPEC.replace("TRAINER", trainer).replace("PYTHON", str(python)))
    return finished(spec, place / trainer, PYTHONPATH=str(EXTENSION))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def planted(place, engine) -> Cascade:
    return run(place, engine, "openrlhf")


@pytest.fixture(scope="module")
def with_trl(place, engine) -> Cascade:
    return run(place, engine, "trl")


def rows_of(cascade, *kinds):
    return [row for row in cascade.rollouts("rl") if row["meta"]["kind"] in kinds]


def groups(rows):
    found = {}
    for row in rows:
        found.setdefault((row["step"], int(row["group"].partition("-")[2])), []).append(row)
    return [found[place] for place in sorted(found)]


@pytest.fixture(scope="module")
def told(planted):
    """What OpenRLHF itself says of each step."""
    return planted.told("rl")


def planned_mask(row):
    """Why a sample is left out, by the plan and what was said."""
    if row["meta"]["kind"] == "lost" or (row["meta"]["kind"] == "torn" and row["response"].startswith("c")):
        return "error"
    return "overlong" if row["truncated"] else ""


def seen(row):
    """Tokens of a response that the loss is a mean over: of a masked one, the first."""
    return 1 if row["masked"] else row["tokens"]


def test_the_plan_was_carried_out(planted):
    assert_every_sample_was_judged_once(planted.rollouts("rl"), STEPS, SLOTS, SAMPLES)
    rows = planted.rollouts("rl")
    assert [row["masked"] for row in rows] == list(map(planned_mask, rows))
    assert {row["masked"] for row in rows} == {"", "error", "overlong"}
    whole = [all(row["masked"] for row in group) for group in groups(rows)]
    assert sum(whole) >= 3 + 4  # what is lost; and in the last step what is cut, as often as the model says it


def test_advantages_are_those_of_the_unmasked_samples_alone(planted):
    for group in groups(planted.rollouts("rl")):
        wanted = advantages([None if row["masked"] else row["reward"] for row in group])
        assert [row["advantage"] for row in group] == wanted
        assert all(row["advantage"] == 0 for row in group if row["masked"])


def test_a_response_that_was_cut_is_no_response_with_reward_0(planted, with_trl):
    """With a 0 for it the others of its group would have other advantages."""
    taught = 0
    for group in [*groups(rows_of(planted, "long")), *groups(rows_of(with_trl, "long"))]:
        live = [row for row in group if not row["masked"]]
        if 0 < len(live) < len(group) and any(row["reward"] for row in live):
            other = advantages([0.0 if row["masked"] else row["reward"] for row in group])
            assert any(abs(row["advantage"] - found) > 0.05 for row, found in zip(group, other, strict=True))
            taught += 1
    assert taught


def test_openrlhf_trained_on_these_advantages(planted, told):
    """The spread of the rewards that it was handed, group by group, and its loss, from the stored rows alone."""
    by_step = {}
    for group in groups(planted.rollouts("rl")):
        by_step.setdefault(group[0]["step"], []).append(group)
    assert sorted(told) == sorted(by_step) == list(range(STEPS))
    for step, found in by_step.items():
        handed = [grid([row["advantage"] for row in group]) for group in found]
        spread = statistics.mean(statistics.stdev(group) for group in handed)
        assert told[step]["group_reward_std"] == pytest.approx(spread, rel=1e-5, abs=1e-7)
        rows = [row for group in found for row in group]
        tokens = sum(map(seen, rows))
        # A micro-batch is one response here. OpenRLHF logs the mean of their losses, weighed by their tokens once more.
        loss = -sum(row["advantage"] * seen(row) ** 2 for row in rows) * len(rows) / tokens**2
        assert told[step]["policy_loss"] == pytest.approx(loss, abs=5e-3)
        assert told[step]["response_length"] == pytest.approx(tokens / len(rows))
        assert told[step]["cascade_masked"] == pytest.approx(sum(bool(row["masked"]) for row in rows) / len(rows))
        assert told[step]["cascade_tokens"] == pytest.approx(sum(row["tokens"] for row in rows) / len(rows))


def test_equal_rewards_and_masked_samples_have_no_gradient_and_the_others_have_one(planted, told):
    rows = planted.rollouts("rl")
    taught = [any(row["advantage"] for row in rows if row["step"] == step) for step in range(STEPS)]
    assert any(taught) and not taught[-1]
    assert [told[step]["actor_grad_norm"] > 0 for step in range(STEPS)] == taught
    assert told[STEPS - 1]["actor_grad_norm"] == 0.0
    assert told[STEPS - 1]["policy_loss"] == 0.0


def test_a_single_update_on_policy_has_ratio_1(told):
    for found in told.values():
        assert abs(found["ppo_kl"]) < 1e-3
        assert found["ppo_clip_ratio"] == 0.0
    assert_weights_are_synced([{"step": step, **found} for step, found in told.items()])


def test_no_number_of_a_stage_with_masked_samples_groups_and_micro_batches_is_nan(planted, told):
    for found in [*told.values(), *planted.steps("rl")]:
        numbers = [value for value in found.values() if isinstance(value, int | float)]
        assert len(numbers) > 15
        assert all(map(math.isfinite, numbers))


def test_a_box_before_the_end_of_the_thought_does_not_count(planted, with_trl):
    both = [*rows_of(planted, "think"), *rows_of(with_trl, "think")]
    rows = [row for row in both if "</think>" in row["response"]]
    for row in rows:
        assert row["score"]["value"] <= ("\\boxed{7}" in row["response"].rpartition("</think>")[2]), row["response"]
    said = {row["response"]: row["score"]["value"] for row in rows}
    assert said["\\boxed{7}</think>\\boxed{8}"] == 0.0
    assert said["\\boxed{8}</think>\\boxed{7}"] == 1.0


def test_answers_that_belong_to_other_tasks_make_the_rewards_collapse(planted):
    """Of a dozen responses, which the model has learned by heart."""
    assert_rewards_follow_the_answers(rows_of(planted, "sum"))
    with pytest.raises(AssertionError, match="are right"):
        assert_rewards_follow_the_answers(rows_of(planted, "swap"))


@pytest.mark.parametrize("stage", ["sft", "rl"])
def test_both_trainers_draw_the_same_tasks_in_the_same_order(planted, with_trl, stage):
    one, other = ((cascade.stage(stage) / "prompts.jsonl").read_bytes() for cascade in (planted, with_trl))
    assert one == other
    assert len(one.splitlines()) >= STEPS * SLOTS


def test_both_trainers_put_them_into_the_same_places(planted, with_trl):
    one, other = (
        [(row["step"], row["group"], row["sample"], row["id"], row["prompt"]) for row in cascade.rollouts("rl")]
        for cascade in (planted, with_trl)
    )
    assert one == other


def test_both_trainers_judge_by_the_same_rules(planted, with_trl):
    verdicts = {}
    for row in [*planted.rollouts("rl"), *with_trl.rollouts("rl")]:
        key = row["id"], row["response"], row["truncated"]
        verdicts.setdefault(key, set()).add((json.dumps(row["score"], sort_keys=True), row["masked"]))
    assert all(len(found) == 1 for found in verdicts.values())


def shape(folder):
    """Files of a run, without what a trainer keeps for itself and the parts of models and of boards."""
    inner = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    left_out = {"trainer", "command.txt", "service.jsonl", "vllm.log", "checkpoint", "tensorboard"}
    return {str(path) for path in inner if not left_out & set(path.parts)}


def keys(value):
    return {key: keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def test_both_trainers_leave_the_same_files(planted, with_trl):
    assert shape(planted.folder) == shape(with_trl.folder)
    for cascade in (planted, with_trl):
        for part in ("checkpoint/config.json", "checkpoint/model.safetensors", "checkpoint/tokenizer.json"):
            assert (cascade.stage("rl") / part).is_file()
    specs = [(cascade.folder / "spec.yaml").read_text().splitlines() for cascade in (planted, with_trl)]
    assert [pair for pair in zip(*specs, strict=True) if pair[0] != pair[1]] == [("trainer: openrlhf", "trainer: trl")]


@pytest.mark.parametrize("stage", ["sft", "rl"])
def test_both_trainers_measure_the_same(planted, with_trl, stage):
    one, other = (json.loads((cascade.stage(stage) / "metrics.json").read_text()) for cascade in (planted, with_trl))
    assert keys(one) == keys(other)
    steps = [set(cascade.steps(stage)[0]) for cascade in (planted, with_trl)]
    assert steps[1] - steps[0] <= {"entropy"}  # which OpenRLHF tells where it is asked for
