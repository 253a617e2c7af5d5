"""The group `language`: the language of the answer."""

from __future__ import annotations

from typing import Any

from cascade_plugin_if import drafts
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text
from cascade_plugin_if.languages import NAMES, code, is_written_in
from cascade_plugin_if.reading import Reading


def language(value: Any) -> str:
    """Reads a language: a code or an English name."""
    found = code(text(value))
    if found is None:
        raise ValueError("a language code such as 'fr'")
    return found


def _language(reading: Reading, args: Args) -> bool:
    return is_written_in(reading, args["language"])


LANGUAGE = Instruction(
    "language:response_language",
    (Argument("language", language),),
    _language,
    lambda args: f"Write the whole answer in {NAMES[args['language']]} and in no other language.",
    lambda draft, args, rng: drafts.in_language(args["language"], rng),
    0,
)
FAMILIES = (LANGUAGE,)
