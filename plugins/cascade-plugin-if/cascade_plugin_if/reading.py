"""One answer as a reader sees it: `Reading`. What no reader sees is taken away before anything is counted.

Removed: special tokens of a chat template left at the end, control and zero-width characters, blank look-alikes
(Braille blank, Hangul filler). Line ends become `\\n`, letters and their accents are composed (NFC). Everything that
several instructions count (words, lines, prose) is worked out once and kept.

Linear in the length of the text. It does not interpret Markdown beyond fences; `markdown.py` does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import regex

from cascade_plugin_if import markdown, sentences, words
from cascade_plugin_if.sentences import Known, Spans

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|eos|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<s>",
    "<pad>",
)
# Default-ignorable and control characters; ZWJ and ZWNJ stay, they shape letters and emoji.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
_RARE = re.compile(f"[{_UNSEEN}\r\x0b\x0c\x85\u2028\u2029]")
# What may have to go in ASCII, for one quick look: control characters and the other line ends.
_ASCII_RARE = bytes(code for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n")
_FIRST_SEEN = regex.compile(rf"[^\s{_UNSEEN}]")
_LAST_SEEN = regex.compile(rf"(?r)[^\s{_UNSEEN}]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# Normalisation sorts runs of combining marks, in quadratic time: 30 marks are enough (Unicode UAX #15, stream-safe).
_MARK_RUN = regex.compile(r"(\p{M}{30})\p{M}++")
_BLANK_START = regex.compile(r"\A(?:[^\S\n]*+\n)++")
_VISIBLE = regex.compile(r"[\p{L}\p{N}\p{P}\p{S}]")


def clean(text: str) -> str:
    """The text without what no reader sees, with `\\n` as line end, composed, without white space at the end."""
    if not _is_plain(text) and _RARE.search(text):
        text = _LINE_END.sub("\n", _INVISIBLE.sub("", text))
    text = _without_end_tokens(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _MARK_RUN.sub(r"\1", text))
    return text


def _clean_part(text: str) -> str:
    """What `clean` makes of a text that was cut out of a cleaned one, perhaps without its asterisks."""
    text = _without_end_tokens(text)
    return text if text.isascii() or unicodedata.is_normalized("NFC", text) else clean(text)


def beyond_ascii(text: str) -> str:
    """The characters that are not ASCII, in order: mostly few, so that rules about single ones are quickly asked."""
    return "" if text.isascii() else "".join(_BEYOND_ASCII.findall(text))


def _is_plain(text: str) -> bool:
    """Whether there is nothing to clean in a text but end tokens; true of most English ones."""
    return text.isascii() and len(text.encode().translate(None, _ASCII_RARE)) == len(text)


def _without_end_tokens(text: str) -> str:
    end = len(text.rstrip())
    while text.endswith(END_TOKENS, 0, end):
        end -= next(len(token) for token in END_TOKENS if text.endswith(token, 0, end))
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


Value = TypeVar("Value")


class kept(Generic[Value]):
    """A property that is worked out once. That of `functools` takes a lock, which costs as much as some checks do."""

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> kept[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> kept[Value] | Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value


class Reading:
    """An answer, cleaned; `text` is what the checks look at, `is_blank` says whether there is nothing to read at all.

    Args:
        text: the answer, without its thinking.
        of: the reading of the whole answer, of which this one is a part: what both need is worked out once.
    """

    def __init__(self, text: str, of: Reading | None = None) -> None:
        whole = clean(text) if of is None else _clean_part(text)
        self._known_spans: Known = {} if of is None else of._known_spans
        self._known_words: dict[str, list[str]] = {} if of is None else of._known_words
        self._known_trigrams: dict[str, frozenset[str]] = {} if of is None else of._known_trigrams
        self._given = text
        self._whole = whole
        self.text = whole.strip()
        self.is_blank = not self.text[:1].isalnum() and _VISIBLE.search(self.text) is None

    @kept
    def beyond_ascii(self) -> str:
        """The characters of the answer that are not ASCII."""
        return beyond_ascii(self.text)

    @kept
    def exact(self) -> str:
        """The answer character for character, without what no reader sees at either end."""
        if _is_plain(self._given):
            return self.text
        last = _LAST_SEEN.search(self._given)
        if last is None:
            return ""
        text = _without_end_tokens(self._given[: last.end()])
        first = _FIRST_SEEN.search(text)
        return text[first.start() :] if first else ""

    @kept
    def words(self) -> list[str]:
        """The words of the whole answer, code included."""
        if "<" in self.text:  # a tag may go on in the next line, a word never does
            return words.words(self.text)
        return [word for line in self.text.split("\n") for word in self._words_of(line)]

    @kept
    def opening(self) -> list[str]:
        """The words of the first line that has any: often enough to see that not all words are as they must be."""
        if "<" in self.text:
            return self.words
        return next(filter(None, map(self._words_of, self.text.split("\n"))), [])

    def _words_of(self, text: str) -> list[str]:
        found = self._known_words.get(text)
        if found is None:
            found = self._known_words[text] = words.words(text)
        return found

    @kept
    def lines(self) -> list[str]:
        """The lines of the whole answer; the first keeps its indentation."""
        return _BLANK_START.sub("", self._whole).rstrip().split("\n")

    @kept
    def prose_lines(self) -> list[str]:
        """The lines outside fenced code; all of them where the whole answer is one fenced block."""
        return markdown.prose_lines(self.lines) if markdown.may_be_fenced(self.text) else self.lines

    @kept
    def prose(self) -> str:
        """`prose_lines` as one text."""
        return "\n".join(self.prose_lines)

    @kept
    def folded(self) -> str:
        """The whole answer, folded."""
        return words.fold(self.text)

    @kept
    def plain(self) -> str:
        """The whole answer without Markdown's marks, folded."""
        return words.fold(markdown.unmarked(self.text))

    @kept
    def sentence_count(self) -> int:
        """How many sentences a reader finds."""
        return sentences.count(self.prose_lines)

    @kept
    def sentences(self) -> list[str]:
        """The sentences a reader finds, each with its stop."""
        return sentences.split(self.prose_lines, self._known_spans)

    @kept
    def sentence_blocks(self) -> list[tuple[str, Spans]]:
        """Paragraphs, list items and headings as one line each, and where their sentences begin and end."""
        return list(sentences.blocks(self.prose_lines, self._known_spans))

    @kept
    def sentence_words(self) -> list[list[str]]:
        """The words of each sentence that has any: what looks like one may hold HTML tags alone."""
        return [found for sentence in self.sentences if (found := self._words_of(sentence))]

    @kept
    def folded_words(self) -> list[str]:
        """The words of the whole answer, folded."""
        return words.fold("\n".join(self.words)).split("\n") if self.words else []

    @kept
    def trigrams(self) -> frozenset[str]:
        """Every run of three characters of the answer."""
        text, found, at = self.text, [], 0
        while at < len(text):
            end = text.find("\n", at) + 1 or len(text)
            part = text[at : end + 2]  # a line, and what a run may reach of the next
            if part not in self._known_trigrams:
                self._known_trigrams[part] = frozenset(map("".join, zip(part, part[1:], part[2:], strict=False)))
            found.append(self._known_trigrams[part])
            at = end
        return frozenset().union(*found)

    @kept
    def initials(self) -> list[str]:
        """The first letter or digit of each word, small and without its accent."""
        if self.text.isascii():
            return [word[0] for word in self.folded_words]
        return [words.initial(word) for word in self.words]
