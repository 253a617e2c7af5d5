"""A row to what the model reads: through the tokenizer's chat template where it has one, as plain text otherwise.

Some chat templates put the beginning of the assistant's turn into the prompt (Qwen3 and R1 open `<think>` there):
that part is the *prefill*, which belongs to the response when it is judged, and is never generated. A row's `mode`
reaches templates that know the switch `enable_thinking`. Templates are the model's own; none is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cascade_core.errors import TrainerError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_OPEN = "<think>"


def render(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any]) -> tuple[str, str]:
    """The text that the model reads, and what of it is prefill (its end; `""` without).

    Without a chat template the prompt stands as it is; the turns of a conversation are joined by newlines.

    Raises:
        TrainerError: the template refuses the row; names it.
    """
    prompt = row["prompt"]
    if tokenizer.chat_template is None:
        return prompt if isinstance(prompt, str) else "\n".join(turn["content"] for turn in prompt), ""
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    switch = {"enable_thinking": row["mode"] == "think"} if row.get("mode") else {}
    asked = _apply(tokenizer, row, turns, add_generation_prompt=True, **switch)
    opening = asked.removeprefix(_apply(tokenizer, row, turns, add_generation_prompt=False, **switch))
    if opening == asked:
        opening = asked[asked.rfind(turns[-1]["content"]) + len(turns[-1]["content"]) :]
    return asked, opening[opening.find(_OPEN) :] if _OPEN in opening else ""


def encode(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any]) -> tuple[list[int], str]:
    """The tokens that the model reads, and the prefill; a chat template brings its own special tokens.

    Raises:
        TrainerError: the template refuses the row, or nothing is left to read.
    """
    text, prefill = render(tokenizer, row)
    ids = list(tokenizer(text, add_special_tokens=tokenizer.chat_template is None)["input_ids"])
    if not ids:
        raise TrainerError(f"task {row.get('id')!r} has an empty prompt")
    return ids, prefill


def _apply(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Any, **switches: Any) -> str:
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, **switches))
    except (TemplateError, ValueError, TypeError, KeyError) as cause:
        raise TrainerError(f"the model's chat template refuses task {row.get('id')!r}: {cause}") from cause
