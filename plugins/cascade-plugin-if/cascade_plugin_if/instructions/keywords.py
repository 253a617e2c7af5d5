"""The group `keywords`: words that must or must not occur, how often, and letters.

A keyword occurs where a reader finds that word: capitals and typographic apostrophes make no difference, a longer word
that contains it does not count, nor a number of which it is a part, nor an identifier (`data_frame`). A possessive
(`cat's`) and the parts of a hyphenated word count. Scripts that are written without spaces have no such borders.
"""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass
from random import Random

import regex

from cascade_plugin_if import drafts, markdown
from cascade_plugin_if.instructions.base import (
    Args,
    Argument,
    Instruction,
    character,
    counted,
    holds,
    relation,
    text,
    texts,
    whole,
)
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import IDEOGRAPH, fold, unstyled

_SPACELESS = rf"{IDEOGRAPH}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}"
_WORD = r"[\p{L}\p{N}\p{M}_]"
_APOSTROPHE = regex.compile("['’ʼ‘＇]")
# What follows a letter and still belongs to its word: letters, `n't` and the like (not the possessive), `C++`, `C#`.
_GOES_ON = rf"(?!{_WORD})(?!['](?!s(?!{_WORD}))\p{{L}})(?!\+\+|#)"
# The second halves of English contractions are no words of their own; `l'été` is two.
_ACRONYM = regex.compile(r"(?<!\w)\w\.\w\.$")
_HEAD = 32  # so many characters of a long keyword are searched for, the rest is compared where they stand
_CLITICS = frozenset(("s", "t", "d", "m", "re", "ve", "ll"))


@dataclass(frozen=True)
class Keyword:
    """A keyword, ready to be looked for in folded texts: it is found literally, then what stands beside it is looked at.

    Attributes:
        text: its words, folded, with one space between two; any white space does in a text.
        left: matches where it may begin.
        right: matches where it may end.
        has_marks: whether it holds marks of Markdown, so that they must not be taken from the text.
    """

    text: str
    left: regex.Pattern[str]
    right: regex.Pattern[str]
    has_marks: bool

    def count(self, reading: Reading) -> int:
        """How often it occurs; Markdown marks are looked through unless it has some."""
        text = reading.folded if self.has_marks else reading.plain
        if " " in self.text:
            text = " ".join(text.split())
        if self.text not in text:
            return 0
        count, at = 0, text.find(self.text[:_HEAD])
        while at >= 0:
            end = at + len(self.text)
            begins = self.left.match(text, at) and text.startswith(self.text, at)
            is_one = bool(begins and self.right.match(text, end))
            count += is_one
            at = text.find(self.text[:_HEAD], end if is_one else at + 1)
        return count


@functools.lru_cache(maxsize=4096)
def keyword(text: str) -> Keyword:
    """The keyword of that text."""
    folded = " ".join(fold(unicodedata.normalize("NFC", text)).split())
    left, right = _left(folded[0]), _right(folded[-1])
    if folded in _CLITICS:
        left = r"(?<!\w')" + left
    if _ACRONYM.search(folded):  # `U.S.` is no part of `U.S.A.`
        left, right = r"(?<!\w\.)" + left, r"(?!\w\.)" + right
    return Keyword(folded, _border(left), _border(right), markdown.unmarked(text) != text)


# There are few borders and many keywords: a pattern for each keyword would cost more than all of its uses.
_border = functools.cache(regex.compile)


def is_spaceless(char: str) -> bool:
    """Whether a character belongs to a script that is written without spaces."""
    return regex.match(rf"[{_SPACELESS}]", char) is not None


def _left(char: str) -> str:
    if is_spaceless(char) or not regex.match(_WORD, char):
        return ""
    if char.isdigit():
        return rf"(?<!{_WORD})(?<!\d[.,:/])"
    return rf"(?<!{_WORD})"


def _right(char: str) -> str:
    if regex.match(rf"[{_SPACELESS}\p{{Hangul}}]", char) or not regex.match(_WORD, char):
        return r"(?!\p{M})" if regex.match(_WORD, char) else ""
    return _GOES_ON + (r"(?![.,:/]\d)" if char.isdigit() else "")


