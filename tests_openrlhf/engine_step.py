"""One update by OpenRLHF's own code, in one process: `python engine_step.py CASE OUT`, with the Python that has it, under the shim.

From what the agent hands back on, everything is OpenRLHF's: samples to experiences, log-probabilities, advantages, the replay buffer, micro-batches,
the loss, and `ActorPPOTrainer.ppo_train`. Left out are Ray, vLLM (the model itself says what the engine would have sampled with) and DeepSpeed, of
which a plain backward pass, divided by the number of micro-batches as DeepSpeed does, takes the place. The model keeps 32 bits.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from openrlhf.models import Actor
from openrlhf.trainer.ppo_utils import experience_maker
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
from openrlhf.utils.config import hierarchize
from transformers import AutoModelForCausalLM

from cascade_core.trainers.openrlhf_sample import finished, read_answer


class Strategy:
    """What the trainer asks of DeepSpeed."""

    ring_attn_group = None

    def __init__(self, args, micro_batches):
        self.args, self.accumulated_gradient = args, micro_batches

    def is_rank_0(self):
        return False

    def all_reduce(self, found, op="mean"):
        return found

    def backward(self, loss, model, optimizer):
        (loss / self.accumulated_gradient).backward()

    def optimizer_step(self, *args, **named):
        """The gradient is looked at, and no weight moved."""

    def get_grad_norm(self, model):
        return torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm().item()


class Maker(experience_maker.RemoteExperienceMaker):
    """Asks the model here, and not in another process."""

    def _dispatch_forward(self, group, sync_condition, *, sequences, action_mask, attention_mask, **no_images):
        return [group(*each) for each in zip(sequences, action_mask, attention_mask, strict=True)]

    def _flatten_results(self, refs, duplicate_factor):
        return [None] * len(refs) if refs[0] == [None] else refs  # of models that there are not


def sampled(actor, sample):
    """What OpenRLHF's executor returns of a sample, before the agent has its say."""
    tokens, start = sample["prompt"] + sample["response"], len(sample["prompt"])
    mask = torch.ones(1, len(tokens) - 1)
    with torch.no_grad():
        chances = actor(torch.tensor([tokens]), mask, torch.ones(1, len(tokens), dtype=torch.long))[0]
    return {
        "prompt": "",
        "label": "0",
        "images": None,
        "mm_train_inputs": None,
        "observation_tokens": tokens,
        "action_ranges": [(start, len(tokens))],
        "rollout_log_probs": [0.0] * start + chances[start - 1 :].tolist(),
        "truncated": sample["truncated"],
    }


def policy(folder):
    made = Actor(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    made.packing_samples = False
    return made


def step(case):
    """Metrics and gradient of a step of these samples."""
    args = hierarchize(argparse.Namespace(**case["flags"]))
    args.actor.eps_clip_low_high = args.actor.eps_clip_low_high or [args.actor.eps_clip] * 2
    actor = policy(case["model"])
    strategy = Strategy(args, len(case["samples"]) // args.train.micro_batch_size)
    coefficient = args.algo.kl.init_coef
    reference = policy(case["reference"]) if coefficient else None
    control = SimpleNamespace(value=coefficient)
    maker = Maker(actor, None, None, reference, control, strategy, SimpleNamespace(pad_token_id=0))
    generator = SamplesGenerator(strategy, None, None, None, [])
    outs = [finished(sampled(actor, one), read_answer(one["answer"])) for one in case["samples"]]
    rollout = [generator._process_response_into_experience(out, max_len=args.data.max_len) for out in outs]
    experiences = maker.make_experience_batch(rollout)
    trainer = ActorPPOTrainer(
        strategy,
        actor,
        None,
        None,
        SimpleNamespace(get_last_lr=lambda: [0.0]),
        micro_train_batch_size=args.train.micro_batch_size,
        dataloader_pin_memory=False,
    )
    first = [made.action_mask.long().argmax(1, keepdim=True) for made in experiences]
    advantages = torch.cat([made.advantages.gather(1, at)[:, 0] for made, at in zip(experiences, first, strict=True)])
    for made in experiences:
        trainer.replay_buffer.append(made)
    metrics = trainer.ppo_train(coefficient)
    gradient = {name: weight.grad.flatten().tolist() for name, weight in actor.model.named_parameters()}
    return {"metrics": metrics, "gradient": gradient, "advantages": advantages.tolist()}


def main(source, target):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "1"}
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    torch.manual_seed(1)
    experience_maker.ray = SimpleNamespace(put=lambda value: value)
    found = {name: step(case) for name, case in json.loads(Path(source).read_text()).items()}
    Path(target).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
