"""The gradient that TRL takes is the one that the recipe writes down, to rounding.

Every case runs the trainer for two steps (at the second the policy has left the reference) and compares the gradient of
each with one computed here, response by response, without padding, cache, clipping, ratio or TRL: REINFORCE with the
denominators of the loss (E1, E3), masked samples left out (E10), the KL term of the k3 estimator added.
"""

from dataclasses import dataclass
from typing import Any

import pytest
import tiny_stage as tiny
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cascade_core.settings import Optim, Rollout
from cascade_core.trainers.callbacks import logged
from cascade_core.trainers.trl import TrlTrainer
from cascade_core.trainers.trl_rl import OnPolicyTrainer
from cascade_core.trainers.trl_stage import StageTrainer

GROUPS, SAMPLES = 3, 4


@dataclass
class Step:
    """What one update saw: the policy before it, the response tokens, the judged rows, the gradient before clipping."""

    policy: dict[str, torch.Tensor]
    tokens: list[list[int]]
    rows: list[dict[str, Any]]
    gradient: dict[str, torch.Tensor]


@pytest.fixture
def watched(monkeypatch):
    """Trains a job and gives back its steps."""
    steps: list[Step] = []
    clip, score = StageTrainer._clip_grad_norm, OnPolicyTrainer._generate_and_score_completions

    def scored(self, inputs):
        output = score(self, inputs)
        lengths = output["completion_mask"].sum(1).tolist()
        tokens = [ids[:n] for ids, n in zip(output["completion_ids"].tolist(), lengths, strict=True)]
        policy = {name: weight.detach().clone() for name, weight in self.model.named_parameters()}
        steps.append(Step(policy, tokens, self._judged.rows, {}))
        return output

    def clipped(self, model):
        steps[-1].gradient = {name: weight.grad.clone() for name, weight in self.model.named_parameters()}
        return clip(self, model)

    monkeypatch.setattr(OnPolicyTrainer, "_generate_and_score_completions", scored)
    monkeypatch.setattr(StageTrainer, "_clip_grad_norm", clipped)

    def train(job):
        steps.clear()
        TrlTrainer().train(job)
        return list(steps)

    return train


@pytest.fixture
def two_steps(watched):
    """Trains two steps of a stage and gives back its job and them."""

    def train(folder, judge, **changes):
        sampling = {"prompts_per_step": GROUPS, "samples_per_prompt": SAMPLES, "max_response_tokens": 8}
        rollout = Rollout(**sampling, **changes.pop("sampling", {}))
        settings = tiny.stage("rl", steps=2, save_every=0, rollout=rollout, optim=Optim(lr=3e-2), **changes)
        job = tiny.job(folder, settings, judge)
        return job, watched(job)

    return train


def denominators(rows, loss):
    """One over the weight of a token of each sample, written out from the papers' formulas; None where masked."""
    live = [row for row in rows if not row["masked"]]
    groups = {row["group"] for row in live}
    found = []
    for row in rows:
        mine = [other for other in live if other["group"] == row["group"]]
        whole = {
            "token": sum(other["tokens"] for other in live),
            "token-group": len(groups) * sum(other["tokens"] for other in mine),
            "sequence": len(live) * row["tokens"],
        }
        found.append(None if row["masked"] else whole[loss])
    return found


def logps(model, prompt, tokens, temperature):
    logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)]


def reinforce(job, step, kl=0.0, temperature=1.0):
    """The gradient of Σ_i 1/d_i Σ_t (-A_i log π + kl · k3), one response at a time."""
    tokenizer = AutoTokenizer.from_pretrained(job.model)
    model, reference = (AutoModelForCausalLM.from_pretrained(job.model) for _ in range(2))
    model.load_state_dict(step.policy, strict=False)
    model.tie_weights()
    loss = torch.zeros(())
    for row, tokens, bottom in zip(step.rows, step.tokens, denominators(step.rows, job.stage.loss), strict=True):
        if bottom is None:
            continue
        assert len(tokens) == row["tokens"]
        prompt = tokenizer(row["prompt"])["input_ids"]
        mine = logps(model, prompt, tokens, temperature)
        loss = loss - row["advantage"] * mine.sum() / bottom
        if kl:
            with torch.no_grad():
                theirs = logps(reference, prompt, tokens, temperature)
            loss = loss + kl * ((theirs - mine).exp() - (theirs - mine) - 1).sum() / bottom
    loss.backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def distance(found, expected):
    """The size of the difference over the size of what is expected."""
    off = sum(float(((found[name] - expected[name]) ** 2).sum()) for name in expected)
    size = sum(float((value**2).sum()) for value in expected.values())
    return (off / size) ** 0.5


def truncated(row):
    return "overlong" if row["truncated"] else ""