def occurrences(reading: Reading, text: str) -> int:
    """How often a keyword occurs."""
    return keyword(text).count(reading)


def _exist(reading: Reading, args: Args) -> bool:
    return all(occurrences(reading, word) for word in args["keywords"])


def _frequency(reading: Reading, args: Args) -> bool:
    return holds(occurrences(reading, args["keyword"]), args["relation"], args["frequency"])


def _forbidden(reading: Reading, args: Args) -> bool:
    return not any(occurrences(reading, word) for word in args["forbidden_words"])


def _letters(reading: Reading, args: Args) -> bool:
    count = unstyled(reading.text).lower().count(unstyled(args["letter"]).lower())
    return holds(count, args["let_relation"], args["let_frequency"])


def _listed(words: list[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _add(draft: str, word: str, count: int) -> str:
    """Adds a sentence that holds the word `count` times."""
    return draft if count <= 0 else f"{draft} Someone said {' and '.join([word] * count)}.".lstrip()


def _edit_exist(draft: str, args: Args, rng: Random) -> str:
    reading = Reading(draft)
    for word in args["keywords"]:
        if not occurrences(reading, word):
            draft = _add(draft, word, 1)
    return draft


def _edit_frequency(draft: str, args: Args, rng: Random) -> str:
    found = occurrences(Reading(draft), args["keyword"])
    if holds(found, args["relation"], args["frequency"]):
        return draft
    if args["relation"] in ("less than", "at most"):
        return _drop(draft, args["keyword"])
    return _add(draft, args["keyword"], args["frequency"] + (args["relation"] == "more than") - found)


def _drop(draft: str, word: str) -> str:
    found = regex.compile(_left(word[0]) + regex.escape(word) + _right(word[-1]) + r"\s?", regex.IGNORECASE)
    return found.sub("", draft)


def _edit_forbidden(draft: str, args: Args, rng: Random) -> str:
    for word in args["forbidden_words"]:
        draft = _drop(draft, word)
    return draft


def _edit_letters(draft: str, args: Args, rng: Random) -> str:
    letter, bound = args["letter"], args["let_frequency"]
    missing = bound + (args["let_relation"] == "more than") - draft.lower().count(letter.lower())
    if holds(bound - missing, args["let_relation"], bound):
        return draft
    if args["let_relation"] in ("less than", "at most"):
        return regex.sub(regex.escape(letter), "", draft, flags=regex.IGNORECASE)
    for sentence in rng.sample(drafts.SENTENCES, len(drafts.SENTENCES)):
        if draft.lower().count(letter.lower()) >= bound + (args["let_relation"] == "more than"):
            return draft
        draft = f"{draft} {sentence}" if letter.lower() in sentence.lower() else draft
    return draft


EXISTENCE = Instruction(
    "keywords:existence",
    (Argument("keywords", texts),),
    _exist,
    lambda args: f"Use each of these words: {_listed(args['keywords'])}.",
    _edit_exist,
    20,
)
FREQUENCY = Instruction(
    "keywords:frequency",
    (Argument("keyword", text), Argument("relation", relation), Argument("frequency", whole(0))),
    _frequency,
    lambda args: f'Use the word "{args["keyword"]}" {args["relation"]} {counted(args["frequency"], "time")}.',
    _edit_frequency,
    21,
)
FORBIDDEN = Instruction(
    "keywords:forbidden_words",
    (Argument("forbidden_words", texts),),
    _forbidden,
    lambda args: f"Do not use any of these words: {_listed(args['forbidden_words'])}.",
    _edit_forbidden,
    10,
)
LETTERS = Instruction(
    "keywords:letter_frequency",
    (Argument("letter", character), Argument("let_relation", relation), Argument("let_frequency", whole(0))),
    _letters,
    lambda args: (
        f'Let the letter "{args["letter"]}" occur {args["let_relation"]} {counted(args["let_frequency"], "time")}, '
        "counting capitals as well."
    ),
    _edit_letters,
    22,
)
FAMILIES = (EXISTENCE, FREQUENCY, FORBIDDEN, LETTERS)
