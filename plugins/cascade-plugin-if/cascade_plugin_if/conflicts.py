"""Which families cannot stand in one task: `CONFLICTS`, symmetric, and `agree`.

As in the public generator of IFEval, a table says which pairs are never drawn together. A pair is listed where no
answer, or only a contrived one, follows both: capitals and small letters; two ways to cut the text into parts; a
copy of the request and any change of case; JSON and what shapes running text. Arguments can clash too (a long text of
few words): such draws are found by building the reference, and drawn again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cascade_plugin_if.instructions import REGISTRY

_ALL = frozenset(REGISTRY)
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


def _symmetric() -> dict[str, frozenset[str]]:
    return {
        one: frozenset(
            other for other in _ALL if other == one or other in _LISTED.get(one, ()) or one in _LISTED.get(other, ())
        )
        for one in REGISTRY
    }


CONFLICTS: Mapping[str, frozenset[str]] = _symmetric()


def agree(one: str, others: Iterable[str]) -> bool:
    """Whether a family can join the others; it never joins itself."""
    return not any(other in CONFLICTS[one] for other in others)
