"""The little Markdown that the checks need: fences, rules, list markers, paragraphs. Line by line, in linear time.

It follows CommonMark 0.31 where a check depends on it (fences, thematic breaks, bullet markers) and goes further
where a reader does: typographic bullets count too. It builds no tree and renders nothing.
"""

from __future__ import annotations

import regex

from cascade_plugin_if.words import has_word

_FENCE = regex.compile(r"^[ >]{0,12}(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*+)$")
_RULE = regex.compile(r"^[ >]*+(?:(?:\*[ \t]*+){3,}+|(?:-[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)$")
_BULLET = regex.compile(r"^(?P<indent>[ \t>]*+)(?:[-*+–][ \t\xa0]++|[•◦‣▪▫●○■□➢➤►·∙][ \t\xa0]*+)(?=\S)")
_NUMBERED = regex.compile(r"^(?P<indent>[ \t>]*+)\d{1,9}[.)][ \t]++(?=\S)")
_HEADING = regex.compile(r"^[ >]{0,6}#{1,6}(?:[ \t]|$)")
# The first characters, looked at before a pattern is tried: most lines are plain.
_RULE_MARKS = frozenset("*-_")
_BULLET_MARKS = frozenset("-*+–•◦‣▪▫●○■□➢➤►·∙")
_UNDERSCORES = regex.compile(r"(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")
LEADING_MARKS = regex.compile(r"^[ \t>#*_~`+•\-–\"“”„«'‘’(\[]*+")


def prose_lines(lines: list[str]) -> list[str]:
    """The lines outside fenced code. Where one fence holds the whole answer, what is inside counts as the answer."""
    kept: list[str] = []
    inside: list[str] = []
    mark = ""
    fences = 0
    for line in lines:
        fence = _fence(line)
        if mark:
            if fence and not fence["info"].strip() and fence["mark"].startswith(mark):
                mark = ""
            else:
                inside.append(line)
        elif fence and not ("`" in fence["info"] and fence["mark"][0] == "`"):
            mark, fences = fence["mark"], fences + 1
        else:
            kept.append(line)
    if fences == 1 and not any(line.strip() for line in kept):
        return inside
    return kept


def _fence(line: str) -> regex.Match[str] | None:
    return _FENCE.match(line) if may_be_fenced(line) else None


def may_be_fenced(text: str) -> bool:
    """Whether a fence may stand in the text; where not, it holds no fenced code."""
    return "```" in text or "~~~" in text


def unmarked(text: str) -> str:
    """The text without the marks of emphasis and code; an underscore between letters or digits is none."""
    if "_" in text:  # first, since what stands beside it decides
        text = _UNDERSCORES.sub("", text)
    return text.replace("~~", "").replace("*", "").replace("`", "")


def is_rule(line: str) -> bool:
    """Whether the line is a thematic break (`---`, `***`, `* * *`)."""
    return line.lstrip(" >")[:1] in _RULE_MARKS and _RULE.match(line) is not None


def bullet(line: str) -> int | None:
    """The column at which a bullet item's marker stands; `None` if the line starts none (or is a rule)."""
    match = _BULLET.match(line) if line.lstrip(" \t>")[:1] in _BULLET_MARKS else None
    if match is None or is_rule(line) or not line[match.end() :].strip(" \t*-+"):
        return None
    return _columns(match["indent"])


def is_item(line: str) -> bool:
    """Whether the line starts a bullet or numbered item."""
    is_number = line.lstrip(" \t>")[:1].isdigit() and _NUMBERED.match(line) is not None
    return is_number or bullet(line) is not None


def is_heading(line: str) -> bool:
    """Whether the line is a `#` heading."""
    return "#" in line and _HEADING.match(line) is not None


def indent(line: str) -> int:
    """How far the line's text is indented, in columns."""
    return _columns(line[: len(line) - len(line.lstrip(" \t>"))])


def _columns(space: str) -> int:
    return sum(4 if char == "\t" else 0 if char == ">" else 1 for char in space)


def paragraphs(lines: list[str]) -> list[str]:
    """Blocks of text between blank lines; a fenced block is never cut, and a block without any word is none."""
    blocks: list[list[str]] = [[]]
    mark = ""
    for line in lines:
        fence = _fence(line)
        if mark:
            if fence and not fence["info"].strip() and fence["mark"].startswith(mark):
                mark = ""
        elif fence:
            mark = fence["mark"]
        elif not line.strip():
            blocks.append([])
            continue
        blocks[-1].append(line)
    texts = ("\n".join(block) for block in blocks if block)
    return [text for text in texts if has_word(text)]
