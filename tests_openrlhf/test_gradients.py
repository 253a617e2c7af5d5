"""What OpenRLHF's own code makes of a step that was judged, by numbers: its gradient beside one that plain torch computes."""

import json
import math
import os
import random
import subprocess
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from cascade_core.advantages import advantages, grid, token_weights
from cascade_core.serve.handing import answers
from cascade_core.settings import Engine, Stage
from cascade_core.trainers.openrlhf_args import native
from cascade_core.trainers.openrlhf_engine import adapted, cluster, environment
from cascade_core.trainers.openrlhf_parser import recorded

HERE = Path(__file__).parent
SIZE = 4
LENGTHS = (3, 9, 1, 5, 7, 2, 8, 4, 6, 6, 2, 3)
REWARDS = (1.0, 0.0, 0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0)
MASKED = {0: "overlong", 6: "error"}
GROUP = dict.fromkeys(range(4, 8), "error")
KL = 0.5


def judged(rewards, masked, seed=1):
    """Rows as the judge stores them; responses differ with the seed."""
    chance, rows = random.Random(seed), []
    for start in range(0, len(rewards), SIZE):
        trained = [None if start + i in masked else rewards[start + i] for i in range(SIZE)]
        for i, advantage in enumerate(advantages(trained)):
            why = masked.get(start + i, "")
            score = {"value": 0.0, "error": "planned"} if why == "error" else {"value": rewards[start + i]}
            rows.append(
                {
                    "group": f"0-{start // SIZE}",
                    "sample": i,
                    "score": score,
                    "reward": None if why == "error" else rewards[start + i],
                    "advantage": advantage,
                    "masked": why,
                    "truncated": why == "overlong",
                    "tokens": LENGTHS[start + i],
                    "prompt_ids": [5, 6 + start, 7],
                    "ids": [chance.randrange(3, 40) for _ in range(LENGTHS[start + i])],
                }
            )
    return rows


