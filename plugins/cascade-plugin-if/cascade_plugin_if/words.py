"""Words as a reader counts them.

A word is a run of letters, digits and their marks. Inside a word may stand: an apostrophe (`don't`), a single hyphen
(`state-of-the-art`), a dot without a space (`e.g.`, `node.js`, `3.5`), an underscore, `&` or `@`; between digits also
`,` `:` `/` and an en dash, so that a number, a time or a date is one word. A web address is one word. Dashes, bullets,
Markdown marks, ticked boxes, common HTML tags, emoji, emoticons and the numbers of an ordered list are no words. Each Chinese or Japanese character is a word,
as word processors count; Thai, Lao, Khmer and Burmese, which need a dictionary, count a run between spaces as one.

Everything here takes linear time: no pattern can be matched in two ways. A text of ASCII alone is read by a pattern of
the standard library, eight times as fast, that finds the same words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Any

import regex

IDEOGRAPH = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_MARKS = r"[\p{M}\u200c\u200d]*+"
_PART = rf"(?:[A-Za-z0-9]++{_MARKS}|(?![{IDEOGRAPH}])[\p{{L}}\p{{N}}]{_MARKS})++"
_START = rf"(?![{IDEOGRAPH}])[\p{{L}}\p{{N}}]"
_JOINER = (
    r"(?:['’ʼ‘＇´&@_]"
    r"|[-‐‑](?![-‐‑])"
    r"|\.(?!\p{Lu}\p{Ll})"
    r"|(?<=\p{L}\p{M}{0,8})\*{2,3}(?=\p{L})"
    r"|(?<=\p{Nd})[,:/–٫٬](?=\p{Nd}))"
)
_WORD = regex.compile(
    rf"(?=[hHwW])(?i:https?://|www\.)[^\s<>()\[\]]++|[{IDEOGRAPH}]\p{{M}}*+|{_PART}(?:{_JOINER}(?={_START}){_PART})*+"
)
# The same where every character is ASCII. The first letter stands before the alternatives: it is found fast.
_ASCII_JOINER = (
    r"(?=[-'&@_.*,:/][A-Za-z0-9*])"
    r"(?:['&@_-]|\.(?![A-Z][a-z])|(?<=[A-Za-z])\*{2,3}(?=[A-Za-z])|(?<=[0-9])[,:/](?=[0-9]))"
)
_ASCII_WORD = re.compile(
    r"[A-Za-z0-9](?:"
    r"(?<=[HhWw])(?:(?<=[Hh])[Tt][Tt][Pp][Ss]?://|(?<=[Ww])[Ww]{2}\.)[^ \t-\r<>()\[\]]++"
    rf"|[A-Za-z0-9]*+(?:{_ASCII_JOINER}[A-Za-z0-9]++)*+)"
)
# Marks that stand in most English answers, and one of ASCII that does the same to a word.
_TYPOGRAPHIC = {"’": "'", "‘": "'", "“": ";", "”": ";", "—": ";", "–": ",", "…": ";", "•": ";", "\xa0": " "}
# What a browser does not show, or a face: no words.
_TAG = regex.compile(
    r"</?(?:a|b|i|u|p|s|em|br|hr|h[1-6]|li|ol|ul|td|th|tr|div|sub|sup|code|mark|span|table|strong)(?:\s[^<>]{0,300})?/?>",
    regex.IGNORECASE,
)
_FACE = regex.compile(r"(?<!\S)(?:[:;=]['\-]?[DPpOoXx3]|[xX]D|<3)(?!\w)")
_LIST_NUMBER = regex.compile(r"\n[ \t>]*+\d{1,3}[.)](?=[ \t])")
_CHECKED = regex.compile(r"(?<=\n[ \t>]{0,12}[-*+•][ \t]{1,4})\[[xX]\](?=[ \t])")
_LINK_TARGET = regex.compile(r"(?<=\])\((?:https?://|www\.|/|#)[^()\s]*+\)")


def listed(text: str) -> frozenset[str]:
    """The words of a list that is written as running text."""
    return frozenset(text.split())


def words(text: str) -> list[str]:
    """The words of a text, in order, as they are written.

    >>> words("I don't know: 3.5 state-of-the-art things - or 1,250.")
    ['I', "don't", 'know', '3.5', 'state-of-the-art', 'things', 'or', '1,250']
    """
    if "[x]" in text or "[X]" in text:
        text = _CHECKED.sub("", "\n" + text)
    text = _unnumbered(text)
    if "](" in text:
        text = _LINK_TARGET.sub("", text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if ":" in text or ";" in text or "=" in text or "xD" in text or "XD" in text or "<3" in text:
        text = _FACE.sub(" ", text)
    plain = _in_ascii(text)
    if plain is text:
        found: list[str] = _word(text).findall(text)
        return found
    return [text[match.start() : match.end()] for match in _ASCII_WORD.finditer(plain)]


def _in_ascii(text: str) -> str:
    """The text with its typographic marks replaced, if that makes it ASCII; else the text itself."""
    plain = text
    if not text.isascii():
        for mark, other in _TYPOGRAPHIC.items():
            plain = plain.replace(mark, other)
    return plain if plain.isascii() else text


def first_words(text: str, count: int) -> list[str]:
    """The first `count` words."""
    text = _unnumbered(text)
    found: Iterator[Any] = _word(text).finditer(text)
    return [match.group() for match in islice(found, count)]


def has_word(text: str) -> bool:
    """Whether there is any word."""
    return _word(text).search(text) is not None


def initial(word: str) -> str:
    """The first letter or digit of a word, small and without its accent."""
    first = word[:1]
    if first.isascii() and word[1:2] < "\u0300":
        return first.lower()
    return unicodedata.normalize("NFKD", word[:2].casefold())[:1]


def _word(text: str) -> re.Pattern[str] | regex.Pattern[str]:
    return _ASCII_WORD if text.isascii() else _WORD


def _unnumbered(text: str) -> str:
    """The text without the numbers of an ordered list; a line end stands before it."""
    if "\n" not in text and not text.lstrip(" \t>")[:1].isdigit():
        return text
    return str(_LIST_NUMBER.sub("\n", "\n" + text))


def fold(text: str) -> str:
    """A text in which what a reader takes for the same is equal: case, apostrophes, hyphens, joiners, styled letters."""
    text = unstyled(text).casefold()
    if not text.isascii():
        for char, plain in _SAME.items():
            text = text.replace(char, plain)
    return text


def unstyled(text: str) -> str:
    """The text with full-width letters, and those of mathematical alphabets, as plain ones: `ｂ𝐚𝖽` is `bad`."""
    if text.isascii() or _STYLED.search(text) is None:
        return text
    return _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


_STYLED = re.compile("[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]+")
_SAME = {"’": "'", "ʼ": "'", "‘": "'", "＇": "'", "‐": "-", "‑": "-", "\u200c": "", "\u200d": ""}
