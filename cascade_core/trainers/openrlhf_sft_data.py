"""Demonstrations as OpenRLHF's `train_sft` reads them: tokens of ours, by way of a tokenizer that cannot change them.

`train_sft` takes text. It joins prompt and response before it tokenizes them, adds a space before the end token, strips line ends,
and knows no chat template but in its own way: a token could straddle prompt and response, and a stage would not mean what it means for
other trainers. So it is given words for tokens (`openrlhf_words.py`): what it tokenizes are then exactly the tokens of
`demonstration.py`, prompt and response apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cascade_core.errors import TrainerError
from cascade_core.rows import Row
from cascade_core.trainers import openrlhf_words
from cascade_core.trainers.demonstration import IGNORED, example
from cascade_core.trainers.openrlhf_args import SPARE
from cascade_core.trainers.openrlhf_words import words


def write(
    path: Path,
    tokenizer: Any,
    rows: Sequence[Row],
    per_step: int,
    seed: int,
    limits: tuple[int | None, int],
    modes: str = "switch",
) -> None:
    """Writes the demonstrations, in the order that OpenRLHF's shuffle with `train.seed` undoes; the same again is left as it is.

    Inside a step they are sorted by length, so that micro-batches are of like length and little is padded.

    Args:
        limits: the model's context in tokens, and `data.max_len`.
        modes: how a row's mode is said to the model.

    Raises:
        TrainerError: a demonstration that cannot be used, or that OpenRLHF would cut or leave out.
    """
    context, most = limits
    examples = [_fitting(example(tokenizer, row, context, modes), row, most) for row in rows]
    steps = (examples[start : start + per_step] for start in range(0, len(rows), per_step))
    ordered = [one for step in steps for one in sorted(step, key=lambda one: len(one["input_ids"]))]
    openrlhf_words.write(path, [_told(one) for one in ordered], seed)


def _fitting(made: dict[str, list[int]], row: Row, most: int) -> dict[str, list[int]]:
    prompt, length = made["labels"].count(IGNORED), len(made["input_ids"])
    if length > most or prompt + SPARE > most:
        raise TrainerError(
            f"demonstration {row['id']!r} has {length} tokens, {prompt} of them its prompt, and data.max_len is {most}; raise"
            " trainer_args.data.max_len, or leave it out"
        )
    return made


def _told(made: dict[str, list[int]]) -> dict[str, str]:
    prompt = made["labels"].count(IGNORED)
    tokens = made["input_ids"]
    return {"prompt": words(tokens[:prompt]), "response": " " + words(tokens[prompt:])}
