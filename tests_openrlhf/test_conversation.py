"""A domain that answers the model, through OpenRLHF's own loop: turns are sampled, judged and learned from as one sample."""

import ast
import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from openrlhf_checks import assert_gradients_follow_advantages, assert_weights_are_synced

EXTENSION = Path(__file__).parents[1] / "tests" / "extension"
SPEC = """
name: talk
seed: 1
trainer: openrlhf
engine: {{python: {python}, cpu: true, stall_seconds: 400}}
model: {{init: {{hidden_size: 64, layers: 2, heads: 2, context: 128}}, modes: flags}}
domains: {{guess: {{largest: 3}}}}
stages:
  - name: sft
    kind: sft
    trainer: trl
    mode: no_think
    domains: guess
    steps: 60
    batch_size: 32
    optim: {{lr: 1e-2, schedule: linear}}
  - name: rl
    mode: half
    domains: guess
    steps: 3
    micro_batch: 8
    rollout: {{prompts_per_step: 4, samples_per_prompt: 8, max_response_tokens: 80}}
    optim: {{lr: 3e-4}}
scoring: {{workers: 1}}
"""


@pytest.fixture(scope="module")
def run(engine, tmp_path_factory):
    """The folder of a run that ended."""
    place = tmp_path_factory.mktemp("talk")
    spec, folder = place / "spec.yaml", place / "run"
    spec.write_text(SPEC.format(python=engine))
    program = f"import sys; sys.path.insert(0, {str(EXTENSION)!r}); from cascade_core.cli import main; main()"
    command = [sys.executable, "-c", program, "run", str(spec), "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def rows(run):
    """Every sample of the stage, step by step."""
    files = sorted(run.glob("stages/02-rl/rollouts/step-*.jsonl"))
    return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]


def test_conversations_of_several_turns_are_judged_as_one_sample_each(rows):
    assert [len(step) for step in rows] == [32, 32, 32]
    found = [row for step in rows for row in step]
    assert not [row for row in found if "error" in row["score"]]
    turns = [len(row.get("turns", ())) // 2 + 1 for row in found]
    assert turns == [row["score"]["metrics"]["turns"] for row in found]
    assert set(turns) <= {1, 2, 3, 4} and statistics.mean(turns) > 1.5
    hints = {turn["content"] for row in found for turn in row.get("turns", ()) if turn["role"] == "user"}
    assert {"higher", "lower"} <= hints <= {"higher", "lower", "a number"}
    assert 0.05 < statistics.mean(row["score"]["value"] for row in found) < 0.98


def shown(row):
    """The whole of a conversation, without markup: each of the user's turns ends with the flag of the mode."""
    ends = {"user": f" /{row['mode']}", "assistant": "\n"}
    turns = [{"role": "user", "content": row["prompt"]}, *row.get("turns", ())]
    return "".join(turn["content"] + ends[turn["role"]] for turn in turns) + row["response"]


def test_half_of_every_step_is_in_each_mode_and_the_engine_read_its_flag_behind_every_turn(run, rows):
    log = (run / "stages/02-rl/train.log").read_text("utf-8", "replace")
    samples = re.findall(r"Sample: \[(['\"].*['\"]), [-+.\de]+\]", log)  # one sample of each step, from its tokens
    assert len(samples) == len(rows)
    for step, text in zip(rows, map(ast.literal_eval, samples), strict=True):
        assert Counter(row["mode"] for row in step) == {"think": 16, "no_think": 16}
        assert text in {shown(row) for row in step}


def test_the_trainer_learns_from_the_tokens_that_vllm_sampled_and_from_no_other(run, rows):
    events = [json.loads(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]
    steps = [event for event in events if event["kind"] == "step" and event["stage"] == "02-rl"]
    assert [event["step"] for event in steps] == [0, 1, 2]
    assert_weights_are_synced(steps)
    norms = {event["step"]: event["grad_norm"] for event in steps}
    assert_gradients_follow_advantages(norms, [row for step in rows for row in step])
