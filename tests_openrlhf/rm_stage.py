"""A reward_model stage on a model of some thousand weights, none of which moves: `python rm_stage.py FOLDER PYTHON`."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from sft_stage import model

from cascade_core import rows as rowfile
from cascade_core.events import Events
from cascade_core.settings import Engine, Optim, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.openrlhf import OpenRlhfTrainer

STEPS, BATCH, MICRO = 6, 8, 4


def pairs() -> list[dict[str, Any]]:
    """Texts of unequal length, some of which a join of prompt and response would tokenize otherwise; fewer than a hundred."""
    words, draw = ["red", " red", "blue", "\nblue", "x y z", " 42", "<17>", "end \n"], random.Random(5)
    return [
        {
            "domain": "tiny",
            "id": f"p{number}",
            "prompt": f"{draw.choice('ab')}{number}" + "!" * draw.randrange(7),
            "chosen": draw.choice(words) * (1 + draw.randrange(3)),
            "rejected": draw.choice(words) * (1 + draw.randrange(3)) + "?",
        }
        for number in range(STEPS * BATCH)
    ]


def attentive(folder: Path) -> Path:
    """A model whose scores, read at one and the same token, depend much on what came before it, so that pairs differ in their loss."""
    import torch
    from transformers import AutoModelForCausalLM

    made: Any = AutoModelForCausalLM.from_pretrained(model(folder))
    with torch.no_grad():
        for layer in made.model.layers:
            layer.self_attn.v_proj.weight.mul_(16)
            layer.self_attn.o_proj.weight.mul_(16)
        made.model.norm.weight.mul_(16)
    made.save_pretrained(folder)
    return folder


def job(folder: Path) -> Job:
    """The stage in `folder`, whose model and pairs are made."""
    start = attentive(folder / "start")
    rowfile.write(folder / "prompts.jsonl", pairs())
    settings = {"name": "rm", "kind": "reward_model", "domains": "tiny", "steps": STEPS, "batch_size": BATCH}
    stage = Stage.model_validate({**settings, "micro_batch": MICRO, "save_every": 0, "optim": Optim(lr=1e-30)})
    events = Events(folder / "events.jsonl")
    return Job(stage, 11, folder, start, folder / "checkpoint", folder / "prompts.jsonl", events)


if __name__ == "__main__":
    trainer = OpenRlhfTrainer()
    trainer.engine = Engine(python=sys.argv[2], cpu=True, stall_seconds=300)
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    trainer.train(job(place))
