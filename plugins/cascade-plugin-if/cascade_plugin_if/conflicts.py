"""Which families cannot stand in one task: `CONFLICTS`, symmetric, and `agree`.

As in the public generator of IFEval, a table says which pairs are never drawn together. A pair is listed where no
answer, or only a contrived one, follows both: capitals and small letters; two ways to cut the text into parts; a
copy of the request and any change of case; JSON and what shapes running text. Arguments can clash too (a long text of
few words): such draws are found by building the reference, and drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cascade_plugin_if.registry import IFEVAL, TRAINING

_ALL = frozenset(IFEVAL)
# What goes with nearly everything, and so with what shapes every word or sentence.
_LIGHT = frozenset(
    {
        "punctuation:no_comma",
        "punctuation:punctuation_exclamation",
        "keywords:forbidden_words",
        "keywords:exclude_word_harder",
        "letters:letter_counting",
    }
)
_LISTED: Mapping[str, frozenset[str]] = {
    "detectable_format:constrained_response": _ALL,
    "language:response_language": _ALL
    - {
        "punctuation:no_comma",
        "length_constraints:number_sentences",
        "length_constraints:number_words",
        "keywords:forbidden_words",
        "startend:quotation",
    },
    "detectable_format:json_format": _ALL
    - {
        "keywords:existence",
        "keywords:frequency",
        "keywords:forbidden_words",
        "keywords:letter_frequency",
        "length_constraints:number_words",
        "length_constraints:number_sentences",
        "change_case:english_lowercase",
        "change_case:capital_word_frequency",
        "detectable_content:number_placeholders",
        "punctuation:no_comma",
    },
    "change_case:english_capital": frozenset(
        {"change_case:english_lowercase", "change_case:capital_word_frequency", "combination:repeat_prompt"}
    ),
    "change_case:english_lowercase": frozenset({"change_case:capital_word_frequency", "combination:repeat_prompt"}),
    "length_constraints:number_paragraphs": frozenset(
        {
            "length_constraints:nth_paragraph_first_word",
            "detectable_format:multiple_sections",
            "combination:two_responses",
        }
    ),
    "length_constraints:nth_paragraph_first_word": frozenset(
        {
            "detectable_format:multiple_sections",
            "detectable_format:number_bullet_lists",
            "detectable_format:title",
            "detectable_content:postscript",
            "combination:two_responses",
            "combination:repeat_prompt",
        }
    ),
    "combination:two_responses": frozenset(
        {
            "detectable_format:multiple_sections",
            "detectable_format:number_bullet_lists",
            "detectable_content:postscript",
            "combination:repeat_prompt",
            "startend:quotation",
        }
    ),
}


# Families beside those of IFEval that shape the whole answer, and what each can stand with.
_NARROW: Mapping[str, frozenset[str]] = {
    "copy:copy": frozenset(),
    "copy:copying_simple": frozenset(),
    "copy:copying_multiple": frozenset(),
    "new:copy_span_idx": frozenset(),
    "detectable_format:constrained_response": frozenset(),
    "detectable_format:square_brackets": _LIGHT | {"length_constraints:number_words", "change_case:english_lowercase"},
    "detectable_format:bigram_wrapping": _LIGHT | {"length_constraints:number_words", "keywords:palindrome"},
    "detectable_format:sentence_hyphens": _LIGHT | {"length_constraints:number_words", "keywords:existence"},
    "count:count_unique": _LIGHT | {"keywords:palindrome", "keywords:existence"},
    "count:counting_composition": _LIGHT | {"change_case:english_lowercase"},
    "count:lowercase_counting": _LIGHT | {"length_constraints:number_words", "change_case:english_capital"},
    "first_word:first_word_sent": _LIGHT | {"length_constraints:number_sentences", "last_word:last_word_sent"},
    "last_word:last_word_sent": _LIGHT | {"length_constraints:number_sentences", "first_word:first_word_sent"},
    "keywords:keyword_specific_position": _LIGHT | {"length_constraints:number_words"},
    "keywords:no_adjacent_consecutive": _LIGHT | {"change_case:english_lowercase", "change_case:english_capital"},
    "keywords:start_end": _LIGHT | {"keywords:existence", "keywords:word_once", "change_case:english_lowercase"},
    "copy:repeat_phrase": _LIGHT | {"keywords:existence", "keywords:palindrome", "detectable_format:title"},
    "punctuation:punctuation_dot": _LIGHT - {"letters:letter_counting"} | {"keywords:existence", "keywords:palindrome"},
}
_SHAPED = frozenset(
    {
        "detectable_format:json_format",
        "language:response_language",
        "combination:repeat_prompt",
    }
)
_ENDS = frozenset(
    {
        "startend:end_checker",
        "startend:quotation",
        "detectable_content:postscript",
        "detectable_format:number_bullet_lists",
        "combination:two_responses",
    }
)
_CUT = frozenset(
    {
        "length_constraints:number_paragraphs",
        "length_constraints:nth_paragraph_first_word",
        "detectable_format:multiple_sections",
        "detectable_format:number_bullet_lists",
        "combination:two_responses",
        "detectable_format:title",
        "detectable_content:postscript",
    }
)
_COUNTED = frozenset({"keywords:letter_frequency", "letters:letter_counting2"})
# Families that go with most, and what each cannot stand with.
_BROAD: Mapping[str, frozenset[str]] = {
    "keywords:word_once": _SHAPED,
    "keywords:word_count_different_numbers": _SHAPED,
    "keywords:exclude_word_harder": frozenset({"combination:repeat_prompt"}),
    "count:count_increment_word": _SHAPED,
    "keywords:palindrome": _SHAPED,
    "letters:letter_counting": _SHAPED,
    "letters:letter_counting2": _SHAPED | _COUNTED,
    "first_word:first_word_answer": _SHAPED | _CUT,
    "last_word:last_word_answer": _SHAPED | _ENDS | _CUT,
    "paragraphs:paragraphs": _SHAPED | _CUT | {"paragraphs:paragraphs2"},
    "paragraphs:paragraphs2": _SHAPED | _CUT,
    "punctuation:punctuation_exclamation": frozenset(),
}


def _clash(one: str, other: str) -> bool:
    """Whether the tables say so in this direction."""
    if one in _NARROW and other not in _NARROW[one]:
        return True
    return other in _LISTED.get(one, ()) or other in _BROAD.get(one, ())


def _symmetric() -> dict[str, frozenset[str]]:
    return {
        one: frozenset(other for other in TRAINING if other == one or _clash(one, other) or _clash(other, one))
        for one in TRAINING
    }


CONFLICTS: Mapping[str, frozenset[str]] = _symmetric()


def agree(one: str, others: Iterable[str]) -> bool:
    """Whether a family can join the others; it never joins itself."""
    return not any(other in CONFLICTS[one] for other in others)
