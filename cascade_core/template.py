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
_ANYTHING = (
    "cascade-said-something-here"  # stands for what the model said; templates trim, so it has no space around it
)


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
    return _asked(tokenizer, row, turns)


def _asked(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Any) -> tuple[str, str]:
    """Turns up to where the model's own begins, and what of that is prefill."""
    switch = {"enable_thinking": row["mode"] == "think"} if row.get("mode") else {}
    asked = _apply(tokenizer, row, turns, add_generation_prompt=True, **switch)
    opening = asked.removeprefix(_apply(tokenizer, row, turns, add_generation_prompt=False, **switch))
    if opening == asked:
        opening = asked[asked.rfind(turns[-1]["content"]) + len(turns[-1]["content"]) :]
    return asked, opening[opening.find(_OPEN) :] if _OPEN in opening else ""


def continuation(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], said: str) -> tuple[str, str]:
    """What follows the model's turn in a conversation when the environment says `said`: the text, and what of it is prefill.

    The text begins behind the last word of the model's turn, with the template's own end of a turn, and ends where the model's next turn
    begins. What was said before does not matter: templates that drop old thoughts are asked about a turn without one.

    Raises:
        TrainerError: the template refuses the conversation, or changes what the model said.
    """
    if tokenizer.chat_template is None:
        return f"\n{said}", ""
    prompt = row["prompt"]
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    turns = [*asked, {"role": "assistant", "content": _ANYTHING}, {"role": "user", "content": said}]
    whole, prefill = _asked(tokenizer, row, turns)
    _, found, text = whole.partition(_ANYTHING)
    if not found:
        raise TrainerError(
            f"the model's chat template cannot go on with a conversation, that of task {row.get('id')!r}"
        )
    return text, prefill


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
