"""Words of another script than Latin, in a text from which formulas and code were taken (`prose.py`).

A word is a run of letters; Chinese, Japanese and Thai, which put no blanks between words, count one word a run. A word that mixes
another alphabet into Latin letters (a Cyrillic а in "pаssword") is a word of the other script. Greek is different, because it
is everyday notation: one or two letters ("αβ", "Δx", "kΩ", "sinθ") are symbols; three or more are a word where one carries an
accent or there are five, and so are the Greek words beside such a word. A letter before `_`, `(`, `^` or a digit is a symbol.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex

LETTER = r"(?V1)[[\p{L}\p{M}]--\p{Latin}--\p{Common}--\p{Inherited}]"
"""A letter of another script than Latin, as a regular expression of the package regex."""

# Letters of any other alphabet; of the Greek one only where there are three, or one beside a Latin letter.
_MAYBE = re.compile("[\u0370-\u03ff\u1f00-\u1fff]{3}|[A-Za-z][\u0370-\u03ff]|[\u0370-\u03ff][A-Za-z]"
                    "|[\u0400-\u1cff\u2c00-\u2c5f\u2c80-\u2dff\u3005-\ua71f\ua800-\uab2f\uab70-\ufaff\ufb07-\ufdff"
                    "\ufe70-\ufefe\uff66-\uffdc\U00010000-\U0001cfff\U0001e000-\U0001efff\U00020000-\U0003ffff]")  # fmt: skip
_FOREIGN = regex.compile(LETTER)
_TOKEN = regex.compile(r"[\p{L}\p{M}ー]++")
_RUN = regex.compile(rf"{LETTER}(?:{LETTER}|[\p{{Mn}}ー])*+")
_GREEK = regex.compile(r"\p{Greek}")
_LATIN = regex.compile(r"\p{Latin}")
_ACCENTED = regex.compile("[άέήίόύώΐΰϊϋΆΈΉΊΌΎΏἀ-ᾯ]")
_LIKE_LATIN = frozenset("οναικρυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_SYMBOL_BEFORE = frozenset("_(^₀₁₂₃₄₅₆₇₈₉0123456789")
_UNSPACED = frozenset(("Han", "Hiragana", "Katakana", "Hangul", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"))
_NAMED = {"Cjk": "Han", "Ideographic": "Han", "Halfwidth": "Katakana"}
_GAP = 3  # characters between two words of one passage


class Word(NamedTuple):
    """A foreign word, where it stands, and its kind: a Unicode script (`Han`) or a language's code (`es`)."""

    text: str
    start: int
    end: int
    kind: str


def may_have(text: str) -> bool:
    """Whether a text may hold another script; fast, and right when it says no."""
    return not text.isascii() and _MAYBE.search(text) is not None


def words(text: str) -> list[Word]:
    """The words of other scripts, in their order; time grows with the length of the text."""
    found = list(_candidates(text))
    if not any(word.kind == "Greek" for word in found):
        return found
    return [word for word, keep in zip(found, _kept(found), strict=True) if keep]


@functools.lru_cache(4096)
def script(letter: str) -> str:
    """The script of a letter by its Unicode name: `Cyrillic`, `Han`, `Arabic`."""
    first = unicodedata.name(letter, "Unknown").split(" ")[0].split("-")[0].capitalize()
    return _NAMED.get(first, first)


def _candidates(text: str) -> Iterator[Word]:
    for token in _TOKEN.finditer(text):
        said = token.group()
        first = None if said.isascii() else _FOREIGN.search(said)
        if first is None:
            continue
        kind = script(first.group())
        if kind in _UNSPACED:
            for run in _RUN.finditer(said):
                start = token.start() + run.start()
                yield Word(run.group(), start, start + len(run.group()), script(run.group()[0]))
        elif not _is_symbol(said, text[token.end() : token.end() + 1]):
            yield Word(said, token.start(), token.end(), kind)


def _is_symbol(word: str, after: str) -> bool:
    return len(word) == 1 and after != "" and after in _SYMBOL_BEFORE


def _kept(found: list[Word]) -> list[bool]:
    """Whether each is a word: Greek ones need to look like it, or to stand beside one that does."""
    keep = [word.kind != "Greek" or _is_greek(word.text) for word in found]
    for places in (range(1, len(found)), range(len(found) - 2, -1, -1)):
        step = places.step
        for place in places:
            one, other = sorted((found[place], found[place - step]), key=lambda word: word.start)
            if not keep[place] and keep[place - step] and other.start - one.end <= _GAP and one.kind == other.kind:
                keep[place] = True
    return keep


def _is_greek(word: str) -> bool:
    greek, latin = len(_GREEK.findall(word)), len(_LATIN.findall(word))
    if latin:
        return greek >= 5 or (latin >= 4 and word[-1:].islower() and any(letter in _LIKE_LATIN for letter in word))
    return greek >= 5 or (greek >= 3 and _ACCENTED.search(word) is not None)
