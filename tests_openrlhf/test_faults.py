"""A grader that breaks in mid-stage: the stage and OpenRLHF's job stop, and the same command goes on once it is mended."""

import json

from openrlhf_checks import (
    assert_every_sample_was_judged_once,
    assert_gradients_follow_advantages,
    assert_weights_are_synced,
)
from openrlhf_stopped import BROKEN, SAMPLES, SLOTS, STEPS, files


def test_a_grader_that_breaks_stops_the_command_with_its_reason(stopped):
    told = " ".join(stopped.told.split())
    assert stopped.status == 1
    assert "32 of the last 96 samples of domain 'graded' could not be judged" in told
    assert "the grader does not answer: HTTP Error 503" in told


def test_a_stopped_stage_leaves_nothing_of_its_engine_running_and_no_model(stopped):
    assert stopped.running == []
    assert "stages/00-start/metrics.json" in stopped.files and "stages/01-rl/metrics.json" not in stopped.files


def test_the_step_that_could_not_be_judged_is_stored_with_why(stopped):
    assert_every_sample_was_judged_once(stopped.rows, BROKEN + 1, SLOTS, SAMPLES)
    assert {row["step"] for row in stopped.rows if "error" in row["score"]} == {BROKEN}
    assert {row["masked"] for row in stopped.rows if row["step"] == BROKEN} == {"error"}


def test_the_same_command_goes_on_from_the_checkpoint_and_does_exactly_the_steps_that_are_left(stopped):
    run, rows = stopped.run, stopped.run.rollouts("rl")
    assert_every_sample_was_judged_once(rows, STEPS, SLOTS, SAMPLES)
    assert not [row for row in rows if "error" in row["score"]]
    assert [row for row in rows if row["step"] < BROKEN] == [row for row in stopped.rows if row["step"] < BROKEN]
    assert [event["step"] for event in run.steps("rl")] == list(range(STEPS))
    assert ["load_enable=True" in job for job in run.jobs("rl")] == [False, True]
    assert_weights_are_synced(run.steps("rl"))
    assert_gradients_follow_advantages({event["step"]: event["grad_norm"] for event in run.steps("rl")}, rows)


def test_a_stage_that_was_stopped_once_leaves_the_files_of_any_other(stopped):
    stage = stopped.run.stage("rl")
    assert set(files(stopped.run.folder)) > set(stopped.files)
    assert sorted(path.name for path in (stage / "rollouts").iterdir()) == [f"step-{n:05d}.jsonl" for n in range(STEPS)]
    assert json.loads((stage / "metrics.json").read_text())["checkpoint"]
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (stage / "checkpoint" / name).is_file()
    assert not list(stage.glob("*.part"))
