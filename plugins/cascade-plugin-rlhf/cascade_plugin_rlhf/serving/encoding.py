r"""A prompt and a response as the tokens that a reward model was trained on, and what of them is cut.

    chat    the tokenizer's own chat template, the response as the assistant's turn; special tokens are the template's
    pair    two texts, as the tokenizer writes pairs (`[CLS] prompt [SEP] response [SEP]`); turns of a conversation are lines
    plain   prompt, response and the end-of-text token, one after another

`auto` is the first of them that the tokenizer can do. A value head of OpenRLHF was trained on texts without line ends at the end and with
an end-of-text token there, put behind a space where it was missing (`datasets/reward_dataset.py`); they get both.

**Too long** is cut from the left, since a score is read at the end and the response is what is judged: a text keeps its first token where that is the
tokenizer's beginning of text, and its end; a pair loses the beginning of its prompt, and of its response only where that alone is too
long. What was cut is told by item. How prompts and responses become texts is the core's (`cascade_core/reward_model.py`), the same for those who train such a model
and measure it: words in them that look like special tokens are broken by a space, since they are text and end nobody's turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import ResourceError
from cascade_core.reward_model import lines, plain, sound, turns
from cascade_plugin_rlhf.serving.model import Encoded

TEMPLATES = ("auto", "chat", "pair", "plain")
_NO_LIMIT = 1_000_000
"""A tokenizer without a limit says a number beyond any."""


class Unreadable(Exception):
    """An item that has no tokens; the message says why."""


class Encoder:
    """Turns items into tokens; one thread at a time.

    Args:
        tokenizer: the model's.
        context: the longest sequence that the model reads, `None` where nothing says it.
        most: the longest that is wanted; 0 for no wish.
        template: one of `TEMPLATES`.
        ends: whether texts end as a value head of OpenRLHF wants it.

    Raises:
        ResourceError: the tokenizer cannot do the template.
    """

    def __init__(self, tokenizer: Any, context: int | None, most: int = 0, template: str = "auto", ends: bool = False):
        self._tokenizer, self._ends = tokenizer, ends
        limits = [limit for limit in (context, most, tokenizer.model_max_length) if limit and limit < _NO_LIMIT]
        self.limit = int(min(limits)) if limits else _NO_LIMIT
        self._wants_types = "token_type_ids" in tokenizer.model_input_names
        able = {
            "chat": bool(tokenizer.chat_template),
            "pair": tokenizer.sep_token_id is not None and not ends,
            "plain": True,
        }
        self.template = next(name for name in able if able[name]) if template == "auto" else template
        if not able.get(self.template):
            raise ResourceError(
                f"the tokenizer cannot do template {template!r} (it can: {', '.join(name for name in able if able[name])})"
            )
        self._plain = plain(tokenizer)

    def item(self, prompt: str | Sequence[Message], response: str) -> Encoded:
        """The tokens of a prompt with its response.

        Raises:
            Unreadable: the template refuses the conversation, or nothing is left of it.
        """
        if self.template == "pair":
            return self._pair(lines(prompt, self._plain), self._plain(response))
        if self.template == "plain":
            return self.text(lines(prompt, self._plain) + self._plain(response) + self._end())
        said = turns(prompt, response, self._plain)
        try:
            whole = str(self._tokenizer.apply_chat_template(said, tokenize=False))
        except Exception as cause:
            why = " ".join(str(cause).split())[:200]
            raise Unreadable(f"the chat template refuses the conversation: {why}") from cause
        if self._ends:
            whole = whole.rstrip("\n")
            whole += "" if whole.endswith(self._end()) else f" {self._end()}"
        return self.text(whole)

    def text(self, whole: str) -> Encoded:
        """The tokens of a text that holds its special tokens already.

        Raises:
            Unreadable: there are none.
        """
        ids = self._tokenizer(sound(whole), add_special_tokens=False, verbose=False)["input_ids"]
        if not ids:
            raise Unreadable("there is nothing to score: the text has no tokens")
        kept, first = ids, self._tokenizer.bos_token_id
        if len(ids) > self.limit:
            head = ids[:1] if first is not None and ids[0] == first and self.limit > 1 else []
            kept = [*head, *ids[len(ids) - self.limit + len(head) :]]
        return Encoded(kept, [0] * len(kept) if self._wants_types else None, len(ids), len(kept) < len(ids))

    def _pair(self, prompt: str, response: str) -> Encoded:
        whole = self._tokenizer(prompt, response, verbose=False)
        tokens = len(whole["input_ids"])
        room = self.limit - self._tokenizer.num_special_tokens_to_add(pair=True)
        if tokens > self.limit and room < 1:
            raise Unreadable(f"{self.limit} tokens leave no room for a response")
        while len(whole["input_ids"]) > self.limit:
            answer, asked = self._offsets(response), self._offsets(prompt)
            ends = _tail(response, answer, room), _tail(prompt, asked, max(0, room - len(answer)))
            whole = self._tokenizer(ends[1], ends[0], verbose=False)
            room -= max(
                1, len(whole["input_ids"]) - self.limit
            )  # what is left of a word may be more tokens than before
        return Encoded(whole["input_ids"], whole.get("token_type_ids"), tokens, tokens > self.limit)

    def _offsets(self, text: str) -> Sequence[tuple[int, int]]:
        made = self._tokenizer(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
        return [(int(begin), int(end)) for begin, end in made["offset_mapping"]]

    def _end(self) -> str:
        return str(self._tokenizer.eos_token or "")


def _tail(text: str, offsets: Sequence[tuple[int, int]], count: int) -> str:
    """The end of a text, at most so many tokens long, from the beginning of a character."""
    if count >= len(offsets):
        return text
    first = len(offsets) - max(0, count)
    while 0 < first < len(offsets) and offsets[first][0] < offsets[first - 1][1]:
        first += 1
    return text[offsets[first][0] :] if first < len(offsets) else ""
