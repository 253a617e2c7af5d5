"""The group `ratio`: stop words, kinds of sentences, sentences of one length, and overlap with a text."""

from __future__ import annotations

import functools
from collections import Counter
from itertools import chain

import regex

from cascade_plugin_if.ifbench.english import is_stop_word
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, between, text
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold

_END = regex.compile(r"(?r)[.!?…‼⁇⁈⁉‽。！？।]++")
_TOLERANCE = 2  # per cent, as the constraint says


def kind(sentence: str) -> str:
    """`?`, `!` or `.`: what a sentence is by its last marks; a statement needs none."""
    match = _END.search(sentence, max(0, len(sentence) - 40))
    run = match.group() if match else ""
    return "?" if any(mark in run for mark in "?？⁇⁈⁉‽") else "!" if any(mark in run for mark in "!！‼") else "."


def _kinds(reading: Reading) -> Counter[str]:
    return Counter(map(kind, reading.sentences))


def _stop_words(reading: Reading, args: Args) -> bool:
    words = reading.folded_words
    return bool(words) and 100 * sum(map(is_stop_word, words)) <= args["percentage"] * len(words)


def _two_to_one(reading: Reading, args: Args) -> bool:
    kinds = _kinds(reading)
    return kinds["."] == 2 * kinds["?"] > 0


def _balance(reading: Reading, args: Args) -> bool:
    kinds = _kinds(reading)
    return kinds["."] == kinds["?"] == kinds["!"] > 0


def _three_alike(reading: Reading, args: Args) -> bool:
    """Three sentences of as many characters, spaces and stop included, in which no word comes twice."""
    sentences = reading.sentences
    if len(sentences) != 3 or len({len(sentence) for sentence in sentences}) != 1:
        return False
    words = [fold(word) for word in chain.from_iterable(reading.sentence_words)]
    return len(set(words)) == len(words)


@functools.lru_cache(maxsize=64)
def _trigrams_of_reference(text: str) -> frozenset[str]:
    return Reading(text).trigrams


def _overlap(reading: Reading, args: Args) -> bool:
    """The share of the answer's different trigrams of characters that the text has too, as IFBench measures it."""
    found = reading.trigrams
    if not found:
        return False
    share = 100 * len(found & _trigrams_of_reference(args["reference_text"])) / len(found)
    return bool(abs(share - args["percentage"]) <= _TOLERANCE)


STOP_WORDS = Instruction(
    "ratio:stop_words",
    (Argument("percentage", between(0, 100)),),
    _stop_words,
    lambda args: f"Let at most {args['percentage']} % of the words be stop words.",
)
SENTENCE_TYPE = Instruction(
    "ratio:sentence_type",
    (),
    _two_to_one,
    lambda args: "Write twice as many statements as questions.",
)
BALANCE = Instruction(
    "ratio:sentence_balance",
    (),
    _balance,
    lambda args: "Write as many statements as questions and as many exclamations.",
)
SENTENCE_WORDS = Instruction(
    "ratio:sentence_words",
    (),
    _three_alike,
    lambda args: "Answer in three sentences that are equally long in characters and share no word.",
)
OVERLAP = Instruction(
    "ratio:overlap",
    (Argument("reference_text", text), Argument("percentage", between(0, 100))),
    _overlap,
    lambda args: (
        f"Let {args['percentage']} % (give or take {_TOLERANCE}) of the answer's trigrams be trigrams of this text: "
        f"{args['reference_text']}"
    ),
)
FAMILIES = (STOP_WORDS, SENTENCE_TYPE, BALANCE, SENTENCE_WORDS, OVERLAP)
