"""The group `format`, how lines are laid out: stairs, lists with a mark of their own, theses, bullets with and under bullets."""

from __future__ import annotations

import itertools

import regex

from cascade_plugin_if import markdown, sentences
from cascade_plugin_if.ifbench.ratios import kind
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, text
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word

_STAR = regex.compile(r"^[ \t>]*+\*(?:[ \t\xa0]++(?=\S)|(?=[^\s*][^*]*+$))")  # `*so` is an item too, `*so*` is not
_DASH = regex.compile(r"^[ \t>]*+-[ \t\xa0]++(?=\S)")
_THESIS = regex.compile(
    r"[\s>*_]*+<(?P<tag>i|em)\b[^<>]*+>(?P<thesis>.*?)</(?P=tag)\s*>", regex.IGNORECASE | regex.DOTALL
)
_HTML_HEADING = regex.compile(r"^[ ]{0,3}<h[1-6]\b", regex.IGNORECASE)
_BOLD_LINE = regex.compile(r"^[ ]{0,3}(?:\*\*|__)(?!\s)[^*_]++(?:\*\*|__):?[ ]*+$")
_TAG = regex.compile(r"</?[A-Za-z][^<>]{0,200}>")
_ITEM_GAP = " \t>*_#"
LEAST = 2  # items, sentences, lines


def _stairs(reading: Reading, args: Args) -> bool:
    """Each line that is not blank begins further right than the one before."""
    lines = [line.expandtabs(4) for line in reading.prose_lines if line.strip()]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    return len(indents) >= LEAST and all(one < other for one, other in itertools.pairwise(indents))


def _list(reading: Reading, args: Args) -> bool:
    """Two items at least begin with the mark, and none with a bullet instead."""
    mark = args["sep"]
    lines = [line.lstrip(_ITEM_GAP if mark[0] not in _ITEM_GAP else " \t>") for line in reading.prose_lines]
    items = [line for line in lines if line.startswith(mark) and has_word(line[len(mark) :])]
    bullets = [
        line for line in reading.prose_lines if markdown.bullet(line) is not None and not line.lstrip().startswith(mark)
    ]
    marked = [line for line in bullets if not line.lstrip(" \t>*-+•").startswith(mark)]
    return len(items) >= LEAST and not marked


def _theses(reading: Reading, args: Args) -> bool:
    """Each section that a heading opens begins with a thesis and goes on; without headings the answer is one section."""
    sections: list[list[str]] = [[]]
    headed = False
    for line in reading.prose_lines:
        if markdown.is_heading(line) or _HTML_HEADING.match(line) or _BOLD_LINE.match(line):
            headed = True
            sections.append([])
        else:
            sections[-1].append(line)
    texts = ["\n".join(section) for section in (sections[1:] if headed else sections)]
    filled = [text for text in texts if has_word(text)]
    return bool(filled) and all(map(_has_thesis, filled))


def _has_thesis(section: str) -> bool:
    match = _THESIS.match(section)
    return (
        match is not None
        and has_word(_TAG.sub(" ", match["thesis"]))
        and has_word(_TAG.sub(" ", section[match.end() :]))
    )


def _sub_bullets(reading: Reading, args: Args) -> bool:
    """A dash below each asterisk, not further left than it."""
    waiting: int | None = None
    bullets = 0
    for line in reading.prose_lines:
        star, dash = _STAR.match(line), _DASH.match(line)
        if star and not markdown.is_rule(line):
            if waiting is not None:
                return False
            waiting, bullets = markdown.indent(line), bullets + 1
        elif dash and waiting is not None and not markdown.is_rule(line) and markdown.indent(line) >= waiting:
            waiting = None
    return bullets > 0 and waiting is None


def _sentences_then_bullets(reading: Reading, args: Args) -> bool:
    """Two statements with a stop before the first asterisk, and two asterisks at least."""
    lines = reading.prose_lines
    stars = [number for number, line in enumerate(lines) if _STAR.match(line) and not markdown.is_rule(line)]
    if len(stars) < LEAST:
        return False
    before = sentences.split(lines[: stars[0]])
    return sum(kind(sentence) == "." and "." in sentence[-6:] for sentence in before) >= LEAST


STAIRS = Instruction(
    "format:line_indent", (), _stairs, lambda args: "Indent every line further than the line before, like stairs."
)
LIST = Instruction(
    "format:list",
    (Argument("sep", text),),
    _list,
    lambda args: f"Answer with a list whose items begin with {args['sep']} and not with bullets.",
)
THESES = Instruction(
    "format:thesis",
    (),
    _theses,
    lambda args: "Begin every section with its thesis in italics, marked in HTML.",
)
SUB_BULLETS = Instruction(
    "format:sub-bullets",
    (),
    _sub_bullets,
    lambda args: "Write bullet points with * and below each of them at least one with -.",
)
BULLETS = Instruction(
    "format:no_bullets_bullets",
    (),
    _sentences_then_bullets,
    lambda args: "Write two sentences or more that end with a period, and then two bullet points or more with *.",
)
FAMILIES = (STAIRS, LIST, THESES, SUB_BULLETS, BULLETS)
