"""A demonstration as tokens and labels, the same for every trainer: the loss is on the response and its end token only.

Prompt and response are tokenized apart, as they are when the model samples, so no token straddles the two. What does not
fit is refused, never cut. This module loads no torch.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from cascade_core import rows as rowfile
from cascade_core.errors import TrainerError
from cascade_core.rows import Row
from cascade_core.template import encode, response_ids

IGNORED = -100


def example(tokenizer: Any, row: Row, context: int | None, modes: str = "switch") -> dict[str, list[int]]:
    """The tokens of one demonstration, and its labels: nothing of the prompt, all of the response and its end.

    A response that repeats what the chat template has already opened (`<think>`) goes on from there.

    Raises:
        TrainerError: a row without a response, or longer than the model reads.
    """
    if not isinstance(row.get("response"), str):
        raise TrainerError(f"demonstration {row.get('id')!r} has no response to imitate")
    prompt, prefill = encode(tokenizer, row, modes)
    response = row["response"].removeprefix(prefill)
    answer = [*response_ids(tokenizer, response), tokenizer.eos_token_id]
    if context is not None and len(prompt) + len(answer) > context:
        raise TrainerError(
            f"demonstration {row['id']!r} has {len(prompt) + len(answer)} tokens, more than the model's context of"
            f" {context}; leave it out or use a model with a longer context"
        )
    return {"input_ids": [*prompt, *answer], "labels": [IGNORED] * len(prompt) + answer}


def taken(path: Path, steps: int, per_step: int) -> list[Row]:
    """Exactly the rows that the steps of a stage take.

    Raises:
        TrainerError: there are fewer.
    """
    wanted = steps * per_step
    found = list(islice(rowfile.read(path), wanted))
    if len(found) < wanted:
        raise TrainerError(f"{path} has {len(found)} rows, and {steps} steps of {per_step} take {wanted}")
    return found
