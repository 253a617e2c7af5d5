"""What a step of the trainer `trl` costs beside TRL's own GRPOTrainer, and beside a bare torch loop that does the same work.

All train the 0.6M-parameter model of the quickstart on one thread, where what surrounds the model weighs most: sft on 80
demonstrations in micro-batches of 20, rl on 32 prompts × 8 samples of up to 18 tokens. Rewards are a hash of the answer: they cost
nothing, and nearly all samples have a gradient. TRL gets the fields of `GRPOConfig` that the trainer would give it, and that
reward as a function. Costs are CPU seconds per step, as the difference between a longer and a shorter training, which takes loading
and set-up out; the three take turns, and the median of the rounds counts.

    OMP_NUM_THREADS=1 python benchmarks/trl_overhead.py [--rounds 3]

The last line is a JSON object with the ratios.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import DynamicCache, PrinterCallback

from cascade_core import rows as rowfile
from cascade_core.advantages import advantages
from cascade_core.events import Events
from cascade_core.initial import make
from cascade_core.pretrained import load_model, load_tokenizer, quiet_bars
from cascade_core.settings import InitModel, InitTokenizer, Optim, Rollout, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.trl import TrlTrainer
from cascade_core.trainers.trl_args import native

MICRO = 20  # demonstrations
SAMPLES, LIMIT = 8, 18


@dataclass(frozen=True)
class Scale:
    """Steps of the two trainings, demonstrations and prompts of a step."""

    short: int = 4
    long: int = 20
    batch: int = 80
    prompts: int = 32

    def rows(self, kind: str) -> int:
        return self.batch if kind == "sft" else self.prompts


def reward(text: str) -> float:
    return hashlib.sha256(text.encode()).digest()[0] / 255.0


@dataclass
class Judged:
    rows: list[dict[str, Any]]
    metrics: dict[str, float]


class RandomJudge:
    """Rewards that cost nothing to find."""

    def hand_over(self, row: dict[str, Any]) -> None:
        """Nothing to begin early."""

    def judge(self, step: int, rows: list[dict[str, Any]]) -> Judged:
        judged = []
        for start in range(0, len(rows), SAMPLES):
            group = rows[start : start + SAMPLES]
            rewards = [reward(row["response"]) for row in group]
            for row, own, advantage in zip(group, rewards, advantages(rewards), strict=True):
                judged.append({**row, "reward": own, "advantage": advantage, "masked": ""})
        return Judged(judged, {})


def tasks(count: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    found = []
    for i in range(count):
        word = draw.choice(["cat", "red pen", "old blue box", "very big yellow bus"])
        times = draw.randint(1, 3)
        found.append(
            {
                "domain": "d",
                "id": str(i),
                "prompt": f"write {word} {times} times: ",
                "response": " ".join([word] * times),
            }
        )
    return found


def stage_of(kind: str, scale: Scale, steps: int) -> Stage:
    return Stage(
        name=kind,
        kind=kind,  # type: ignore[arg-type]
        domains={"d": 1.0},
        steps=steps,
        save_every=0,
        optim=Optim(lr=3e-4),
        batch_size=scale.batch,
        micro_batch=MICRO if kind == "sft" else None,
        rollout=Rollout(prompts_per_step=scale.prompts, samples_per_prompt=SAMPLES, max_response_tokens=LIMIT),
    )


def ours(kind: str, start: Path, scale: Scale, steps: int) -> float:
    """CPU seconds of a whole stage of so many steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / kind
        folder.mkdir()
        stage = stage_of(kind, scale, steps)
        rowfile.write(folder / "prompts.jsonl", tasks(steps * scale.rows(kind)))
        job = Job(
            stage, 0, folder, start, folder / "out", folder / "prompts.jsonl", Events(folder / "e.jsonl"), RandomJudge()
        )  # type: ignore[arg-type]
        begin = time.process_time()
        TrlTrainer().train(job)
        return time.process_time() - begin


def plain(start: Path, scale: Scale, steps: int) -> float:
    """CPU seconds of TRL's own trainer, model loading and all, for so many steps."""
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    def rewards(completions: list[str], **_: Any) -> list[float]:
        return [reward(text) for text in completions]

    flags = {**native(stage_of("rl", scale, steps)), "scale_rewards": "group"}
    data = Dataset.from_dict({"prompt": [row["prompt"] for row in tasks(steps * scale.prompts)]})
    with tempfile.TemporaryDirectory() as name:
        begin = time.process_time()
        trainer = GRPOTrainer(
            model=load_model(start),
            reward_funcs=rewards,
            args=GRPOConfig(output_dir=name, use_cpu=True, **flags),
            train_dataset=data,
            processing_class=load_tokenizer(start),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return time.process_time() - begin


def pad(sequences: list[list[int]], left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, sequences))
    fill = [[0] * (width - len(ids)) for ids in sequences]
    ids = [f + s if left else s + f for f, s in zip(fill, sequences, strict=True)]
    mask = [
        [0] * len(f) + [1] * len(s) if left else [1] * len(s) + [0] * len(f)
        for f, s in zip(fill, sequences, strict=True)
    ]
    return torch.tensor(ids), torch.tensor(mask)


