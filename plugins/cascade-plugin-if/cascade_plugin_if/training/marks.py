"""What must not be there or only so often: dots, exclamation marks, words in small letters, letters, words that come again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import regex

from cascade_plugin_if import drafts
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, holds, relation, whole
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold, initial, words

_DOT = regex.compile(r"[.…。．｡․‥]")
_EXCLAMATION = regex.compile(r"[!！¡‼⁉❗❕﹗]")
_LETTER = regex.compile(r"\p{L}")


def _no_dot(reading: Reading, args: Args) -> bool:
    return _DOT.search(reading.text) is None


def _no_exclamation(reading: Reading, args: Args) -> bool:
    return _EXCLAMATION.search(reading.text) is None


def _small_words(reading: Reading, args: Args) -> bool:
    """Words without any capital letter."""
    return sum(map(str.islower, reading.words)) <= int(args["N"])


def _letters(reading: Reading, args: Args) -> bool:
    return holds(letter_count(reading.text), args["relation"], args["N"])


def letter_count(text: str) -> int:
    """How many letters, of any script, a text has."""
    return sum(map(str.isalpha, text)) if text.isascii() else len(_LETTER.findall(text))


def _unique(reading: Reading, args: Args) -> bool:
    found = reading.folded_words
    return bool(found) and len(set(found)) == len(found)


def _no_neighbours(reading: Reading, args: Args) -> bool:
    """Of two words or more none begins with the letter after that of the word before; capitals and accents make no difference."""
    initials = reading.initials
    return len(initials) > 1 and not any(map(_are_neighbours, initials, initials[1:]))


def _are_neighbours(one: str, other: str) -> bool:
    return "a" <= one < other <= "z" and ord(other) - ord(one) == 1


def _edit_small_words(draft: str, args: Args, rng: Random) -> str:
    return draft.upper()


def _edit_letters(draft: str, args: Args, rng: Random) -> str:
    if args["relation"] in ("less than", "at most"):
        while letter_count(draft) > args["N"] - (args["relation"] == "less than") and " " in draft:
            draft = draft.rpartition(" ")[0]
        return draft
    while letter_count(draft) <= args["N"]:
        draft = f"{draft} {rng.choice(drafts.SENTENCES)}"
    return draft


def _kept(draft: str, keep: Callable[[str, str], bool]) -> str:
    """The words of the draft that may stand behind those kept before."""
    kept: list[str] = []
    for part in draft.split():
        if keep(kept[-1] if kept else "", part):
            kept.append(part)
    return " ".join(kept)


def _edit_unique(draft: str, args: Args, rng: Random) -> str:
    seen: set[str] = set()

    def is_new(before: str, part: str) -> bool:
        found = {fold(word) for word in words(part)}
        is_fresh = found.isdisjoint(seen)
        seen.update(found)
        return is_fresh

    return _kept(draft, is_new)


def _edit_no_neighbours(draft: str, args: Args, rng: Random) -> str:
    return _kept(draft, lambda before, part: not _are_neighbours(_initial_of(before), _initial_of(part)))


def _initial_of(part: str) -> str:
    return next(itertools.chain(map(initial, words(part)), [""]))


FAMILIES = (
    Instruction(
        "punctuation:punctuation_dot",
        (),
        _no_dot,
        lambda args: "Use no dots, as stops or otherwise.",
        lambda draft, args, rng: str(_DOT.sub("", draft)),
        66,
    ),
    Instruction(
        "punctuation:punctuation_exclamation",
        (),
        _no_exclamation,
        lambda args: "Use no exclamation marks.",
        lambda draft, args, rng: str(_EXCLAMATION.sub("", draft)),
        66,
    ),
    Instruction(
        "count:lowercase_counting",
        (Argument("N", whole(0)),),
        _small_words,
        lambda args: f"Write at most {counted(args['N'], 'word')} in lower case.",
        _edit_small_words,
        64,
    ),
    Instruction(
        "letters:letter_counting",
        (Argument("N", whole(0)), Argument("relation", relation)),
        _letters,
        lambda args: f"Answer with {args['relation']} {counted(args['N'], 'letter')}.",
        _edit_letters,
        2,
    ),
    Instruction(
        "count:count_unique",
        (),
        _unique,
        lambda args: "Use every word only once.",
        _edit_unique,
        67,
    ),
    Instruction(
        "keywords:no_adjacent_consecutive",
        (),
        _no_neighbours,
        lambda args: "Let no word begin with the letter that follows in the alphabet on that of the word before it.",
        _edit_no_neighbours,
        67,
    ),
)
