"""Arguments for the generator: one function a family, small numbers for level `easy`, IFEval's ranges for `full`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from cascade_plugin_if.drafts import LANGUAGES
from cascade_plugin_if.prompts import Base
from cascade_plugin_if.words import listed

WORDS = tuple(
    sorted(
        listed("""
    amber anchor basket bridge candle canyon copper cradle dancer ember feather forest garden glacier harbour
    harvest island jacket kettle ladder lantern marble meadow mirror needle ocean orchard pebble pepper pillow planet
    puzzle rabbit ribbon rocket saddle shadow silver spider temple ticket timber tunnel velvet violin walnut willow
    window winter yellow
    """)
    )
)
FORBIDDEN = ("always", "people", "nobody", "summer", "children", "story", "visitors", "morning", "weather", "season",
             "detail", "painter", "valley", "autumn", "evening", "garden", "cheap", "boring", "perfect", "amazing")  # fmt: skip
ENDINGS = ("That is all for now.", "Is there anything else?", "The end.", "See you soon.", "Thank you for reading.",
           "Let us begin.", "Peace of mind.")  # fmt: skip
SPLITTERS = ("SECTION", "Part", "Chapter", "Day", "Step")
MARKERS = ("P.S.", "P.P.S")


def _number(rng: Random, full: bool, easy: tuple[int, int], wide: tuple[int, int]) -> int:
    return rng.randint(*(wide if full else easy))


def _relation(rng: Random) -> str:
    return rng.choice(("at least", "less than"))


def _frequency(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = _relation(rng)
    bound = _number(rng, full, (1, 2), (1, 4)) + (relation == "less than")
    return {"keyword": rng.choice(WORDS), "relation": relation, "frequency": bound}


def _letters(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = _relation(rng)
    letter = rng.choice("acdefghilmnoprstuwy" if relation == "at least" else "jkqvxz")
    bound = _number(rng, full, (2, 4), (2, 12)) if relation == "at least" else rng.randint(1, 4)
    return {"letter": letter, "let_relation": relation, "let_frequency": bound}


def _sentences(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = _relation(rng)
    count = _number(rng, full, (2, 3), (2, 9)) + (relation == "less than") * (8 if full else 3)
    return {"relation": relation, "num_sentences": count}


def _words(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = _relation(rng)
    count = _number(rng, full, (5, 20), (20, 120)) + (relation == "less than") * (60 if full else 30)
    return {"relation": relation, "num_words": count}


def _first_word(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    count = _number(rng, full, (2, 2), (2, 5))
    return {"num_paragraphs": count, "nth_paragraph": rng.randint(1, count), "first_word": rng.choice(WORDS)}


def _capital_words(rng: Random, base: Base, full: bool) -> dict[str, Any]:
    relation = _relation(rng)
    count = _number(rng, full, (1, 2), (1, 6)) + (relation == "less than") * 2
    return {"capital_relation": relation, "capital_frequency": count}


def _some(pool: tuple[str, ...], rng: Random, full: bool) -> list[str]:
    return rng.sample(pool, _number(rng, full, (1, 1), (1, 3)))


DRAWS: Mapping[str, Callable[[Random, Base, bool], dict[str, Any]]] = {
    "keywords:existence": lambda rng, base, full: {"keywords": _some(WORDS, rng, full)},
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": lambda rng, base, full: {"forbidden_words": _some(FORBIDDEN, rng, full)},
    "keywords:letter_frequency": _letters,
    "language:response_language": lambda rng, base, full: {"language": rng.choice(tuple(LANGUAGES))},
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_paragraphs": lambda rng, base, full: {
        "num_paragraphs": _number(rng, full, (2, 2), (2, 6))
    },
    "length_constraints:number_words": _words,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": lambda rng, base, full: {
        "num_placeholders": _number(rng, full, (1, 2), (1, 6))
    },
    "detectable_content:postscript": lambda rng, base, full: {"postscript_marker": rng.choice(MARKERS)},
    "detectable_format:number_bullet_lists": lambda rng, base, full: {
        "num_bullets": _number(rng, full, (1, 3), (1, 7))
    },
    "detectable_format:number_highlighted_sections": lambda rng, base, full: {
        "num_highlights": _number(rng, full, (1, 2), (1, 5))
    },
    "detectable_format:multiple_sections": lambda rng, base, full: {
        "section_spliter": rng.choice(SPLITTERS),
        "num_sections": _number(rng, full, (2, 2), (2, 5)),
    },
    "detectable_format:title": lambda rng, base, full: {},
    "detectable_format:json_format": lambda rng, base, full: {},
    "detectable_format:constrained_response": lambda rng, base, full: {},
    "combination:two_responses": lambda rng, base, full: {},
    "combination:repeat_prompt": lambda rng, base, full: {"prompt_to_repeat": base.prompt},
    "startend:end_checker": lambda rng, base, full: {"end_phrase": rng.choice(ENDINGS)},
    "startend:quotation": lambda rng, base, full: {},
    "change_case:english_capital": lambda rng, base, full: {},
    "change_case:english_lowercase": lambda rng, base, full: {},
    "change_case:capital_word_frequency": _capital_words,
    "punctuation:no_comma": lambda rng, base, full: {},
}
EASY = (
    "keywords:existence",
    "keywords:frequency",
    "keywords:forbidden_words",
    "length_constraints:number_words",
    "detectable_content:number_placeholders",
    "detectable_format:number_bullet_lists",
    "detectable_format:number_highlighted_sections",
    "detectable_format:title",
    "startend:end_checker",
    "startend:quotation",
    "change_case:english_capital",
    "change_case:english_lowercase",
    "punctuation:no_comma",
)