def bare_sft(model: Any, tokenizer: Any, optimizer: Any, rows: list[dict[str, Any]]) -> None:
    pairs = [(tokenizer(row["prompt"])["input_ids"], [*tokenizer(row["response"])["input_ids"], 1]) for row in rows]
    pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
    total = sum(len(response) for _, response in pairs)
    for start in range(0, len(pairs), MICRO):
        part = pairs[start : start + MICRO]
        ids, mask = pad([prompt + response for prompt, response in part])
        labels = torch.full_like(ids, -100)
        for i, (prompt, response) in enumerate(part):
            labels[i, len(prompt) : len(prompt) + len(response)] = torch.tensor(response)
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        (
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum") / total
        ).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def bare_rollout(model: Any, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    ids, mask = pad(prompts, left=True)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    output = model(
        input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True, logits_to_keep=1
    )
    logits = output.logits[:, -1].repeat_interleave(SAMPLES, 0)
    cache.batch_repeat_interleave(SAMPLES)
    ids, mask = ids.repeat_interleave(SAMPLES, 0), mask.repeat_interleave(SAMPLES, 0)
    whole, at, done, drawn = (
        mask,
        positions[:, -1:].repeat_interleave(SAMPLES, 0),
        torch.zeros(len(ids), dtype=torch.bool),
        [],
    )
    for step in range(LIMIT):
        token = torch.where(done, 0, torch.multinomial(torch.softmax(logits, -1), 1)[:, 0])
        drawn.append(token)
        done = done | (token == 1)
        if done.all() or step == LIMIT - 1:
            break
        at, whole = at + 1, torch.cat([whole, torch.ones(len(ids), 1, dtype=torch.long)], 1)
        logits = model(
            input_ids=token[:, None], attention_mask=whole, position_ids=at, cache=cache, use_cache=True
        ).logits[:, -1]
    completion = torch.stack(drawn, 1)
    ended = (completion == 1).long()
    return ids, mask, completion, ((ended.cumsum(1) - ended) == 0).float()


def bare_rl(model: Any, tokenizer: Any, optimizer: Any, rows: list[dict[str, Any]]) -> None:
    ids, mask, completion, kept = bare_rollout(model, [tokenizer(row["prompt"])["input_ids"] for row in rows])
    texts = tokenizer.batch_decode(completion, skip_special_tokens=True)
    rewards = [reward(text) for text in texts]
    found = [a for start in range(0, len(texts), SAMPLES) for a in advantages(rewards[start : start + SAMPLES])]
    whole, seen = torch.cat([ids, completion], 1), torch.cat([mask, kept.long()], 1)
    width = completion.shape[1]
    logits = model(
        input_ids=whole, attention_mask=seen, position_ids=(seen.cumsum(1) - 1).clamp(min=0), logits_to_keep=width + 1
    ).logits[:, :-1]
    logp = torch.log_softmax(logits, -1).gather(-1, completion[..., None])[..., 0]
    (-(torch.tensor(found)[:, None] * logp * kept).sum() / kept.sum()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def bare(kind: str, start: Path, scale: Scale) -> float:
    """CPU seconds per step of the bare loop."""
    model, tokenizer = load_model(start), load_tokenizer(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    step, size = bare_sft if kind == "sft" else bare_rl, scale.rows(kind)
    rows = tasks(scale.long * size)
    for warm in range(scale.short):
        step(model, tokenizer, optimizer, rows[warm * size : (warm + 1) * size])
    begin = time.process_time()
    for number in range(scale.short, scale.long):
        step(model, tokenizer, optimizer, rows[number * size : (number + 1) * size])
    return (time.process_time() - begin) / (scale.long - scale.short)


def per_step(train: Callable[[int], float], scale: Scale) -> float:
    """CPU seconds per step of a training whose set-up costs the same at any length."""
    return (train(scale.long) - train(scale.short)) / (scale.long - scale.short)


def ways(start: Path, scale: Scale) -> dict[str, Callable[[], float]]:
    """What is measured, each giving CPU seconds per step."""
    return {
        "sft_bare_seconds": lambda: bare("sft", start, scale),
        "sft_seconds": lambda: per_step(lambda steps: ours("sft", start, scale, steps), scale),
        "rl_bare_seconds": lambda: bare("rl", start, scale),
        "rl_trl_seconds": lambda: per_step(lambda steps: plain(start, scale, steps), scale),
        "rl_seconds": lambda: per_step(lambda steps: ours("rl", start, scale, steps), scale),
    }


def measured(scale: Scale, rounds: int) -> dict[str, float]:
    """Medians over the rounds, in each of which every way has its turn."""
    with tempfile.TemporaryDirectory() as name, quiet_bars():
        start = Path(name) / "start"
        make(InitModel(tokenizer=InitTokenizer(phrases=["write ", " times: ", "yellow", "blue"])), 0, start)
        ours("sft", start, scale, 1)  # imports
        plain(start, scale, 1)
        turns = [{name: way() for name, way in ways(start, scale).items()} for _ in range(rounds)]
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", default="4,20", help="of the shorter and the longer training")
    parser.add_argument("--prompts", type=int, default=32, help="of an rl step")
    args = parser.parse_args()
    short, long = map(int, args.steps.split(","))
    torch.set_num_threads(1)
    found = measured(Scale(short, long, prompts=args.prompts), args.rounds)
    for name, seconds in found.items():
        print(f"{name:18} {seconds:.3f} per step")
    ratios = {
        "rl_to_trl": found["rl_seconds"] / found["rl_trl_seconds"],
        "rl_to_bare_loop": found["rl_seconds"] / found["rl_bare_seconds"],
        "sft_to_bare_loop": found["sft_seconds"] / found["sft_bare_seconds"],
    }
    print(json.dumps({name: round(value, 3) for name, value in {**found, **ratios}.items()}))


if __name__ == "__main__":
    main()
