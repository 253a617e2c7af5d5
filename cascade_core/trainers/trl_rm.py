"""Reward models with `trl.RewardTrainer`: Bradley and Terry's loss on pairs.

The loss of a pair is -log sigmoid(score of the chosen response - score of the rejected one) (Bradley and Terry, Biometrika 39,
1952), that of a step the mean over exactly `batch_size` pairs, those that come next in the rows, however it is split into
micro-batches. Both responses are read as `reward_model.tokens` says. Inside a step the pairs are sorted by length, so that little is
padded. What does not fit the model's context is refused, never cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset
from trl.trainer.reward_config import RewardConfig
from trl.trainer.reward_trainer import RewardTrainer

from cascade_core.pretrained import context_length
from cascade_core.reward_model import Text, padded
from cascade_core.rows import Row
from cascade_core.trainers import Job
from cascade_core.trainers.preference import example, ordered
from cascade_core.trainers.trl_stage import StageTrainer


class PreferenceTrainer(StageTrainer, RewardTrainer):
    """`RewardTrainer` inside a stage; what it does is TRL's."""

    def _numbers(self, logs: dict[str, float]) -> dict[str, Any]:
        told = {"accuracy": logs["accuracy"], "margin": logs["margin"], "score_mean": logs["mean_reward"]}
        return {**{name: float(value) for name, value in told.items()}, **super()._numbers(logs)}


class _Batch:
    """Examples to a model's inputs: all chosen responses, then all rejected ones. TRL's own knows no types of tokens."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        sides = ("chosen", "rejected")
        return padded([Text(one[f"{side}_ids"], one[f"{side}_types"]) for side in sides for one in examples], self._pad)


def build(job: Job, rows: Sequence[Row], model: Any, tokenizer: Any, flags: Mapping[str, Any]) -> PreferenceTrainer:
    """The trainer of one reward_model stage.

    Raises:
        TrainerError: a row without two responses, or longer than the model reads.
    """
    examples = ordered([example(tokenizer, row, context_length(model)) for row in rows], job.stage.batch_size)
    told = [
        {f"{side}_{name}": value for side in one for name, value in one[side]._asdict().items()} for one in examples
    ]
    args = RewardConfig(output_dir=str(job.folder / "trainer"), seed=job.seed % 2**32, **flags)
    trainer = PreferenceTrainer(
        model=model,
        args=args,
        data_collator=_Batch(int(tokenizer.pad_token_id)),
        train_dataset=Dataset.from_list(told),
        processing_class=tokenizer,
    )
    trainer.begin(job)
    return trainer
