"""The group `count`: words, different words, numbers, names, pronouns, conjunctions, punctuation marks, Japanese words, keywords."""

from __future__ import annotations

import functools

import regex

from cascade_plugin_if.ifbench.english import CONJUNCTIONS, is_pronoun
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, between, counted, text, whole
from cascade_plugin_if.instructions.keywords import occurrences
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold

# The fifty names are part of the constraint: its prompts list them.
_LISTED = """Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin Harper Leo
    Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria Elijah Layla Nicholas
    Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan Stella Jonathan"""
NAMES = tuple(_LISTED.split())
# 1,250.75 is one number; so are a time, a fraction and a date. `1-2` is two, `H2O` holds none.
_NUMBER = regex.compile(
    r"(?<![\p{L}_])(?:\d{4}-\d\d-\d\d(?!\d)|\d{1,3}(?:[,'’]\d{3})++(?!\d)(?:\.\d++)?+|\d++(?:[.:/]\d++)*+)", regex.ASCII
)
_INTERROBANG = regex.compile(r"\?!|!\?|‽")
_DOTS = regex.compile(r"(?<!\d)[.,:]|[.,:](?!\d)")
_JAPANESE = regex.compile(r"[\p{Hiragana}\p{Katakana}\p{Han}]")
_READABLE = regex.compile(r"[\p{L}\p{N}]")
TIMES = (1, 2, 3, 5, 7)
_KEYWORDS = tuple(f"keyword{place}" for place in range(1, 6))


@functools.cache
def _name(name: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<![\p{{L}}\p{{N}}_])(?:{name}|{name.upper()})(?![\p{{L}}\p{{N}}_])")


def _range(reading: Reading, args: Args) -> bool:
    return bool(args["min_words"] <= len(reading.words) <= args["max_words"])


def _crossed(args: Args) -> str:
    if args["min_words"] <= args["max_words"]:
        return ""
    return f"'min_words' must be at most 'max_words', found {args['min_words']} and {args['max_words']}"


def _unique(reading: Reading, args: Args) -> bool:
    return bool(len(set(reading.folded_words)) >= args["N"])


def _conjunctions(reading: Reading, args: Args) -> bool:
    return bool(len(CONJUNCTIONS.intersection(reading.folded_words)) >= args["small_n"])


def _names(reading: Reading, args: Args) -> bool:
    text = reading.text
    return bool(sum(_name(name).search(text) is not None for name in NAMES) >= args["N"])


def _numbers(reading: Reading, args: Args) -> bool:
    return bool(sum(1 for _ in _NUMBER.finditer(reading.text)) == args["N"])


def _pronouns(reading: Reading, args: Args) -> bool:
    return bool(sum(is_pronoun(word) for word in reading.folded_words) >= args["N"])


def _punctuation(reading: Reading, args: Args) -> bool:
    """Every mark once; the interrobang is one of its own, so `?` and `!` must stand elsewhere too."""
    if _INTERROBANG.search(reading.text) is None:
        return False
    rest = _INTERROBANG.sub(" ", reading.text, count=1)
    found = {*_DOTS.findall(rest), *(mark for mark in "!?;" if mark in rest)}
    return found >= set(".,:!?;")


def _japanese(reading: Reading, args: Args) -> bool:
    """Words are what stands between spaces, since Japanese writes none; a number is in no language."""
    words = [word for word in reading.text.split() if _READABLE.search(word)]
    every = words[args["N"] - 1 :: args["N"]] or (words if len(words) == 1 else [])
    return bool(every) and all(_JAPANESE.search(word) for word in every)


def _keywords(reading: Reading, args: Args) -> bool:
    return all(occurrences(reading, args[name]) == times for name, times in zip(_KEYWORDS, TIMES, strict=True))


def _same(args: Args) -> str:
    found = [args[name] for name in _KEYWORDS]
    return (
        "" if len({fold(word) for word in found}) == 5 else f"its five keywords must differ, found {', '.join(found)}"
    )


RANGE = Instruction(
    "count:word_count_range",
    (Argument("min_words", whole(0)), Argument("max_words", whole(1))),
    _range,
    lambda args: f"Answer in {args['min_words']} to {args['max_words']} words.",
    clash=_crossed,
)
UNIQUE = Instruction(
    "count:unique_word_count",
    (Argument("N", whole(1)),),
    _unique,
    lambda args: f"Let at least {counted(args['N'], 'different word')} occur.",
)
CONJUNCTION = Instruction(
    "count:conjunctions",
    (Argument("small_n", between(1, 7)),),
    _conjunctions,
    lambda args: f"Use at least {counted(args['small_n'], 'different coordinating conjunction')}.",
)
PERSON = Instruction(
    "count:person_names",
    (Argument("N", between(1, len(NAMES))),),
    _names,
    lambda args: f"Name at least {args['N']} different people of this list: {', '.join(NAMES)}.",
)
NUMBERS = Instruction(
    "count:numbers",
    (Argument("N", whole(0)),),
    _numbers,
    lambda args: f"Let exactly {counted(args['N'], 'number')} occur in digits.",
)
PRONOUN = Instruction(
    "count:pronouns",
    (Argument("N", whole(1)),),
    _pronouns,
    lambda args: f"Use at least {counted(args['N'], 'pronoun')}.",
)
PUNCTUATION = Instruction(
    "count:punctuation",
    (),
    _punctuation,
    lambda args: "Use each of the marks . , : ; ! ? and beside them the interrobang ?! at least once.",
)
JAPANESE = Instruction(
    "count:words_japanese",
    (Argument("N", whole(1)),),
    _japanese,
    lambda args: f"Let every word whose place is a multiple of {args['N']} be Japanese.",
)
KEYWORDS = Instruction(
    "count:keywords_multiple",
    tuple(Argument(name, text) for name in _KEYWORDS),
    _keywords,
    lambda args: (
        "Use these words just so often: "
        + ", ".join(f'"{args[name]}" {times}×' for name, times in zip(_KEYWORDS, TIMES, strict=True))
        + "."
    ),
    clash=_same,
)
FAMILIES = (RANGE, UNIQUE, CONJUNCTION, PERSON, NUMBERS, PRONOUN, PUNCTUATION, JAPANESE, KEYWORDS)
