"""Real reward_model stages with OpenRLHF's `train_rm`: what is learned, a kill, the checkpoint, and the same spec with trl."""

import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cascade_plugin_rlhf.client import RewardClient
from cascade_plugin_rlhf.verdict import Scored
from openrlhf_runs import command
from pass_runs import kill
from rm_stage import BATCH, STEPS
from safetensors.torch import load_file
from sft_stage import events

from cascade_core import rehearsal
from cascade_core.reward_model import load_model, load_tokenizer, tokens
from cascade_core.rows import read
from cascade_core.trainers.openrlhf_parser import VERSIONS
from cascade_core.trainers.schedule import factor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))  # of what reads third-party archives

from openrlhf_programs import sources, trained_with  # noqa: E402

SPEC = """
name: rm
seed: 3
trainer: {trainer}
engine: {{python: {python}, cpu: true, stall_seconds: 300}}
model:
  init:
    hidden_size: 64
    layers: 2
    heads: 2
    context: 64
    tokenizer: {{phrases: ["greet ", "thank ", "leave ", "hello", "thanks", "goodbye", "hey"]}}
domains: {{rlhf: {{}}}}
resources: {{reward_model: {{server: {{model: "stage:rm", threads: 1}}}}}}
stages:
  - name: rm
    kind: reward_model
    domains: rlhf
    steps: 40
    batch_size: 32
    micro_batch: 16
    save_every: 10
    optim: {{lr: 3e-3, warmup_steps: 4, schedule: linear}}
evaluation: {{limit: 300, benchmarks: [rlhf/pairs], sampling: {{max_response_tokens: 8}}}}
"""
ALL = 40


def start(place: Path, engine: Path, trainer: str = "openrlhf") -> "subprocess.Popen[bytes]":
    """A run of the spec in `place/run`."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "spec.yaml").write_text(SPEC.format(python=engine, trainer=trainer))
    with (place / "out").open("ab") as out:
        return subprocess.Popen(
            command(place / "spec.yaml", place / "run"),
            stdout=out,
            stderr=out,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def finished(place: Path, engine: Path, trainer: str = "openrlhf") -> Path:
    """The run's folder."""
    status = start(place, engine, trainer).wait(timeout=900)
    assert status == 0, (place / "out").read_text("utf-8", "replace")[-2000:]
    return place / "run"


@pytest.fixture(scope="module")
def whole(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("rm") / "whole", engine)


