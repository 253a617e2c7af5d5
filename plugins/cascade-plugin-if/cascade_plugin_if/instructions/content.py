"""The group `detectable_content`: placeholders in square brackets, and a postscript."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import regex

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, text, whole
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word, words

# Innermost brackets with a letter inside, on one line; no index (`a[i]`), link, footnote, check box or escaped bracket.
_PLACEHOLDER = regex.compile(r"(?<![A-Za-z0-9_\\!])\[(?!\^)(?=[^\[\]\n]*?\p{L})[^\[\]\n]++(?<!\\)\](?!\()")
_LINK_DEFINITION = regex.compile(r"^ {0,3}\[[^\[\]\n]++\]:[ \t]*+<?(?:\w{2,10}:|www\.|[/#.])[^\n]*+$", regex.MULTILINE)
_CHECK_BOX = regex.compile(r"^[ \t>]*+(?:[-*+•]|\d+[.)])[ \t]++\[[xX]\](?=[ \t])", regex.MULTILINE)
_CODE_SPAN = regex.compile(r"`[^`\n]++`")
_ANY_POSTSCRIPT = regex.compile(r"[*_]{0,3}(?:p\.?\s?){1,3}s\b", regex.IGNORECASE)


def placeholder_count(reading: Reading) -> int:
    """How many `[…]` stand for something to be filled in."""
    if "[" not in reading.text:
        return 0
    prose = _LINK_DEFINITION.sub("", _CHECK_BOX.sub("", _CODE_SPAN.sub("", reading.prose)))
    return sum(1 for _ in _PLACEHOLDER.finditer(prose))


def _placeholders(reading: Reading, args: Args) -> bool:
    return placeholder_count(reading) >= int(args["num_placeholders"])


@functools.lru_cache(maxsize=256)
def _marker(marker: str) -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """A postscript marker, anywhere and where it counts: capitals, spaces inside and a missing last dot make no difference."""
    parts = [regex.escape(part) for part in regex.findall(r"\w+|[^\w\s]", marker.rstrip(".:"))]
    before = r"(?:^[\s>#*_~`\"'“”«(\[\-]*+|(?<=[.!?…][\"'”’»)*_]{0,3}[ \t\n]))"
    bare = r"\s{0,2}".join(parts)
    placed = before + r"[*_]{0,3}" + bare + r"\.?(?!_*+[^\W_]|\.)"
    return regex.compile(bare, regex.IGNORECASE), regex.compile(placed, regex.IGNORECASE)


def _postscript(reading: Reading, args: Args) -> bool:
    """The marker starts a line or follows a sentence; text follows it, and no more text stands in later paragraphs than before it."""
    bare, placed = _marker(args["postscript_marker"])
    lines = reading.prose_lines
    matches = ((number, placed.search(line)) for number, line in enumerate(lines) if bare.search(line))
    found = {number: match for number, match in matches if match}
    if not found:
        return False
    counts = [len(words(line)) for line in lines]
    before = sum(counts)
    tails: _Tails = {(text, own): _Tail(text, 0) for text, own in itertools.product((False, True), repeat=2)}
    for number in reversed(range(len(lines))):
        line = lines[number]
        before -= counts[number]
        if match := found.get(number):
            tail = tails[has_word(line[match.end() :]), True]
            ahead = before + len(words(line[: match.start()]))
            if tail.has_text and ahead and tail.later <= ahead:
                return True
        tails = _before(line, counts[number], tails)
    return False


class _Tail(NamedTuple):
    """What stands from some line to the end: whether the postscript has text, the words of paragraphs that are not its own."""

    has_text: bool
    later: int


_Tails = Mapping[tuple[bool, bool], _Tail]
"""Tails by what came before: whether the postscript has text already, and whether the paragraph is its own."""


def _before(line: str, count: int, tails: _Tails) -> _Tails:
    """The tails one line earlier. Read from the end, so that many markers cost no more than one."""
    if not line.strip():
        return {(text, own): tails[text, own and not text] for text, own in tails}
    owned = {text: tails[text or count > 0, True] for text in (False, True)}
    others = {text: _Tail(tails[text, False].has_text, tails[text, False].later + count) for text in (False, True)}
    starts = _ANY_POSTSCRIPT.match(line.strip()) is not None
    return {(text, own): owned[text] if own or starts else others[text] for text, own in tails}


def _name(number: int) -> str:
    names = ("name", "address", "date", "place", "phone number", "company", "title", "amount", "city", "topic")
    return names[number % len(names)]


def _edit_placeholders(draft: str, args: Args, rng: Random) -> str:
    missing = args["num_placeholders"] - placeholder_count(Reading(draft))
    if missing <= 0:
        return draft
    return f"{draft} Please add {' and '.join(f'[{_name(number)}]' for number in range(missing))}."


def _edit_postscript(draft: str, args: Args, rng: Random) -> str:
    return f"{draft}\n\n{args['postscript_marker']} More about this soon."


PLACEHOLDERS = Instruction(
    "detectable_content:number_placeholders",
    (Argument("num_placeholders", whole(0)),),
    _placeholders,
    lambda args: (
        f"Leave at least {counted(args['num_placeholders'], 'place')} to fill in, in square brackets, such as [name]."
    ),
    _edit_placeholders,
    23,
)
POSTSCRIPT = Instruction(
    "detectable_content:postscript",
    (Argument("postscript_marker", text),),
    _postscript,
    lambda args: f"Close with a postscript that starts with {args['postscript_marker']}",
    _edit_postscript,
    50,
)
FAMILIES = (PLACEHOLDERS, POSTSCRIPT)
