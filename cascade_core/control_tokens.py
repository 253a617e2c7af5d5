"""Text that means text: what a prompt or a turn says never becomes a control token of the model.

Control tokens are those that a tokenizer marks as special, `<think>` and `</think>`, and whatever other added token the chat
template writes (`<tool_call>`). Where one is written out in a text, the text is cut behind the token's first character, and the pieces are
tokenized apart: the model reads the very same characters, as text. A mark, a character that stands nowhere else, carries the cut
through the chat template. Text without such a token is tokenized as ever, in one piece.

    <|im_end|>  →  "<" + "|im_end|>"

The template's own control tokens are not touched, nor is a tag that is no token of the tokenizer: that is text already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cascade_core.errors import TrainerError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TAGS = ("<think>", "</think>")
_MARKS = range(0xE000, 0xF900)  # characters for private use

_KNOWN: WeakKeyDictionary[Any, tuple[Any, Controls]] = WeakKeyDictionary()


class Controls:
    """The control tokens of a tokenizer with its chat template."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        template = str(tokenizer.chat_template or "")
        added = {str(token): bool(token.special) for token in tokenizer.added_tokens_decoder.values()}
        special = {text for text, is_special in added.items() if is_special} | set(tokenizer.all_special_tokens)
        written = {text for text in added if text in TAGS or _is_written(text, template)}
        self.texts = sorted(special | written, key=lambda text: (-len(text), text))
        strict = [text for text in self.texts if text in special and text not in TAGS]
        vocabulary = tokenizer.get_vocab()
        self.ids = {vocabulary[text] for text in self.texts if text in vocabulary}
        self.ids.discard(tokenizer.unk_token_id)  # what any character may become
        self._all, self._strict = _pattern(self.texts), _pattern(strict)

    def cut(self, text: str, mark: str, *, keep: bool = False) -> str:
        """The text with `mark` in every control token that it writes out.

        Args:
            keep: leave the tags of thoughts and tools, which a model writes itself.

        Raises:
            TrainerError: a control token of one character, which cannot be cut.
        """
        pattern = self._strict if keep else self._all
        before = ""
        while pattern is not None and text != before:  # again, as tokens may overlap
            before = text
            text = pattern.sub(lambda found: _halves(found[0], mark), text)
        return text

    def count(self, text: str) -> Counter[str]:
        """The control tokens that a text writes out."""
        return Counter(self._all.findall(text)) if self._all is not None else Counter()

    def straddles(self, text: str) -> bool:
        """Whether the text's ends could be part of a control token, together with what a template puts beside them."""
        return any(
            text in token
            or any(text.endswith(token[:size]) or text.startswith(token[-size:]) for size in range(1, len(token)))
            for token in self.texts
        )

    def encode(
        self, tokenizer: PreTrainedTokenizerBase, text: str, mark: str, *, add_special_tokens: bool = False
    ) -> list[int]:
        """The tokens of a text with marks; the pieces between them are tokenized apart.

        Raises:
            TrainerError: the tokenizer makes a control token of a piece that does not write one out.
        """
        first, *rest = text.split(mark)
        plain = _ids(tokenizer, first)
        ids = [*plain, *(number for piece in rest for number in _ids(tokenizer, piece))]
        allowed = sum((self.count(piece) for piece in (first, *rest)), Counter())
        extra = sum(number in self.ids for number in ids) - allowed.total()
        if extra > 0:
            raise TrainerError("the model's tokenizer makes special tokens of a text that does not write them out")
        if not add_special_tokens:
            return ids
        whole = _ids(tokenizer, first, add_special_tokens=True)
        if not rest:
            return whole
        size = len(plain)
        start = next((at for at in range(len(whole) - size + 1) if whole[at : at + size] == plain), 0)
        return [*whole[:start], *ids, *whole[start + size :]]


def controls(tokenizer: PreTrainedTokenizerBase) -> Controls:
    """The control tokens of a tokenizer, looked up once for each chat template that it has."""
    known = _KNOWN.get(tokenizer)
    if known is None or known[0] != tokenizer.chat_template:
        known = _KNOWN[tokenizer] = (tokenizer.chat_template, Controls(tokenizer))
    return known[1]


def unused(texts: Iterable[str]) -> str:
    """A character that stands in none of the texts.

    Raises:
        TrainerError: they hold every character for private use.
    """
    seen = set().union(*texts)
    for number in _MARKS:
        if chr(number) not in seen:
            return chr(number)
    raise TrainerError("a prompt holds every character for private use; leave some of them out")


def _is_written(token: str, template: str) -> bool:
    return bool(token.strip()) and len(token) > 1 and token in template


def _ids(tokenizer: PreTrainedTokenizerBase, text: str, *, add_special_tokens: bool = False) -> list[int]:
    return (
        list(tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"]) if text or add_special_tokens else []
    )


def _halves(token: str, mark: str) -> str:
    if len(token) < 2:
        raise TrainerError(f"a text holds {token!r}, which is a special token of the model; leave it out")
    return f"{token[0]}{mark}{token[1:]}"


def _pattern(texts: Sequence[str]) -> re.Pattern[str] | None:
    found = [re.escape(text) for text in texts if text]
    return re.compile("|".join(found)) if found else None
