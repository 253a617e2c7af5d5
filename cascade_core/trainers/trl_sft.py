"""Supervised fine-tuning with `trl.SFTTrainer`: the loss on the response and its end token only.

Prompt and response are tokenized apart, as they are when the model samples, so no token straddles the two. A step is
exactly `batch_size` demonstrations, those that come next in the rows; its loss is the mean over their response tokens,
however it is split into micro-batches. Inside a step the demonstrations are sorted by length, so that micro-batches are
of like length and little is padded. What does not fit the model's context is refused, never cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from cascade_core.pretrained import context_length
from cascade_core.rows import Row
from cascade_core.trainers import Job
from cascade_core.trainers.demonstration import example
from cascade_core.trainers.trl_stage import StageTrainer


class DemonstrationTrainer(StageTrainer, SFTTrainer):
    """`SFTTrainer` inside a stage; what it does is TRL's."""


def build(job: Job, rows: Sequence[Row], model: Any, tokenizer: Any, flags: Mapping[str, Any]) -> DemonstrationTrainer:
    """The trainer of one sft stage.

    Raises:
        TrainerError: a row without a response, or longer than the model reads.
    """
    context = context_length(model)
    examples = [example(tokenizer, row, context, job.modes) for row in rows]
    steps = (examples[start : start + job.stage.batch_size] for start in range(0, len(rows), job.stage.batch_size))
    data = Dataset.from_list([one for step in steps for one in sorted(step, key=lambda one: len(one["input_ids"]))])
    args = SFTConfig(output_dir=str(job.folder / "trainer"), seed=job.seed % 2**32, **flags)
    trainer = DemonstrationTrainer(model=model, args=args, train_dataset=data, processing_class=tokenizer)
    trainer.begin(job)
    return trainer
