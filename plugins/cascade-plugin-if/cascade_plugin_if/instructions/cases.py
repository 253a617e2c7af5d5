"""The groups `change_case` and `punctuation`: capitals, small letters, words in capitals, commas."""

from __future__ import annotations

import re
import unicodedata
from random import Random

import regex

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, holds, relation, whole
from cascade_plugin_if.languages import is_foreign
from cascade_plugin_if.reading import Reading

_POSSESSIVES = ("'s", "’s")
_ASCII_LOWER = re.compile("[a-z]")
_ASCII_UPPER = re.compile("[A-Z]")
_LOWER = regex.compile(r"\p{Ll}")
_UPPER = regex.compile(r"[\p{Lu}\p{Lt}]")
# Every character whose Unicode name says comma, and the low quotation mark where it looks like one.
_COMMAS = (
    ",\u055d\u060c\u07f8\u1363\u1802\u1808\u2e32\u2e34\u2e41\u2e49\u2e4c\u3001\ua4fe\ua60d\ua6f5"
    "\ufe10\ufe11\ufe45\ufe46\ufe50\ufe51\uff0c\uff64"
)
_LOW_QUOTE = "\u201a"
_COMMA = regex.compile(rf"[{_COMMAS}]|(?<=\S){_LOW_QUOTE}(?=\s)")
_COMMA_LIKE = frozenset(_COMMAS + _LOW_QUOTE)


def _has_small_letter(reading: Reading) -> bool:
    """Whether a letter stands in lower case that has a capital (ß has none); `ﬁ` and `𝐚` are small letters in disguise."""
    if _ASCII_LOWER.search(reading.text):
        return True
    letters = set(_LOWER.findall(reading.beyond_ascii)) - {"ß"}
    return any(plain.upper() != plain for plain in (unicodedata.normalize("NFKC", char) for char in letters))


def _has_capital(reading: Reading) -> bool:
    return _ASCII_UPPER.search(reading.text) is not None or _UPPER.search(reading.beyond_ascii) is not None


def _all_capitals(reading: Reading, args: Args) -> bool:
    return not _has_small_letter(reading) and not is_foreign(reading)


def _all_small(reading: Reading, args: Args) -> bool:
    return not _has_capital(reading) and not is_foreign(reading)


def capital_words(reading: Reading) -> int:
    """How many words are written in capitals; a possessive `'s` is looked away from, digits do not matter."""
    words = reading.words
    if any(mark in reading.text for mark in _POSSESSIVES):
        words = [word[:-2] if word.endswith(_POSSESSIVES) else word for word in words]
    return sum(map(str.isupper, words))


def _capital_words(reading: Reading, args: Args) -> bool:
    return holds(capital_words(reading), args["capital_relation"], args["capital_frequency"])


def _no_comma(reading: Reading, args: Args) -> bool:
    if "," in reading.text:
        return False
    return _COMMA_LIKE.isdisjoint(reading.beyond_ascii) or _COMMA.search(reading.text) is None


def _edit_capital_words(draft: str, args: Args, rng: Random) -> str:
    relation, bound = args["capital_relation"], args["capital_frequency"]
    found = capital_words(Reading(draft))
    if holds(found, relation, bound):
        return draft
    if relation in ("less than", "at most"):
        return str(draft.lower())
    missing: int = bound + (relation == "more than") - found
    words: list[str] = regex.split(r"(\s+)", draft)
    for place, word in enumerate(words):
        if missing and regex.fullmatch(r"\p{Ll}{2,}[.]?", word):
            words[place], missing = word.upper(), missing - 1
    return "".join(words) + " NOW" * missing


def _edit_no_comma(draft: str, args: Args, rng: Random) -> str:
    return str(_COMMA.sub("", draft))


CAPITAL = Instruction(
    "change_case:english_capital",
    (),
    _all_capitals,
    lambda args: "Write in English and in capital letters only.",
    lambda draft, args, rng: draft.upper(),
    100,
)
LOWERCASE = Instruction(
    "change_case:english_lowercase",
    (),
    _all_small,
    lambda args: "Write in English and in lower case only, without any capital letter.",
    lambda draft, args, rng: draft.lower(),
    100,
)
CAPITAL_WORDS = Instruction(
    "change_case:capital_word_frequency",
    (Argument("capital_relation", relation), Argument("capital_frequency", whole(0))),
    _capital_words,
    lambda args: f"Let the number of words in all capitals be {args['capital_relation']} {args['capital_frequency']}.",
    _edit_capital_words,
    26,
)
NO_COMMA = Instruction(
    "punctuation:no_comma",
    (),
    _no_comma,
    lambda args: "Use no commas.",
    _edit_no_comma,
    65,
)
FAMILIES = (CAPITAL, LOWERCASE, CAPITAL_WORDS, NO_COMMA)