CASES = {
    "token": {},
    "token-group": {"loss": "token-group"},
    "sequence": {"loss": "sequence"},
    "kl": {"kl": 0.3},
    "kl-sequence": {"kl": 0.3, "loss": "sequence"},
    "micro-batches": {"micro_batch": 3},
    "micro-batches-kl-group": {"micro_batch": 2, "kl": 0.3, "loss": "token-group"},
    "warm": {"sampling": {"temperature": 1.3}},
    "cut-off": {"sampling": {"top_k": 20, "top_p": 0.9}},
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
@pytest.mark.parametrize("mask", ["none", "some"])
def test_the_gradient_is_reinforce_with_the_papers_denominators(two_steps, tmp_path, changes, mask):
    judge = tiny.StubJudge(tiny.digest, truncated if mask == "some" else lambda row: "")
    temperature = changes.get("sampling", {}).get("temperature", 1.0)
    job, steps = two_steps(tmp_path, judge, **changes)
    assert len(steps) == 2
    for step in steps:
        lengths = {row["tokens"] for row in step.rows}
        assert len(lengths) > 1, "the case says nothing about lengths"
        assert any(row["masked"] for row in step.rows) == (mask == "some")
        expected = reinforce(job, step, changes.get("kl", 0.0), temperature)
        assert distance(step.gradient, expected) < 2e-5


def test_the_three_losses_differ_on_unequal_lengths(two_steps, tmp_path):
    """E3: so that the test above could tell them apart."""
    job, (step, _) = two_steps(tmp_path, tiny.StubJudge(tiny.digest))
    found = {}
    for loss in ("token", "token-group", "sequence"):
        found[loss] = reinforce(type(job)(**{**vars(job), "stage": job.stage.model_copy(update={"loss": loss})}), step)
    assert distance(found["token"], found["sequence"]) > 1e-2
    assert distance(found["token"], found["token-group"]) > 1e-2
    assert distance(found["token-group"], found["sequence"]) > 1e-2


def test_tanh_advantages_reach_the_gradient_as_they_are(two_steps, tmp_path):
    job, steps = two_steps(tmp_path, tiny.StubJudge(tiny.digest, shaping="tanh"))
    assert all(abs(row["advantage"]) < 1 for step in steps for row in step.rows)
    for step in steps:
        assert distance(step.gradient, reinforce(job, step)) < 2e-5


@pytest.mark.parametrize("loss", ["token", "token-group", "sequence"])
def test_a_masked_overlong_sample_is_as_if_never_sampled_and_no_reward_of_zero(two_steps, tmp_path, loss):
    """E10."""
    _, (masked, _) = two_steps(tmp_path / "mask", tiny.StubJudge(tiny.digest, truncated), loss=loss)
    job, (zero, _) = two_steps(
        tmp_path / "zero", tiny.StubJudge(lambda row: 0.0 if row["truncated"] else tiny.digest(row)), loss=loss
    )
    assert masked.tokens == zero.tokens
    kept = [i for i, row in enumerate(masked.rows) if not row["truncated"]]
    assert 0 < len(kept) < len(masked.rows)
    without = Step(masked.policy, [masked.tokens[i] for i in kept], [masked.rows[i] for i in kept], {})
    assert distance(masked.gradient, reinforce(job, without)) < 2e-5
    assert distance(masked.gradient, zero.gradient) > 1e-2


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


@pytest.mark.parametrize("changes", [{}, {"micro_batch": 3}, {"loss": "sequence"}], ids=str)
def test_equal_rewards_leave_every_weight_as_it_was(two_steps, tmp_path, changes):
    """E2: bit for bit, whatever the optimizer makes of a gradient of zero."""
    job, steps = two_steps(tmp_path, tiny.StubJudge(lambda row: 0.7), **changes)
    assert all(not value.any() for step in steps for value in step.gradient.values())
    assert (job.output / "model.safetensors").read_bytes() == (job.model / "model.safetensors").read_bytes()


def test_a_batch_that_is_masked_whole_leaves_every_weight_as_it_was(two_steps, tmp_path):
    job, _ = two_steps(tmp_path, tiny.StubJudge(tiny.digest, lambda row: "error"), kl=0.5)
    assert (job.output / "model.safetensors").read_bytes() == (job.model / "model.safetensors").read_bytes()


def test_micro_batches_leave_the_supervised_gradient_as_it_is(tmp_path, monkeypatch):
    """Micro-batches of demonstrations of unequal length, against the mean over all response tokens computed here."""
    seen = []
    clip = StageTrainer._clip_grad_norm

    def clipped(self, model):
        seen.append({name: weight.grad.clone() for name, weight in self.model.named_parameters()})
        return clip(self, model)

    monkeypatch.setattr(StageTrainer, "_clip_grad_norm", clipped)
    for micro in (None, 2):
        job = tiny.job(tmp_path / str(micro), tiny.stage("sft", steps=1, micro_batch=micro))
        TrlTrainer().train(job)
    tokenizer, model = AutoTokenizer.from_pretrained(job.model), AutoModelForCausalLM.from_pretrained(job.model)
    terms = []
    for row in tiny.tasks(8):
        answer = [*tokenizer(row["response"])["input_ids"], tokenizer.eos_token_id]
        terms.append(logps(model, tokenizer(row["prompt"])["input_ids"], answer, 1.0))
    assert len({len(term) for term in terms}) > 1
    (-torch.cat(terms).mean()).backward()
    expected = {name: weight.grad for name, weight in model.named_parameters()}
    assert distance(seen[0], expected) < 2e-5
    assert distance(seen[1], expected) < 2e-5


def test_two_passes_are_not_made_where_one_is_enough(two_steps, tmp_path, monkeypatch):
    """No old log-probabilities and no reference model at KL 0; samples of advantage 0 are in no forward pass."""
    sizes = []
    whole = OnPolicyTrainer._get_per_token_logps_and_entropies

    def counted(self, model, input_ids, *args, **more):
        sizes.append(len(input_ids))
        return whole(self, model, input_ids, *args, **more)

    monkeypatch.setattr(OnPolicyTrainer, "_get_per_token_logps_and_entropies", counted)
    judge = tiny.StubJudge(lambda row: 1.0 if row["group"].endswith("-1") and row["sample"] == 0 else 0.0)
    two_steps(tmp_path, judge)
    assert sizes == [SAMPLES, SAMPLES]


def test_the_log_of_a_stage_holds_what_the_libraries_said(tmp_path, capfd):
    import warnings

    with logged(tmp_path / "train.log"):
        warnings.warn("spoken of", stacklevel=1)
    assert "spoken of" in (tmp_path / "train.log").read_text()
    assert capfd.readouterr() == ("", "")
