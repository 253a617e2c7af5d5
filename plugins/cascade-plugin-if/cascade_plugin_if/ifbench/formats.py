"""The group `format`, what is written: nesting, options, emoji, capitals of a title, a template, white space, quotations."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import regex

from cascade_plugin_if.ifbench.english import MINOR
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold, has_word, words

BRACKETS, QUOTES = 5, 3  # levels
_OPENER = {")": "(", "]": "[", "}": "{"}
_BRACKET = regex.compile(r"[()\[\]{}]")
_EMOJI = r"[\p{Emoji_Presentation}\p{Extended_Pictographic}\p{Regional_Indicator}\u20e3]"
_EMOJI_LAST = regex.compile(rf"{_EMOJI}[\ufe0f\u200d\U000e0020-\U000e007f]*+[\s\p{{P}}]*+$")
_EMOJI_FIRST = regex.compile(rf"[\s\p{{P}}]*?{_EMOJI}")
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_SLOTS = ("[answer]", "[conclusion]", "[outlook]")
_LETTERED = regex.compile(r"\W*[aA]\W+[bB]\W+[cC]\b")
_QUOTED = regex.compile(r"\"[^\"]*+\"|“[^“”]*+”|«[^«»]*+»|„[^„“”]*+[“”]")
_NAMED_MARK = regex.compile(r"['‘’`]\"['‘’`]")


def _parentheses(reading: Reading, args: Args) -> bool:
    return bracket_depth(reading.text) >= BRACKETS


def bracket_depth(text: str) -> int:
    """How many pairs of brackets of any kind, each closed, stand one in the other; what is never closed is no pair."""
    opened: list[tuple[str, int]] = []
    count = dict.fromkeys("([{", 0)
    deepest = 0
    for match in _BRACKET.finditer(text):
        mark = match.group()
        if mark in count:
            opened.append((mark, 0))
            count[mark] += 1
            continue
        if not count[_OPENER[mark]]:
            continue
        inside, last = 0, ""
        while last != _OPENER[mark]:
            last, held = opened.pop()
            count[last] -= 1
            inside = max(inside, held)
        deepest = max(deepest, inside + 1)
        if opened:
            opened[-1] = (opened[-1][0], max(opened[-1][1], inside + 1))
    return deepest


def _quotes(reading: Reading, args: Args) -> bool:
    return quote_depth(reading.text) >= QUOTES


def quote_depth(text: str) -> int:
    """How many pairs of quotation marks stand one in the other, double and single in turn; apostrophes are none."""
    opened: list[tuple[str, int]] = []
    deepest = 0
    for mark in _quotation_marks(text):
        if opened and opened[-1][0] == mark:
            _, inside = opened.pop()
            deepest = max(deepest, inside + 1)
            if opened:
                opened[-1] = (opened[-1][0], max(opened[-1][1], inside + 1))
        else:
            opened.append((mark, 0))
    return deepest


_MARK = regex.compile(r"[\"“”]|(?<!\w)['‘’]|['‘’](?!\w)")


def _quotation_marks(text: str) -> Iterator[str]:
    """The marks in order, as `"` or `'`; a single one behind a letter is an apostrophe unless a single one is open."""
    single = 0
    for match in _MARK.finditer(text):
        if match.group() in '"“”':
            yield '"'
            continue
        before = text[match.start() - 1 : match.start()]
        after = text[match.end() : match.end() + 1]
        if single and not (after.isalnum() and not before.isalnum() and before not in '"“”'):
            single -= 1
        elif before.isalnum():
            continue
        else:
            single += 1
        yield "'"


@functools.lru_cache(maxsize=256)
def _options_of(options: str) -> tuple[frozenset[str], bool]:
    """The options as they are compared, and whether they are letters, which must be given as they stand."""
    is_lettered = _LETTERED.match(options) is not None
    if "/" in options:
        parts = options.split("/")
    elif not is_lettered and regex.search(r"\sor\s", options) and "," not in options:
        parts = regex.split(r"\s+or\s+", options)
    else:
        parts = [part.strip().removeprefix("or ") for part in regex.split(r",|\sor\s", options)]
    found = {part.strip() for part in parts if part.strip()}
    return frozenset(found if is_lettered else map(_bare, found)), is_lettered


def _bare(option: str) -> str:
    return " ".join(regex.sub(r"^[\s\p{P}]+|[\s\p{P}]+$", "", fold(option)).split())


def _options(reading: Reading, args: Args) -> bool:
    options, is_lettered = _options_of(args["options"])
    return (reading.text if is_lettered else _bare(reading.text)) in options


def _lines(reading: Reading, args: Args) -> bool:
    return len(reading.opening) == 1 and all(len(words(line)) < 2 for line in reading.lines)


def _emoji(reading: Reading, args: Args) -> bool:
    """An emoji before or behind the stop of every sentence."""
    found = False
    for block, spans in reading.sentence_blocks:
        for start, end in spans:
            found = True
            if not (_EMOJI_LAST.search(block, max(start, end - 60), end) or _EMOJI_FIRST.match(block, end)):
                return False
    return found


def _title_case(reading: Reading, args: Args) -> bool:
    """Every word with a capital but minor ones inside a line; all in capitals is no title case."""
    if not any(char.islower() for char in reading.text):
        return False
    for line in reading.prose_lines:
        for place, word in enumerate(words(line)):
            if word[0].islower() and (place == 0 or word.casefold() not in MINOR):
                return False
    return bool(reading.words)


def _template(reading: Reading, args: Args) -> bool:
    """The three labels in order, once each, nothing before the first, and something written behind each."""
    text = reading.text.replace("*", "").replace("__", "").strip("# \n")
    places = [text.find(label) for label in _TEMPLATE]
    if places[0] != 0 or places != sorted(places) or any(text.count(label) != 1 for label in _TEMPLATE):
        return False
    ends = [*places[1:], len(text)]
    parts = [text[at + len(label) : end].strip() for at, label, end in zip(places, _TEMPLATE, ends, strict=True)]
    return all(has_word(part) and part.casefold() != slot for part, slot in zip(parts, _SLOTS, strict=True))


def _no_whitespace(reading: Reading, args: Args) -> bool:
    return not any(char.isspace() for char in reading.text)


def _explained(reading: Reading, args: Args) -> bool:
    """Words stand between two quoted phrases and behind the last; a quotation mark that is itself quoted is none."""
    text = _NAMED_MARK.sub(" ", reading.text)
    spans = [match.span() for match in _QUOTED.finditer(text) if has_word(match.group())]
    ends = [start for start, _ in spans[1:]] + [len(text)]
    return bool(spans) and all(has_word(text[end:following]) for (_, end), following in zip(spans, ends, strict=True))


PARENTHESES = Instruction(
    "format:parentheses",
    (),
    _parentheses,
    lambda args: f"Put brackets in brackets, round, square or curly, {BRACKETS} levels deep at least.",
)
NESTED_QUOTES = Instruction(
    "format:quotes",
    (),
    _quotes,
    lambda args: f"Put quotations in quotations, {QUOTES} levels deep at least, in double and single marks by turns.",
)
OPTIONS = Instruction(
    "format:options",
    (Argument("options", text),),
    _options,
    lambda args: f"Give one of these answers and nothing else: {args['options']}",
)
NEWLINE = Instruction("format:newline", (), _lines, lambda args: "Put every word on a line of its own.")
EMOJI = Instruction("format:emoji", (), _emoji, lambda args: "End every sentence with an emoji.")
TITLE_CASE = Instruction(
    "format:title_case",
    (),
    _title_case,
    lambda args: "Write everything in title case, each major word with a capital letter.",
)
TEMPLATE = Instruction(
    "format:output_template",
    (),
    _template,
    lambda args: (
        "Fill in this template and write nothing else: "
        + " ".join(f"{label} {slot}" for label, slot in zip(_TEMPLATE, _SLOTS, strict=True))
    ),
)
NO_WHITESPACE = Instruction("format:no_whitespace", (), _no_whitespace, lambda args: "Use no white space at all.")
EXPLAINED = Instruction(
    "format:quote_unquote",
    (),
    _explained,
    lambda args: "Quote something, and explain each quotation behind it without quotation marks.",
)
FAMILIES = (
    PARENTHESES,
    NESTED_QUOTES,
    OPTIONS,
    NEWLINE,
    EMOJI,
    TITLE_CASE,
    TEMPLATE,
    NO_WHITESPACE,
    EXPLAINED,
)
