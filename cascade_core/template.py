"""A row to what the model reads, for every trainer and sampler: through the tokenizer's chat template where it has one, as plain text otherwise.

Some chat templates put the beginning of the assistant's turn into the prompt (Qwen3 and R1 open `<think>` there):
that part is the *prefill*, which belongs to the response when it is judged, and is never generated. Templates are the model's own; none
is written here. How a row's `mode` is said to the model is `model.modes` of the spec:

- `switch`: to templates that know it, as their switch `enable_thinking`;
- `flags`: ` /think` or ` /no_think` ends the user's turns (`messages`), and the model begins its turn itself (arXiv 2512.13607, section 3.1.2);
- `prefill`: without thinking the turn begins with an empty thought, `<think></think>` (arXiv 2603.19220);
- `none`: not at all; the mode is known to those who judge.

What a turn says stays text, whatever it is (`control_tokens.py`). Only the thought at the beginning of an assistant's turn is the turn's own: templates
look for it, to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cascade_core.control_tokens import Controls, controls, unused
from cascade_core.domain import Message, Response
from cascade_core.errors import TrainerError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_OPEN, _CLOSE = "<think>", "</think>"
EMPTY_THOUGHT = _OPEN + _CLOSE
_FLAG = re.compile(r"(?: /(?:no_)?think)+\Z")
_THOUGHT = re.compile(r"(\s*<think>)(.*?)(</think>)", re.DOTALL)


class Prompt(NamedTuple):
    """What the model reads: `text` is for people, `ids` are its tokens; `prefill` is the end of the text that its turn begins with."""

    text: str
    prefill: str
    ids: list[int]


def read(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], modes: str = "switch") -> Prompt:
    """What the model reads of a row.

    Without a chat template the prompt stands as it is; the turns of a conversation are joined by newlines.

    Raises:
        TrainerError: the template refuses the row, or nothing is left to read; names the task.
    """
    turns, mark = _safe(tokenizer, row, messages(row, modes))
    text, prefill = _asked(tokenizer, row, turns, modes)
    ids = _encoded(tokenizer, row, text, mark, add_special_tokens=tokenizer.chat_template is None)
    if not ids:
        raise TrainerError(f"task {row.get('id')!r} has an empty prompt")
    return Prompt(text.replace(mark, ""), prefill, ids)


def encode(tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], modes: str = "switch") -> tuple[list[int], str]:
    """The tokens that the model reads, and the prefill; as `read`, and raises what it raises."""
    _, prefill, ids = read(tokenizer, row, modes)
    return ids, prefill


def continuation(
    tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], said: str, modes: str = "switch"
) -> Prompt:
    """What follows the model's turn in a conversation when the environment says `said`.

    It begins behind the last word of the model's turn, with the template's own end of a turn, and ends where the model's next turn
    begins. What was said before does not matter, and stays as it was read: templates that drop old thoughts are asked about a turn without one.

    Raises:
        TrainerError: the template refuses the conversation, or changes what the model said.
    """
    asked = messages(row, "none")
    anything = unused(
        [str(tokenizer.chat_template or ""), said, *(turn["content"] for turn in asked)]
    )  # stands for what the model said
    whole = [*asked, Message(role="assistant", content=anything), Message(role="user", content=said)]
    turns, mark = _safe(tokenizer, row, messages({**row, "prompt": whole}, modes))
    rendered, prefill = _asked(tokenizer, row, turns, modes)
    _, found, text = rendered.partition(anything)
    if not found:
        raise TrainerError(
            f"the model's chat template cannot go on with a conversation, that of task {row.get('id')!r}"
        )
    text = text.removeprefix(mark)
    return Prompt(text.replace(mark, ""), prefill, _encoded(tokenizer, row, text, mark))


def response_ids(tokenizer: PreTrainedTokenizerBase, response: str) -> list[int]:
    """The tokens of a response to imitate: tags of thoughts and tools are what the model itself writes, special tokens are text."""
    known, mark = controls(tokenizer), unused([response])
    return known.encode(tokenizer, known.cut(response, mark, keep=True), mark)


def messages(row: Mapping[str, Any], modes: str) -> list[Message]:
    """The turns of a row's prompt, a text as the user's, with the flags of its mode where modes are said by flags.

    The last user turn ends with the row's flag and earlier ones with ` /no_think`, instead of the flags that were there; earlier turns
    of the assistant keep their final answer alone. A row without a mode stays as it is.

    Raises:
        TrainerError: a turn without a role or a text.
    """
    prompt, mode = row["prompt"], row.get("mode")
    turns: list[Message] = [Message(role="user", content=prompt)] if isinstance(prompt, str) else list(prompt)
    for number, turn in enumerate(turns):
        if not isinstance(turn.get("content"), str) or not re.fullmatch(r"\w+", str(turn.get("role"))):
            raise TrainerError(
                f"task {row.get('id')!r}: turn {number + 1} of its prompt must have a role, one word, and a content, a text"
            )
    users = [number for number, turn in enumerate(turns) if turn["role"] == "user"]
    if modes != "flags" or not mode or not users:
        return turns
    last = users[-1]
    return [_flagged(turn, mode if number == last else "no_think", number < last) for number, turn in enumerate(turns)]


def _flagged(turn: Message, mode: str, is_past: bool) -> Message:
    content = turn["content"]
    if turn["role"] == "user":
        return {**turn, "content": f"{_FLAG.sub('', content)} /{mode}"}
    if turn["role"] == "assistant" and is_past:
        return {**turn, "content": (Response(content).answer or "").lstrip()}
    return turn


def _safe(
    tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Sequence[Message]
) -> tuple[list[Message], str]:
    """The turns with every control token that they write out cut by a mark, and the mark."""
    known = controls(tokenizer)
    mark = unused([str(tokenizer.chat_template or ""), *(turn["content"] for turn in turns)])
    try:
        cut: list[Message] = [{**turn, "content": _cut(known, turn, mark)} for turn in turns]
    except TrainerError as cause:
        raise TrainerError(f"task {row.get('id')!r}: {cause}") from cause
    if not any(known.straddles(turn["content"]) for turn in cut):
        return cut, mark
    # Half a token at the end of a turn is harmless, unless the template's own text makes a whole one of it.
    apart: list[Message] = [{**turn, "content": f"{mark}{turn['content']}{mark}"} for turn in cut]
    one, other = (known.count(_apply(tokenizer, row, each, add_generation_prompt=True)) for each in (cut, apart))
    return (cut if one == other else apart), mark


def _cut(known: Controls, turn: Message, mark: str) -> str:
    content = turn["content"]
    thought = _THOUGHT.match(content) if turn["role"] == "assistant" else None
    if thought is None:
        return known.cut(content, mark)
    opening, inside, close = thought.groups()
    return f"{opening}{known.cut(inside, mark)}{close}{known.cut(content[thought.end() :], mark)}"


def _asked(
    tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Sequence[Message], modes: str
) -> tuple[str, str]:
    """Turns up to where the model's own begins, and what of that is prefill."""
    mode = row.get("mode") or ""
    switch = {"enable_thinking": mode == "think"} if mode and modes == "switch" else {}
    asked = _apply(tokenizer, row, turns, add_generation_prompt=True, **switch)
    opening = ""
    if tokenizer.chat_template is not None:
        opening = asked.removeprefix(_apply(tokenizer, row, turns, add_generation_prompt=False, **switch))
        if opening == asked:
            opening = asked[asked.rfind(turns[-1]["content"]) + len(turns[-1]["content"]) :]
    prefill = opening[opening.find(_OPEN) :] if _OPEN in opening else ""
    if not mode or modes not in ("flags", "prefill"):
        return asked, prefill
    if (
        modes == "flags" or mode == "no_think" or _CLOSE in prefill
    ):  # what the template opens by itself says the other thing
        asked, prefill = asked.removesuffix(prefill), ""
    if modes == "prefill" and mode == "no_think":
        asked, prefill = asked + EMPTY_THOUGHT, EMPTY_THOUGHT
    return asked, prefill


def _encoded(
    tokenizer: PreTrainedTokenizerBase,
    row: Mapping[str, Any],
    text: str,
    mark: str,
    *,
    add_special_tokens: bool = False,
) -> list[int]:
    """The tokens; a chat template brings its own special tokens."""
    try:
        return controls(tokenizer).encode(tokenizer, text, mark, add_special_tokens=add_special_tokens)
    except TrainerError as cause:
        raise TrainerError(f"task {row.get('id')!r}: {cause}") from cause


def _apply(
    tokenizer: PreTrainedTokenizerBase, row: Mapping[str, Any], turns: Sequence[Message], **switches: Any
) -> str:
    if tokenizer.chat_template is None:
        return "\n".join(turn["content"] for turn in turns)
    from jinja2 import TemplateError

    plain: list[dict[str, str]] = [{**turn} for turn in turns]  # type: ignore[dict-item]
    try:
        return str(tokenizer.apply_chat_template(plain, tokenize=False, **switches))
    except (TemplateError, ValueError, TypeError, KeyError) as cause:
        raise TrainerError(f"the model's chat template refuses task {row.get('id')!r}: {cause}") from cause
