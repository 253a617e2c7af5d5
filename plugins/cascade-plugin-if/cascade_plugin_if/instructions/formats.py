"""The group `detectable_format`, what is counted: bullets, highlights, sections, a title."""

from __future__ import annotations

import functools
from random import Random

import regex

from cascade_plugin_if import drafts, markdown
from cascade_plugin_if.emphasis import highlight_count
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, text, whole
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word

_TIGHT_TITLE = regex.compile(r"(?<![<\w)\]])<<(?=[^\s<>])[^<>\n]*+(?<!\s)>>(?![>\w])")
_PADDED_TITLE = regex.compile(r"^[\s#*_>\"“]*+<<(?!<)(?:[^<>\n]|<(?!<)|>(?!>))++>>[\s*_\"”]*+$")
_CODE_SPAN = regex.compile(r"`[^`\n]++`")
_ORDINALS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_SECTION_TEXT = regex.compile(r"[\p{L}\p{N}]")


def bullet_count(lines: list[str]) -> int:
    """How many bullet items a reader counts: those of a list's outer level; rules and code are none."""
    count, base = 0, -1
    for line in lines:
        at = markdown.bullet(line)
        if at is not None:
            if base < 0 or at < base + 2:
                count += 1
                base = at if base < 0 else min(base, at)
        elif line.strip() and base >= 0 and markdown.indent(line) <= base:
            base = -1
    return count


def _bullets(reading: Reading, args: Args) -> bool:
    return bullet_count(reading.prose_lines) == int(args["num_bullets"])


def _highlights(reading: Reading, args: Args) -> bool:
    has_marks = "*" in reading.text or "_" in reading.text
    return (highlight_count(reading.prose_lines) if has_marks else 0) >= int(args["num_highlights"])


@functools.lru_cache(maxsize=256)
def _section_start(splitter: str) -> regex.Pattern[str]:
    """The splitter at the start of a line, with a number, roman numeral, letter or number word behind it."""
    name = r"\s{1,3}".join(regex.escape(part) for part in splitter.split())
    number = rf"(?P<number>\d{{1,6}}|[ivxlc]{{1,7}}|[a-z]|{_ORDINALS})"
    return regex.compile(rf"^[\s>#*_~`\"“(\[\-]*+{name}[\s*_]{{0,6}}{number}(?![\w])", regex.IGNORECASE)


def section_count(lines: list[str], splitter: str) -> int:
    """How many sections begin with the splitter, are numbered differently, and hold some text."""
    start = _section_start(splitter)
    numbers: set[str] = set()
    current, has_text = "", False
    for line in [*lines, ""]:
        match = start.match(line)
        if match:
            if has_text:
                numbers.add(current)
            current, has_text = match["number"].casefold(), has_word(line[match.end() :])
        elif current:
            has_text = has_text or has_word(line)
    if has_text:
        numbers.add(current)
    return len(numbers - {""})


def _sections(reading: Reading, args: Args) -> bool:
    return section_count(reading.prose_lines, args["section_spliter"]) >= int(args["num_sections"])


def _title(reading: Reading, args: Args) -> bool:
    if "<" not in reading.text:
        return False
    for line in reading.prose_lines:
        plain = _CODE_SPAN.sub("", line)
        found = [match.group() for match in _TIGHT_TITLE.finditer(plain)]
        if _PADDED_TITLE.match(plain):
            found.append(plain)
        if any(has_word(title) for title in found):
            return True
    return False


def _edit_bullets(draft: str, args: Args, rng: Random) -> str:
    items = drafts.items(args["num_bullets"], rng)
    return f"{draft}\n\n" + "\n".join(f"* {item}" for item in items)


def _edit_highlights(draft: str, args: Args, rng: Random) -> str:
    missing = args["num_highlights"] - highlight_count(draft.split("\n"))
    return drafts.highlighted(draft, missing)


def _edit_sections(draft: str, args: Args, rng: Random) -> str:
    parts = drafts.split(draft, args["num_sections"], rng)
    return "\n\n".join(f"{args['section_spliter']} {n}\n{part}" for n, part in enumerate(parts, 1))


def _edit_title(draft: str, args: Args, rng: Random) -> str:
    return f"<<{rng.choice(drafts.TITLES)}>>\n\n{draft}"


BULLETS = Instruction(
    "detectable_format:number_bullet_lists",
    (Argument("num_bullets", whole(1)),),
    _bullets,
    lambda args: f'Include exactly {counted(args["num_bullets"], "Markdown bullet point")}, each on a line with "* ".',
    _edit_bullets,
    25,
)
HIGHLIGHTS = Instruction(
    "detectable_format:number_highlighted_sections",
    (Argument("num_highlights", whole(0)),),
    _highlights,
    lambda args: f"Highlight at least {counted(args['num_highlights'], 'part')} in Markdown, as in *highlighted part*.",
    _edit_highlights,
    24,
)
SECTIONS = Instruction(
    "detectable_format:multiple_sections",
    (Argument("section_spliter", text), Argument("num_sections", whole(1))),
    _sections,
    lambda args: (
        f"Write {counted(args['num_sections'], 'section')}; each begins on a line of its own with {args['section_spliter']} "
        "and its number."
    ),
    _edit_sections,
    30,
)
TITLE = Instruction(
    "detectable_format:title",
    (),
    _title,
    lambda args: "Give the answer a title in double angular brackets, such as <<song of the sea>>.",
    _edit_title,
    52,
)
FAMILIES = (BULLETS, HIGHLIGHTS, SECTIONS, TITLE)
