"""Pairs as every trainer of reward models is given them: tokens of both responses, in the order of training.

What does not fit the model's context is refused, never cut. This module loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_core.errors import TrainerError
from cascade_core.reward_model import Text, tokens
from cascade_core.rows import Row

Example = dict[str, Text]


def example(tokenizer: Any, row: Row, context: int | None) -> Example:
    """What is read of a pair, `chosen` and `rejected`.

    Raises:
        TrainerError: a row without two responses, or one of them longer than the model reads.
    """
    made: Example = {}
    for side in ("chosen", "rejected"):
        if not isinstance(row.get(side), str):
            raise TrainerError(f"pair {row.get('id')!r} has no {side} response")
        made[side] = tokens(tokenizer, row, row[side])
        ids = made[side].ids
        if context is not None and len(ids) > context:
            raise TrainerError(
                f"the {side} response of pair {row['id']!r} makes {len(ids)} tokens with its prompt, more than the model's context of"
                f" {context}; leave it out or use a model with a longer context"
            )
    return made


def longest(made: Example) -> int:
    """Tokens of the longer side of a pair."""
    return max(len(text.ids) for text in made.values())


def ordered(examples: Sequence[Example], per_step: int) -> list[Example]:
    """The examples step by step, sorted by length inside each."""
    steps = (examples[start : start + per_step] for start in range(0, len(examples), per_step))
    return [one for step in steps for one in sorted(step, key=longest)]