@pytest.fixture(scope="module")
def trl(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same spec but for the word after `trainer:`."""
    return finished(tmp_path_factory.mktemp("rm") / "trl", engine, "trl")


@pytest.fixture(scope="module")
def killed(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as `whole`, killed as the kernel would after its second checkpoint, and given again."""
    place = tmp_path_factory.mktemp("rm") / "killed"
    kill(start(place, engine), place / "run/stages/01-rm", 20, ALL, place / "out")
    return finished(place, engine)


@pytest.fixture(scope="module")
def still(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stage whose weights stay as they are: its numbers tell which pairs they were computed on."""
    folder = tmp_path_factory.mktemp("rm") / "still"
    done = subprocess.run(
        [sys.executable, str(HERE / "rm_stage.py"), str(folder), str(engine)], capture_output=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def steps(run: Path) -> dict[int, dict[str, Any]]:
    return {event["step"]: event for event in events(run, "step") if event["stage"] == "01-rm"}


def accuracy(run: Path) -> dict[str, float]:
    told = json.loads((run / "stages/01-rm/metrics.json").read_text())["benchmarks"]["rlhf/pairs"]
    estimate: dict[str, float] = told["estimates"]["accuracy"]
    return estimate


def test_every_update_is_on_exactly_its_own_pairs_and_tells_their_loss(still: Path) -> None:
    tokenizer, model = load_tokenizer(still / "checkpoint"), load_model(still / "checkpoint", dtype="bfloat16").eval()
    lost, better = [], []
    for row in read(still / "prompts.jsonl"):
        texts = [torch.tensor([tokens(tokenizer, row, row[side]).ids]) for side in ("chosen", "rejected")]
        with torch.no_grad():
            good, bad = (float(model(ids).logits[0, 0]) for ids in texts)
        lost.append(math.log1p(math.exp(bad - good)))
        better.append(good > bad)
    per_step = [slice(step * BATCH, (step + 1) * BATCH) for step in range(STEPS)]
    wanted = [sum(lost[mine]) / BATCH for mine in per_step]
    told = events(still, "step")
    assert [event["step"] for event in told] == list(range(STEPS))
    assert [event["loss"] for event in told] == pytest.approx(wanted, abs=3e-3)
    right = [sum(better[mine]) / BATCH for mine in per_step]  # of which one pair may be nearly even
    assert [event["accuracy"] for event in told] == pytest.approx(right, abs=1 / BATCH)
    assert min(b - a for a, b in itertools.pairwise(sorted(wanted))) > 6e-3  # they could be told from each other


def test_what_is_liked_is_learned(whole: Path) -> None:
    told = steps(whole)
    assert sorted(told) == list(range(ALL))
    first, last = ([told[step]["loss"] for step in place] for place in (range(4), range(ALL - 8, ALL)))
    assert sum(first) / 4 == pytest.approx(math.log(2), abs=0.05) and sum(last) / 8 < 0.8 * sum(first) / 4
    assert all(0 < event["grad_norm"] < 1e3 and 0 <= event["accuracy"] <= 1 for event in told.values())
    found = accuracy(whole)
    assert found["n"] == 300 and found["value"] > 0.65 and found["value"] - 0.5 > 4 * found["stderr"]


def test_every_update_tells_the_rate_that_it_used(whole: Path) -> None:
    from cascade_core.spec import load

    optim, told = load(whole.parent / "spec.yaml").stages[0].optim, steps(whole)
    late = [0.0, *(3e-3 * factor(step - 1, ALL, optim) for step in range(1, 5))]  # its warm-up is one update late
    assert [told[step]["lr"] for step in range(5)] == pytest.approx(late, rel=1e-4)
    assert [told[step]["lr"] for step in range(5, ALL)] == pytest.approx(
        [3e-3 * factor(step, ALL, optim) for step in range(5, ALL)], rel=1e-4
    )


def test_a_run_that_was_killed_ends_with_the_weights_and_numbers_of_one_that_was_not(whole: Path, killed: Path) -> None:
    one, other = (load_file(run / "stages/01-rm/checkpoint/model.safetensors") for run in (whole, killed))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    told, again = steps(whole), steps(killed)
    assert sorted(again) == sorted(told)
    for step, event in told.items():
        assert (again[step]["loss"], again[step]["accuracy"]) == (event["loss"], event["accuracy"])
        assert again[step]["lr"] == pytest.approx(event["lr"])
    assert "--ckpt.load_enable" in (killed / "stages/01-rm/command.txt").read_text()
    assert accuracy(killed) == accuracy(whole)


def test_the_same_spec_with_trl_trains_on_the_same_pairs_and_learns_the_same(whole: Path, trl: Path) -> None:
    texts = [(run.parent / "spec.yaml").read_text().splitlines() for run in (whole, trl)]
    assert [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]] == [("trainer: openrlhf", "trainer: trl")]
    rows = [(run / "stages/01-rm/prompts.jsonl").read_bytes() for run in (whole, trl)]
    assert rows[0] == rows[1]
    found, other = accuracy(whole), accuracy(trl)
    assert abs(found["value"] - other["value"]) < 0.1 and min(found["value"], other["value"]) > 0.65
    kinds = [json.loads((run / "stages/01-rm/checkpoint/config.json").read_text()) for run in (whole, trl)]
    assert kinds[0]["architectures"] == kinds[1]["architectures"] == ["LlamaForSequenceClassification"]
    assert [kind["pad_token_id"] for kind in kinds] == [0, 0] and [len(kind["id2label"]) for kind in kinds] == [1, 1]


@pytest.fixture(scope="module")
def served(whole: Path) -> Iterator[str]:
    """The address of `cascade rm serve` with the checkpoint."""
    words = [
        "rm",
        "serve",
        "--model",
        str(whole / "stages/01-rm/checkpoint"),
        "--port",
        "0",
        "--json",
        "--threads",
        "1",
    ]
    program = [sys.executable, "-c", "from cascade_core.cli import main; main()"]
    with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = ""
        while not told.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "the server ended before it served"
            told += line
        yield json.loads(told)["address"]
        process.terminate()


def test_scores_that_are_served_are_those_of_openrlhfs_own_model(whole: Path, served: str, engine: Path) -> None:
    folder = whole / "stages/01-rm/checkpoint"
    rows = list(itertools.islice(read(whole / "stages/01-rm/eval/rlhf/pairs.jsonl"), 24))
    items = [(row["prompt"], row[side]) for row in rows for side in ("chosen", "rejected")]
    tokenizer = load_tokenizer(folder)
    texts = [tokens(tokenizer, {"prompt": prompt}, response).ids for prompt, response in items]
    done = subprocess.run(
        [str(engine), str(HERE / "rm_scores.py"), str(folder)],
        input=json.dumps(texts),
        env=rehearsal.environment(os.environ),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = json.loads(done.stdout.splitlines()[-1])
    with RewardClient(served) as client:
        found = client.scores(items)
    assert [one.score for one in found if isinstance(one, Scored)] == pytest.approx(wanted, abs=1e-4)
    assert max(wanted) - min(wanted) > 0.5
    measured = [row["score"]["metrics"][side] for row in rows for side in ("chosen", "rejected")]
    assert measured == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_program_itself_takes_the_command_of_a_plan(version: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho openrlhf {version}\n")
    python.chmod(0o755)
    (tmp_path / "spec.yaml").write_text(SPEC.format(python=python, trainer="openrlhf"))
    words = [sys.executable, "-c", "from cascade_core.cli import main; main()", "plan", "spec.yaml", "--json"]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    made = json.loads(told.stdout)["stages"][0]["command"]
    arguments = made[made.index("openrlhf.cli.train_rm") + 1 :]
    texts = sources(version, tmp_path)
    found = trained_with(texts["train_rm"], texts["config"], arguments, tmp_path)
    assert found["train"]["batch_size"] == 32 and found["data"]["max_samples"] == 32 * ALL
    assert (found["model"]["loss_type"], found["ds"]["value_head_prefix"]) == ("sigmoid", "score")