def flags(loss, micro, kl):
    """All that OpenRLHF is told of such a stage, by the bridge and by its own defaults."""
    rollout = {"prompts_per_step": len(LENGTHS) // SIZE, "samples_per_prompt": SIZE, "max_response_tokens": 12}
    stage = Stage.model_validate(
        {"name": "s", "domains": "math", "steps": 1, "rollout": rollout, "loss": loss, "micro_batch": micro, "kl": kl}
    )
    engine = Engine(cpu=True)
    known = recorded("rl", "0.11.2")
    defaults = {name: flag.default for name, flag in known.flags.items()}
    return {**defaults, **adapted(engine, native(stage, cluster(engine), known)), "data.max_len": 32}


def case(model, reference, rows, loss="token", micro=4, kl=0.0):
    told = answers(rows)
    samples = [
        {
            "prompt": row["prompt_ids"],
            "response": row["ids"],
            "truncated": row["truncated"],
            "answer": told[int(row["group"].partition("-")[2]), row["sample"]],
        }
        for row in rows
    ]
    return {"model": str(model), "reference": str(reference), "flags": flags(loss, micro, kl), "samples": samples}


CASES = {
    "plain": (judged(REWARDS, {}), "token", 4),
    "one-pass": (judged(REWARDS, {}), "token", 12),
    "sequence": (judged(REWARDS, {}), "sequence", 4),
    "masked": (judged(REWARDS, MASKED), "token", 4),
    "said-otherwise": (judged(REWARDS, MASKED, seed=2), "token", 4),
    "pulled": (judged(REWARDS, MASKED), "token", 4, KL),
    "group-masked": (judged(REWARDS, GROUP), "token", 1),
    "all-masked": (judged(REWARDS, dict.fromkeys(range(12), "error")), "token", 4),
    "equal": (judged([0.3] * 12, {}), "token", 4),
    "zeroed": (judged([0.0, *REWARDS[1:6], 0.0, *REWARDS[7:]], {}), "token", 4),
}


def spoken_alike():
    """The masked samples of `said-otherwise` say something else than those of `masked`, the others the same."""
    for row, other in zip(CASES["masked"][0], CASES["said-otherwise"][0], strict=True):
        if not row["masked"]:
            other["ids"] = row["ids"]


spoken_alike()


def made(folder, seed, **more):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=40, max_position_embeddings=32, **sizes, **more)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return made(tmp_path_factory.mktemp("model"), 3)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What the KL term pulls to: in the first update of a stage the model itself, here one that says quite other things."""
    return made(tmp_path_factory.mktemp("reference"), 4, initializer_range=0.2)


@pytest.fixture(scope="module")
def steps(engine, model, reference, tmp_path_factory):
    """What OpenRLHF made of each case."""
    place = tmp_path_factory.mktemp("steps")
    cases = {name: case(model, reference, *parts) for name, parts in CASES.items()}
    (place / "cases.json").write_text(json.dumps(cases))
    variables = environment(os.environ, Engine(cpu=True), place / "lent", "", "")
    command = [str(engine), str(HERE / "engine_step.py"), str(place / "cases.json"), str(place / "steps.json")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((place / "steps.json").read_text())


def flat(gradient):
    return torch.cat([torch.tensor(gradient[name]) for name in sorted(gradient)])


def read(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def chances(policy, row):
    """The log-probability of each token of the response."""
    ids, start = torch.tensor([row["prompt_ids"] + row["ids"]]), len(row["prompt_ids"])
    return policy(ids).logits[0, start - 1 : -1].log_softmax(-1).gather(1, ids[0, start:, None])[:, 0]


def slope(policy):
    return flat({name: weight.grad.flatten().tolist() for name, weight in policy.named_parameters()})


def reinforce(model, rows, weights):
    """The gradient of -Σ w_i A_i Σ_t log p(token t of i), one sample after the other: REINFORCE, without ratio or clip."""
    policy = read(model)
    for row, weight in zip(rows, weights, strict=True):
        (-weight * row["advantage"] * chances(policy, row).sum()).backward()
    return slope(policy)


def pull(model, reference, rows, kept):
    """The gradient of Σ_i Σ_{t < kept_i} (exp(q - p) - 1 - (q - p)) / Σ kept: of the KL term over so many tokens of each sample."""
    policy, other = read(model), read(reference)
    for row, tokens in zip(rows, kept, strict=True):
        away = (chances(other, row).detach() - chances(policy, row))[:tokens]
        ((away.exp() - 1 - away).sum() / sum(kept)).backward()
    return slope(policy)


def weights(rows, loss):
    masked = [bool(row["masked"]) for row in rows]
    return token_weights([row["tokens"] for row in rows], [row["group"] for row in rows], masked, loss)


def assert_same(found, wanted):
    assert float(wanted.norm()) > 1e-3
    assert float((found - wanted).norm() / wanted.norm()) < 1e-4


@pytest.mark.parametrize("name", ["plain", "one-pass"])
def test_the_clipped_gradient_of_one_update_is_that_of_reinforce(steps, model, name):
    rows = CASES[name][0]
    assert_same(flat(steps[name]["gradient"]), reinforce(model, rows, weights(rows, "token")))


def test_the_ratio_of_one_update_is_one_and_nothing_is_clipped(steps):
    for step in steps.values():
        assert step["metrics"]["ppo_kl"] == pytest.approx(0.0, abs=1e-6)
        assert step["metrics"]["ppo_clip_ratio"] == 0.0


def test_the_loss_of_sequences_weighs_each_response_alike(steps, model):
    rows = CASES["sequence"][0]
    found = flat(steps["sequence"]["gradient"])
    assert_same(found, reinforce(model, rows, weights(rows, "sequence")))
    other = reinforce(model, rows, weights(rows, "token"))
    assert float((found - other).norm() / other.norm()) > 0.1


@pytest.mark.parametrize("name", ["masked", "group-masked"])
def test_a_masked_step_is_reinforce_over_the_others_but_for_a_token_of_each_in_the_denominator(steps, model, name):
    rows = CASES[name][0]
    tokens = sum(row["tokens"] for row in rows if not row["masked"])
    share = tokens / (tokens + sum(bool(row["masked"]) for row in rows))
    assert_same(flat(steps[name]["gradient"]), share * reinforce(model, rows, weights(rows, "token")))


def test_what_a_masked_sample_says_changes_no_gradient(steps):
    one, other = (flat(steps[name]["gradient"]) for name in ("masked", "said-otherwise"))
    assert float((one - other).norm()) <= 1e-6 * float(one.norm())


def test_a_kl_term_is_the_mean_over_all_tokens_that_are_left_of_a_masked_sample_its_first(steps, model, reference):
    rows = CASES["pulled"][0]
    learned = [0 if row["masked"] else row["tokens"] for row in rows]
    kept = [tokens or 1 for tokens in learned]
    rewarded = sum(learned) / sum(kept) * reinforce(model, rows, weights(rows, "token"))
    found = flat(steps["pulled"]["gradient"])
    assert_same(found, rewarded + KL * pull(model, reference, rows, kept))
    without = rewarded + KL * pull(model, reference, rows, learned)
    assert float((found - without).norm() / without.norm()) > 0.01


def test_a_masked_sample_is_no_sample_with_reward_0(steps):
    one, other = (flat(steps[name]["gradient"]) for name in ("masked", "zeroed"))
    assert float((one - other).norm() / other.norm()) > 0.1


@pytest.mark.parametrize("name", ["equal", "all-masked"])
def test_a_step_of_equal_rewards_or_of_masked_samples_has_no_gradient_at_all(steps, name):
    assert float(flat(steps[name]["gradient"]).abs().max()) == 0.0
    assert steps[name]["metrics"]["actor_grad_norm"] == 0.0


@pytest.mark.parametrize("name", CASES)
def test_the_trainer_uses_the_advantages_that_it_was_handed(steps, name):
    rows = CASES[name][0]
    wanted = [
        a for start in range(0, len(rows), SIZE) for a in grid([r["advantage"] for r in rows[start : start + SIZE]])
    ]
    assert steps[name]["advantages"] == wanted
    assert wanted == pytest.approx([row["advantage"] for row in rows], abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_no_number_that_the_trainer_logs_is_nan(steps, name):
    found = steps[name]["metrics"]
    assert len(found) > 10
    assert all(math.isfinite(value) for value in found.values())
