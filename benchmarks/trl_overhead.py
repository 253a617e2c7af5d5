"""What a step of the trainer `trl` costs beside a bare torch loop that does the same work on the same model.

Both train the 0.6M-parameter model of the quickstart on one thread: sft on 80 demonstrations in micro-batches of 20, rl on
32 prompts × 8 samples of up to 18 tokens (random rewards, so nearly all samples have a gradient). Costs are CPU seconds
per step, as the difference between a longer and a shorter stage, which takes loading and set-up out. The last line is a
JSON object with the ratios.

    OMP_NUM_THREADS=1 python benchmarks/trl_overhead.py
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache

from cascade_core import rows as rowfile
from cascade_core.advantages import advantages
from cascade_core.events import Events
from cascade_core.initial import make
from cascade_core.pretrained import load_model, load_tokenizer, quiet_bars
from cascade_core.settings import InitModel, InitTokenizer, Optim, Rollout, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.trl import TrlTrainer

SHORT, LONG = 4, 20
BATCH, MICRO = 80, 20
PROMPTS, SAMPLES, LIMIT = 32, 8, 18


def reward(text: str) -> float:
    return hashlib.sha256(text.encode()).digest()[0] / 255.0


@dataclass
class Judged:
    rows: list[dict[str, Any]]
    metrics: dict[str, float]


class RandomJudge:
    """Rewards that cost nothing to find."""

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


def ours(kind: str, start: Path, steps: int) -> float:
    """CPU seconds of a whole stage of so many steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / kind
        folder.mkdir()
        stage = Stage(
            name=kind,
            kind=kind,  # type: ignore[arg-type]
            domains={"d": 1.0},
            steps=steps,
            save_every=0,
            optim=Optim(lr=3e-4),
            batch_size=BATCH,
            micro_batch=MICRO if kind == "sft" else None,
            rollout=Rollout(prompts_per_step=PROMPTS, samples_per_prompt=SAMPLES, max_response_tokens=LIMIT),
        )
        rowfile.write(folder / "prompts.jsonl", tasks(steps * (BATCH if kind == "sft" else PROMPTS)))
        job = Job(
            stage, 0, folder, start, folder / "out", folder / "prompts.jsonl", Events(folder / "e.jsonl"), RandomJudge()
        )  # type: ignore[arg-type]
        begin = time.process_time()
        TrlTrainer().train(job)
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


def bare(kind: str, start: Path) -> float:
    """CPU seconds per step of the bare loop."""
    model, tokenizer = load_model(start), load_tokenizer(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    step, size = (bare_sft, BATCH) if kind == "sft" else (bare_rl, PROMPTS)
    rows = tasks(LONG * size)
    for warm in range(SHORT):
        step(model, tokenizer, optimizer, rows[warm * size : (warm + 1) * size])
    begin = time.process_time()
    for number in range(SHORT, LONG):
        step(model, tokenizer, optimizer, rows[number * size : (number + 1) * size])
    return (time.process_time() - begin) / (LONG - SHORT)


def median(measure: Callable[[], float], times: int = 3) -> float:
    return sorted(measure() for _ in range(times))[times // 2]


def main() -> None:
    torch.set_num_threads(1)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, quiet_bars():
        start = Path(name) / "start"
        phrases = ["write ", " times: ", "yellow", "blue"]
        make(InitModel(tokenizer=InitTokenizer(phrases=phrases)), 0, start)
        ours("sft", start, 1)  # imports
        for kind in ("sft", "rl"):
            found[f"{kind}_bare_seconds"] = median(lambda kind=kind: bare(kind, start))  # type: ignore[misc]
            found[f"{kind}_seconds"] = median(
                lambda kind=kind: (ours(kind, start, LONG) - ours(kind, start, SHORT)) / (LONG - SHORT)  # type: ignore[misc]
            )
            found[f"{kind}_ratio"] = found[f"{kind}_seconds"] / found[f"{kind}_bare_seconds"]
            print(f"{kind}: {found[f'{kind}_seconds']:.3f} s per step, bare loop {found[f'{kind}_bare_seconds']:.3f} s")
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
