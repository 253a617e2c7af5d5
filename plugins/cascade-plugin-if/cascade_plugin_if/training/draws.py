"""Arguments of the training constraints for the generator: one function a family, as in `cascade_plugin_if.draws`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from cascade_plugin_if.draws import DRAWS as OF_IFEVAL
from cascade_plugin_if.draws import FORBIDDEN, WORDS
from cascade_plugin_if.prompts import Base

Draw = Callable[[Random, Base, bool], dict[str, Any]]
PHRASES = (
    "the river runs through the quiet valley",
    "a small lamp burns in the window",
    "every road leads back to the harbour",
    "nobody counts the hours of a summer night",
    "the last train leaves from the old platform",
)


def _relation(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = rng.choice(("at least", "less than"))
    return {"relation": relation, "N": rng.randint(40, 300) if relation == "at least" else rng.randint(120, 900)}


def _often(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = rng.choice(("at least", "less than"))
    return {
        "keyword": rng.choice(WORDS),
        "relation": relation,
        "frequency": rng.randint(1, 4) + (relation == "less than"),
    }


def _span(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    last = len(base.prompt) - 1
    start = rng.randint(0, last - 4)
    return {"prompt_to_repeat": base.prompt, "n_start": start, "n_end": rng.randint(start + 3, last)}


def _two(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    one, other = rng.sample(WORDS, 2)
    return {"keyword1": one, "keyword2": other}


def _nothing(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    return {}


def _one(name: str, pool: tuple[str, ...] = WORDS) -> Draw:
    return lambda rng, base, full: {name: rng.choice(pool)}


def _copy(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    return {"prompt_to_repeat": base.prompt}


DRAWS: Mapping[str, Draw] = {
    "copy:copy": _copy,
    "copy:copying_simple": _copy,
    "copy:copying_multiple": lambda rng, base, full: {"prompt_to_repeat": base.prompt, "N": rng.randint(2, 4)},
    "new:copy_span_idx": _span,
    "copy:repeat_phrase": lambda rng, base, full: {"phrase": rng.choice(PHRASES), "small_n": rng.randint(2, 3)},
    "keywords:word_once": _one("keyword"),
    "keywords:word_count_different_numbers": _often,
    "keywords:exclude_word_harder": _one("keyword", FORBIDDEN),
    "count:count_increment_word": _two,
    "keywords:palindrome": _nothing,
    "keywords:keyword_specific_position": lambda rng, base, full: {
        "keyword": rng.choice(WORDS),
        "n": rng.randint(1, 4),
        "m": rng.randint(1, 6),
    },
    "letters:letter_counting2": OF_IFEVAL["keywords:letter_frequency"],
    "first_word:first_word_sent": _one("first_word"),
    "first_word:first_word_answer": _one("first_word"),
    "last_word:last_word_sent": _one("last_word"),
    "last_word:last_word_answer": _one("last_word"),
    "keywords:start_end": _nothing,
    "detectable_format:square_brackets": _nothing,
    "detectable_format:bigram_wrapping": _nothing,
    "detectable_format:sentence_hyphens": _nothing,
    "paragraphs:paragraphs": _nothing,
    "paragraphs:paragraphs2": _nothing,
    "count:counting_composition": lambda rng, base, full: {"n_sent": rng.randint(1, 3), "n_words": rng.randint(4, 8)},
    "punctuation:punctuation_dot": _nothing,
    "punctuation:punctuation_exclamation": _nothing,
    "count:lowercase_counting": lambda rng, base, full: {"N": rng.randint(0, 3)},
    "letters:letter_counting": _relation,
    "count:count_unique": _nothing,
    "keywords:no_adjacent_consecutive": _nothing,
}
