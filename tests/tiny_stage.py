"""One stage on a model of a few thousand weights, for the trainer's tests; and a stage that kills itself.

`run(folder, kind, place)`, in a process of its own, trains the stage and sends itself SIGKILL at `place`: `step` (in
the update of step 3), `checkpoint` (half of the second one written), `publish` (written and sealed, not yet in place),
or `never`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_core import rows as rowfile
from cascade_core.advantages import advantages
from cascade_core.events import Events
from cascade_core.initial import make
from cascade_core.settings import InitModel, InitTokenizer, Optim, Rollout, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.trl import TrlTrainer

WORDS = ["red", "blue", "say ", "<think>", "</think>"]
CONTEXT = 48


@dataclass
class Judged:
    rows: list[dict[str, Any]]
    metrics: dict[str, float]


@dataclass
class StubJudge:
    """Finished advantages from a plain function of the row; `mask` names samples that are left out."""

    reward: Callable[[dict[str, Any]], float]
    mask: Callable[[dict[str, Any]], str] = lambda row: ""
    shaping: str = "none"
    seen: list[list[dict[str, Any]]] = field(default_factory=list)
    folder: Path | None = None
    handed: list[dict[str, Any]] = field(default_factory=list)

    def hand_over(self, row: dict[str, Any]) -> None:
        self.handed.append(row)

    def judge(self, step: int, rows: Sequence[dict[str, Any]]) -> Judged:
        judged = [{**row, "masked": self.mask(row), "reward": self.reward(row)} for row in rows]
        for group in {row["group"] for row in judged}:
            mine = [row for row in judged if row["group"] == group]
            told = [None if row["masked"] else row["reward"] for row in mine]
            for row, advantage in zip(mine, advantages(told, shaping=self.shaping), strict=True):
                row["advantage"] = advantage
        self.seen.append(judged)
        if self.folder:
            rowfile.write(self.folder / "rollouts" / f"step-{step:05d}.jsonl", judged)
        return Judged(judged, {"reward_mean": sum(row["reward"] for row in judged) / len(judged)})


def digest(row: dict[str, Any]) -> float:
    """A reward that is as good as random, and depends on the response alone."""
    return hashlib.sha256(row["response"].encode()).digest()[0] / 255.0


def model(folder: Path, seed: int = 0, talkative: bool = True) -> Path:
    """A Llama of 10 thousand weights; unless it is `talkative`, every fifth token ends a response."""
    make(
        InitModel(hidden_size=16, layers=1, heads=2, context=CONTEXT, tokenizer=InitTokenizer(phrases=WORDS)),
        seed,
        folder,
    )
    if not talkative:
        path = folder / "generation_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": [1, *range(3, 24)]}))
    return folder


def tasks(count: int) -> list[dict[str, Any]]:
    """Prompts of unequal length, with a response to imitate."""
    return [
        {
            "domain": "tiny",
            "id": f"t{i}",
            "prompt": f"say {'red' if i % 2 else 'blue'}" + "!" * (i % 5),
            "response": "red" * (1 + i % 3) if i % 2 else "blue",
            "answer": None,
            "mode": "",
            "source": "",
        }
        for i in range(count)
    ]


def stage(kind: str, **changes: Any) -> Stage:
    """Six steps of four responses to each of two tasks, or of eight demonstrations."""
    settings: dict[str, Any] = {
        "name": kind,
        "kind": kind,
        "domains": "tiny",
        "steps": 6,
        "batch_size": 8,
        "save_every": 2,
        "optim": Optim(lr=1e-2),
        "rollout": Rollout(prompts_per_step=2, samples_per_prompt=4, max_response_tokens=8),
    }
    return Stage(**{**settings, **changes})


def job(
    folder: Path, settings: Stage, judge: Any = None, start: Path | None = None, rows: Any = None, seed: int = 7
) -> Job:
    """A job in `folder`, from a new model unless `start` is given."""
    folder.mkdir(parents=True, exist_ok=True)
    start = start or (folder / "start" if (folder / "start").exists() else model(folder / "start", talkative=False))
    per_step = settings.rollout.prompts_per_step if settings.kind == "rl" else settings.batch_size
    rowfile.write(folder / "prompts.jsonl", tasks(settings.steps * per_step) if rows is None else rows)
    return Job(
        settings,
        seed,
        folder,
        start,
        folder / "checkpoint",
        folder / "prompts.jsonl",
        Events(folder / "events.jsonl"),
        judge,
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(place: str) -> None:
    """Arranges for the kill."""
    from cascade_core.trainers import checkpoints
    from cascade_core.trainers.trl_stage import StageTrainer

    if place == "step":
        clip = StageTrainer._clip_grad_norm

        def clipped(self: Any, model: Any) -> Any:
            if self.state.global_step == 3:
                die()
            return clip(self, model)

        StageTrainer._clip_grad_norm = clipped
    elif place == "checkpoint":
        import torch

        save = torch.save

        def half(value: Any, target: Any, *args: Any, **more: Any) -> None:
            save(value, target, *args, **more)
            if "checkpoint-4/optimizer" in str(target):
                Path(target).write_bytes(Path(target).read_bytes()[:100])
                die()

        torch.save = half
    elif place == "publish":
        publish = checkpoints.publish
        checkpoints.publish = lambda written, folder: (
            die() if written.name == "checkpoint-4" else publish(written, folder)
        )


def run(folder: Path, kind: str, place: str) -> None:
    """Trains a stage, and ends it at `place`."""
    _arm(place)
    TrlTrainer().train(job(folder, stage(kind), StubJudge(digest, folder=folder)))
