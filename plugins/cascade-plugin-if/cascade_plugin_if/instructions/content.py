"""The group `detectable_content`: placeholders in square brackets, and a postscript."""

from __future__ import annotations

import functools
from random import Random

import regex

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, text, whole
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word, words

# Innermost brackets with a letter inside, on one line; no index (`a[i]`), link, footnote, check box or escaped bracket.
_PLACEHOLDER = regex.compile(r"(?<![A-Za-z0-9_\\!])\[(?!\^)(?=[^\[\]\n]*?\p{L})[^\[\]\n]++(?<!\\)\](?!\()")
_LINK_DEFINITION = regex.compile(r"^ {0,3}\[[^\[\]\n]++\]:[ \t]*+<?(?:\w{2,10}:|www\.|[/#.])[^\n]*+$", regex.MULTILINE)
_CHECK_BOX = regex.compile(r"^[ \t>]*+(?:[-*+•]|\d+[.)])[ \t]++\[[xX]\](?=[ \t])", regex.MULTILINE)
_CODE_SPAN = regex.compile(r"`[^`\n]++`")
_POSTSCRIPT_LINE = regex.compile(r"^[\s>#*_~`\"'“”«(\[\-]*+")


def placeholder_count(reading: Reading) -> int:
    """How many `[…]` stand for something to be filled in."""
    prose = _LINK_DEFINITION.sub("", _CHECK_BOX.sub("", _CODE_SPAN.sub("", reading.prose)))
    return sum(1 for _ in _PLACEHOLDER.finditer(prose))


def _placeholders(reading: Reading, args: Args) -> bool:
    return placeholder_count(reading) >= int(args["num_placeholders"])


@functools.lru_cache(maxsize=256)
def _marker(marker: str) -> regex.Pattern[str]:
    """A postscript marker: capitals, spaces inside and a missing last dot make no difference."""
    parts = [regex.escape(part) for part in regex.findall(r"\w+|[^\w\s]", marker.rstrip(".:"))]
    before = r"(?:^[\s>#*_~`\"'“”«(\[\-]*+|(?<=[.!?…][\"'”’»)*_]{0,3}[ \t\n]))"
    return regex.compile(before + r"[*_]{0,3}" + r"\s{0,2}".join(parts) + r"\.?(?!_*+[^\W_]|\.)", regex.IGNORECASE)


def _postscript(reading: Reading, args: Args) -> bool:
    """The marker starts a line or follows a sentence; text follows it, and no more text stands in later paragraphs than before it."""
    pattern = _marker(args["postscript_marker"])
    lines = reading.prose_lines
    counts = [len(words(line)) for line in lines]
    before = 0
    for number, line in enumerate(lines):
        match = pattern.search(line)
        if match:
            ahead = before + len(words(line[: match.start()]))
            own, later = _own_and_later(line[match.end() :], lines, counts, number)
            if own and ahead and later <= ahead:
                return True
        before += counts[number]
    return False


def _own_and_later(rest: str, lines: list[str], counts: list[int], number: int) -> tuple[bool, int]:
    """Whether the marker has text, and how many words stand in later paragraphs that are no postscripts."""
    has_text = has_word(rest)
    later, is_own = 0, True
    for place in range(number + 1, len(lines)):
        if not lines[place].strip():
            is_own = is_own and not has_text
            continue
        if is_own or regex.match(r"[*_]{0,3}(?:p\.?\s?){1,3}s\b", lines[place].strip(), regex.IGNORECASE):
            has_text = has_text or bool(counts[place])
            is_own = True
        else:
            later += counts[place]
    return has_text, later


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
