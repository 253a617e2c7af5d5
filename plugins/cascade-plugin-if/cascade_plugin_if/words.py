"""Words as a reader counts them.

A word is a run of letters, digits and their marks. Inside a word may stand: an apostrophe (`don't`), a single hyphen
(`state-of-the-art`), a dot without a space (`e.g.`, `node.js`, `3.5`), an underscore, `&` or `@`; between digits also
`,` `:` `/` and an en dash, so that a number, a time or a date is one word. A web address is one word. Dashes, bullets,
Markdown marks, common HTML tags, emoji, emoticons and the numbers of an ordered list are no words. Each Chinese or Japanese character is a word,
as word processors count; Thai, Lao, Khmer and Burmese, which need a dictionary, count a run between spaces as one.

Everything here takes linear time: no pattern can be matched in two ways.
"""

from __future__ import annotations

import regex

IDEOGRAPH = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_PART = rf"(?:(?![{IDEOGRAPH}])[\p{{L}}\p{{N}}][\p{{M}}\u200c\u200d]*+)++"
_START = rf"(?![{IDEOGRAPH}])[\p{{L}}\p{{N}}]"
_JOINER = (
    r"(?:['’ʼ‘＇´&@_]"
    r"|[-‐‑](?![-‐‑])"
    r"|\.(?!\p{Lu}\p{Ll})"
    r"|(?<=\p{L}\p{M}{0,8})\*{2,3}(?=\p{L})"
    r"|(?<=\p{Nd})[,:/–٫٬](?=\p{Nd}))"
)
_WORD = regex.compile(
    rf"(?i:https?://|www\.)[^\s<>()\[\]]++|[{IDEOGRAPH}]\p{{M}}*+|{_PART}(?:{_JOINER}(?={_START}){_PART})*+"
)
# What a browser does not show, or a face: no words.
_TAG = regex.compile(
    r"</?(?:a|b|i|u|p|s|em|br|hr|h[1-6]|li|ol|ul|td|th|tr|div|sub|sup|code|mark|span|table|strong)(?:\s[^<>]{0,300})?/?>",
    regex.IGNORECASE,
)
_FACE = regex.compile(r"(?<!\S)(?:[:;=]['\-]?[DPpOoXx3]|[xX]D|<3)(?!\w)")
_LIST_NUMBER = regex.compile(r"^[ \t>]*+\d{1,3}[.)](?=[ \t])", regex.MULTILINE)
_LINK_TARGET = regex.compile(r"(?<=\])\((?:https?://|www\.|/|#)[^()\s]*+\)")


def listed(text: str) -> frozenset[str]:
    """The words of a list that is written as running text."""
    return frozenset(text.split())


def words(text: str) -> list[str]:
    """The words of a text, in order, as they are written.

    >>> words("I don't know: 3.5 state-of-the-art things - or 1,250.")
    ['I', "don't", 'know', '3.5', 'state-of-the-art', 'things', 'or', '1,250']
    """
    text = _FACE.sub(" ", _TAG.sub(" ", _LINK_TARGET.sub("", _LIST_NUMBER.sub("", text))))
    return [match.group() for match in _WORD.finditer(text)]


def first_words(text: str, count: int) -> list[str]:
    """The first `count` words."""
    found = []
    for match in _WORD.finditer(_LIST_NUMBER.sub("", text)):
        found.append(match.group())
        if len(found) == count:
            break
    return found


def has_word(text: str) -> bool:
    """Whether there is any word."""
    return _WORD.search(text) is not None


def same(one: str) -> str:
    """A form in which words that a reader takes for the same are equal: case, apostrophes, hyphens."""
    return one.casefold().translate(_SAME)


_SAME = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "＇": "'", "‐": "-", "‑": "-", "\u200c": None, "\u200d": None})
