"""The whole way of a step with nothing replaced: TRL, the worker processes, the math verifier, the judge.

A model of ten thousand weights first learns to answer sums in two shapes: boxed, and boxed inside a thought.
"""

import json
from dataclasses import replace

import pytest
import test_trl_exact as exact
import tiny_stage as tiny

from cascade_core import rows as rowfile
from cascade_core.judge import Judge
from cascade_core.plugins import registry
from cascade_core.scoring import Scorer
from cascade_core.settings import InitModel, InitTokenizer, Optim, Rollout, Scoring

watched = exact.watched
PHRASES = ["<think>", "</think>", "\\boxed{1}", "\\boxed{2}"]


def sums(count):
    return [
        {"domain": "math", "id": f"s{i}", "prompt": f"{i % 2}+1=", "answer": str(i % 2 + 1), "mode": "", "source": ""}
        for i in range(count)
    ]


def shaped(row, i):
    """Demonstrations: any digit, in four shapes, so that right and wrong, inside and outside, all come up."""
    box = f"\\boxed{{{1 + i // 4 % 2}}}"
    return {**row, "response": (box, f"<think>{box}</think>{box}", f"<think>{box}</think>1", f"{box}</think>")[i % 4]}


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A model that answers in those shapes."""
    from cascade_core.initial import make

    folder = tmp_path_factory.mktemp("taught")
    make(
        InitModel(hidden_size=32, layers=1, heads=2, context=32, tokenizer=InitTokenizer(phrases=PHRASES)),
        1,
        folder / "start",
    )
    settings = tiny.stage("sft", steps=60, batch_size=16, save_every=0, optim=Optim(lr=2e-2))
    job = tiny.job(folder, settings, rows=[shaped(row, i * 7) for i, row in enumerate(sums(960))])
    tiny.TrlTrainer().train(job)
    return job.output


@pytest.fixture(scope="module")
def scorer():
    with Scorer({"math": registry().reference("math")}, Scoring(workers=1)) as scorer:
        yield scorer


def step(watched, folder, start, scorer, limit=5, **changes):
    """The first step of an rl stage from `start`, judged for real; the job and what the update saw."""
    rollout = Rollout(prompts_per_step=4, samples_per_prompt=8, max_response_tokens=limit)
    settings = tiny.stage("rl", steps=1, save_every=0, rollout=rollout, optim=Optim(lr=1e-2), domains="math", **changes)
    job = tiny.job(folder, settings, start=start, rows=sums(4))
    job = replace(job, judge=Judge(scorer, settings, job.seed, folder, 0.0))
    return job, watched(job)[0]


@pytest.mark.slow
def test_the_verifiers_verdicts_become_the_gradient(watched, taught, scorer, tmp_path):
    job, seen = step(watched, tmp_path, taught, scorer)
    assert {row["score"]["value"] for row in seen.rows} == {0.0, 1.0}
    assert exact.distance(seen.gradient, exact.reinforce(job, seen)) < 2e-5
    stored = list(rowfile.read(tmp_path / "rollouts" / "step-00000.jsonl"))
    assert [(row["response"], row["advantage"]) for row in stored] == [
        (row["response"], row["advantage"]) for row in seen.rows
    ]
    told = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[0])
    assert told["total"] == 32 and told["failed"] == 0
    assert told["value_mean"] == pytest.approx(sum(row["score"]["value"] for row in seen.rows) / 32)
    assert {"reward_mean", "reward_std", "zero_variance", "masked", "truncated", "response_tokens_mean"} <= set(told)


@pytest.mark.slow
def test_what_is_boxed_in_the_thought_alone_earns_nothing(watched, taught, scorer, tmp_path):
    """E7, on sampled responses: the right number in a box before `</think>`, and none after it."""
    _, seen = step(watched, tmp_path, taught, scorer)
    inside = [row for row in seen.rows if f"\\boxed{{{row['answer']}}}" in row["response"].rpartition("</think>")[0]]
    alone = [row for row in inside if "\\boxed" not in row["response"].rpartition("</think>")[2]]
    assert alone and all(row["score"]["value"] == 0.0 for row in alone)
    after = [row for row in seen.rows if row["response"].rpartition("</think>")[2] == f"\\boxed{{{row['answer']}}}"]
    assert after and all(row["score"]["value"] == 1.0 for row in after if not row["truncated"])


@pytest.mark.slow
def test_overlong_mask_takes_the_sample_out_and_overlong_zero_does_not(watched, taught, scorer, tmp_path):
    """E10, with the judge's own rules."""
    job, masked = step(watched, tmp_path / "mask", taught, scorer, limit=4, overlong="mask")
    _, zero = step(watched, tmp_path / "zero", taught, scorer, limit=4, overlong="zero")
    assert masked.tokens == zero.tokens
    cut = [i for i, row in enumerate(masked.rows) if row["truncated"]]
    assert 0 < len(cut) < len(masked.rows)
    assert all(masked.rows[i]["masked"] == "overlong" and masked.rows[i]["advantage"] == 0.0 for i in cut)
    kept = [i for i in range(len(masked.rows)) if i not in cut]
    without = exact.Step(masked.policy, [masked.tokens[i] for i in kept], [masked.rows[i] for i in kept], {})
    assert exact.distance(masked.gradient, exact.reinforce(job, without)) < 2e-5
    assert exact.distance(masked.gradient, zero.gradient) > 1e-2
