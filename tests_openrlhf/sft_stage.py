"""An sft stage on a model of some thousand weights, in a process of its own: `python sft_stage.py FOLDER PYTHON LR`."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from cascade_core import rows as rowfile
from cascade_core.events import Events
from cascade_core.initial import make
from cascade_core.settings import Engine, InitModel, InitTokenizer, Optim, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.openrlhf import OpenRlhfTrainer

STEPS, BATCH, MICRO = 24, 8, 4
PHRASES = ["(user", "(assistant", ") ", ") red", "red", " red", "blue"]
"""`) red` would straddle a prompt and its response, were they tokenized together."""
TEMPLATE = (
    "{% for turn in messages %}({{ turn.role }}) {{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}(assistant) {% endif %}"
)


def model(folder: Path) -> Path:
    """A model whose opinions are strong, so that demonstrations differ in their loss, with a chat template."""
    import torch
    from transformers import AutoModelForCausalLM

    made = InitModel(hidden_size=64, layers=2, heads=2, context=64, tokenizer=InitTokenizer(phrases=PHRASES))
    make(made, 3, folder)
    found: Any = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        found.get_input_embeddings().weight.mul_(8)
    found.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def demonstrations() -> list[dict[str, Any]]:
    """Prompts and responses of unequal length; some responses begin with what a prompt's end would be joined with."""
    words, draw = ["red", " red", "blue", "\nblue", "x y z", " 42", "<17>", "end \n"], random.Random(3)
    return [
        {
            "domain": "tiny",
            "id": f"d{number}",
            "prompt": f"{draw.choice('ab')}{number}" + "!" * draw.randrange(7),
            # A few repeat themselves, the more the later: no two steps have the same loss.
            "response": draw.choice(words) * (1 + draw.randrange(4)) + "red" * draw.randrange(1 + number // BATCH % 9),
        }
        for number in range(STEPS * BATCH)
    ]


def job(folder: Path, lr: float) -> Job:
    """The stage in `folder`, whose model and demonstrations are made unless they are there."""
    if not (folder / "prompts.jsonl").exists():
        model(folder / "start")
        rowfile.write(folder / "prompts.jsonl", demonstrations())
    stage = Stage.model_validate(
        {
            "name": "sft",
            "kind": "sft",
            "domains": "tiny",
            "steps": STEPS,
            "batch_size": BATCH,
            "micro_batch": MICRO,
            "save_every": 4,
            "optim": Optim(lr=lr, warmup_steps=2, schedule="linear"),
        }
    )
    events = Events(folder / "events.jsonl")
    return Job(stage, 11, folder, folder / "start", folder / "checkpoint", folder / "prompts.jsonl", events)


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The stage's events of a kind."""
    told = map(json.loads, (folder / "events.jsonl").read_text("utf-8").splitlines())
    return [event for event in told if event["kind"] == kind]


if __name__ == "__main__":
    trainer = OpenRlhfTrainer()
    trainer.engine = Engine(python=sys.argv[2], cpu=True, stall_seconds=300)
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    trainer.train(job(place, float(sys.argv[3])))
