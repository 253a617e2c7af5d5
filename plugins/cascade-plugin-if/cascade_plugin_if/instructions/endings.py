"""The group `startend`: the last words of the answer, and quotation marks around the whole."""

from __future__ import annotations

from random import Random

import regex

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text
from cascade_plugin_if.instructions.keywords import is_spaceless
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold

_DOUBLE = '"“”„‟«»＂『』〝〞❝❞'
_CLOSING = " \t\n*_~`"
_MARK = regex.compile(rf"[{_DOUBLE}]")


def unquoted(text: str) -> str:
    """The text inside the double quotation marks around the whole, or the text itself."""
    return text[1:-1].strip() if is_quoted(text) else text


def is_quoted(text: str) -> bool:
    """Whether double quotation marks hold the whole text, and the first is not closed before the end."""
    if len(text) < 3 or text[0] not in _DOUBLE or text[-1] not in _DOUBLE or not text[1:-1].strip(_DOUBLE + " \n\t"):
        return False
    depth = 0
    for match in _MARK.finditer(text, 0, len(text) - 1):
        depth += 1 if _is_opening(text, match.start()) else -1
        if depth == 0:
            return False
    return True


def _is_opening(text: str, at: int) -> bool:
    mark, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if mark in "„‟«“『〝❝" and not (mark == "“" and before.isalnum()):
        return True
    if mark in "”»』〞❞":
        return False
    return at == 0 or ((before.isspace() or before in "([{—–-*_'‘\\" or before in _DOUBLE) and not after.isspace())


def _quotation(reading: Reading, args: Args) -> bool:
    return is_quoted(reading.text)


def _ending(reading: Reading, args: Args) -> bool:
    """The phrase stands last; closing quotation marks, Markdown marks and white space may follow."""
    phrase = fold(" ".join(args["end_phrase"].split()))
    tail = reading.text[-4 * len(args["end_phrase"]) - 400 :]
    flat = fold(" ".join(tail.split()))
    closing = _CLOSING + _DOUBLE + "'’」"
    while True:
        if flat.endswith(phrase):
            before = flat[: -len(phrase)]
            return not (phrase[0].isalnum() and not is_spaceless(phrase[0]) and before and _joins(before))
        if not flat or flat[-1] not in closing:
            return False
        flat = flat[:-1]


def _joins(before: str) -> bool:
    """Whether the text before a word's first letter makes it part of a longer word."""
    last = before[-1]
    return last.isalnum() or (last in "-'_" and len(before) > 1 and before[-2].isalnum())


def _edit_quotation(draft: str, args: Args, rng: Random) -> str:
    return f'"{draft}"'


def _edit_ending(draft: str, args: Args, rng: Random) -> str:
    gap = "\n\n" if draft.rpartition("\n")[2].startswith("* ") else " "
    return f"{draft.rstrip()}{gap}{args['end_phrase']}"


ENDING = Instruction(
    "startend:end_checker",
    (Argument("end_phrase", text),),
    _ending,
    lambda args: f'End with exactly this: "{args["end_phrase"]}" Nothing follows it.',
    _edit_ending,
    70,
)
QUOTATION = Instruction(
    "startend:quotation",
    (),
    _quotation,
    lambda args: "Put double quotation marks around the whole answer.",
    _edit_quotation,
    90,
)
FAMILIES = (ENDING, QUOTATION)
