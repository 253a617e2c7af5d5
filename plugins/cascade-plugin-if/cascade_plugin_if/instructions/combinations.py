"""The group `combination`: two different answers, and the request repeated before the answer."""

from __future__ import annotations

from random import Random

import regex

from cascade_plugin_if import drafts
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text
from cascade_plugin_if.instructions.endings import unquoted
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word

SEPARATOR = "******"
_SEPARATOR = regex.compile(r"(?<![^\s])\*{6}(?![^\s])")
_LABEL = regex.compile(r"^(?:response|answer|version|option|reply)[ ]?(?:\d{1,2}|[a-z]|one|two)?[ ]?[:.)\-][ ]?")
_FENCED_LINE = regex.compile(r"^[ >]{0,3}(?:`{3,}|~{3,})", regex.MULTILINE)


def _two(reading: Reading, args: Args) -> bool:
    parts = _SEPARATOR.split(reading.text)
    if not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return len(parts) == 2 and all(has_word(part) for part in parts) and _bare(parts[0]) != _bare(parts[1])


def _bare(part: str) -> str:
    """What makes two answers the same to a reader: white space, marks, capitals, last stop and label do not count."""
    flat = " ".join(part.replace("*", "").replace("_", "").replace("`", "").casefold().split())
    return _LABEL.sub("", flat.lstrip("# ")).rstrip(" .!")


def _repeat(reading: Reading, args: Args) -> bool:
    """The request first, word for word and in its case, then an answer; line breaks and spacing may differ."""
    wanted = args["prompt_to_repeat"].split()
    return any(_starts_with(text, wanted) for text in (reading.text, unquoted(reading.text)))


def _starts_with(text: str, wanted: list[str]) -> bool:
    position = 0
    for place, word in enumerate(wanted):
        if not text.startswith(word, position):
            return False
        position += len(word)
        rest = text[position : position + 1]
        if place < len(wanted) - 1 and not rest.isspace():
            return False
        while position < len(text) and text[position].isspace():
            position += 1
    joins = rest.isalnum() and wanted[-1][-1].isalnum()
    return not joins and has_word(text[position:])


def _edit_two(draft: str, args: Args, rng: Random) -> str:
    first, second = drafts.split(draft, 2, rng)
    return f"{first}\n{SEPARATOR}\n{second}"


def _edit_repeat(draft: str, args: Args, rng: Random) -> str:
    return f"{args['prompt_to_repeat']}\n\n{draft}"


TWO = Instruction(
    "combination:two_responses",
    (),
    _two,
    lambda args: f"Give two different answers, and only these, with a line of six asterisks between them: {SEPARATOR}",
    _edit_two,
    40,
)
REPEAT = Instruction(
    "combination:repeat_prompt",
    (Argument("prompt_to_repeat", text),),
    _repeat,
    lambda args: (
        "Start with a copy of the request, word for word and with nothing before it, and answer after it. "
        f"The request to copy: {args['prompt_to_repeat']}"
    ),
    _edit_repeat,
    60,
)
FAMILIES = (TWO, REPEAT)
