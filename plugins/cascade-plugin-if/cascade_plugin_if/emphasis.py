"""Highlighted parts: `*so*`, `**so**`, `_so_`. Counted once each, as a reader sees them.

Flanking follows CommonMark 0.31, section 6.2, with two differences: emphasis ends on its line, and marks between two
ASCII letters or digits (`2*3*4`, `snake_case`) are none. Bullets, rules, escaped marks and code are no emphasis.
One pass with a stack: linear in the length of the text.
"""

from __future__ import annotations

import regex

from cascade_plugin_if import markdown

_CODE_SPAN = regex.compile(r"(`++)[^`\n]++\1")
_BULLET_MARK = regex.compile(r"^[ \t>]*+(?:[-*+][ \t]++|\d{1,9}[.)][ \t]++)+")
_RUN = regex.compile(r"\\.|\*++|_++")


def highlight_count(lines: list[str]) -> int:
    """How many parts are highlighted; one inside another counts once."""
    return sum(_in_line(_BULLET_MARK.sub("", line)) for line in lines if not markdown.is_rule(line))


def _in_line(line: str) -> int:
    if "*" not in line and "_" not in line:
        return 0
    line = _CODE_SPAN.sub("x", line)
    spans: list[tuple[int, int]] = []
    opened: dict[tuple[str, int], int] = {}
    for match in _RUN.finditer(line):
        run = match.group()
        if run[0] == "\\":
            continue
        key = (run[0], len(run))
        before, after = line[match.start() - 1 : match.start()] or " ", line[match.end() : match.end() + 1] or " "
        if key in opened and _closes(before, after):
            start = opened.pop(key)
            if line[start : match.start()].strip("*_ \t"):
                spans.append((start, match.end()))
        elif _opens(before, after):
            opened[key] = match.end()
    return _outermost(spans)


def _opens(before: str, after: str) -> bool:
    return not after.isspace() and not _is_inner(before, after)


def _closes(before: str, after: str) -> bool:
    return not before.isspace() and not _is_inner(before, after)


def _is_inner(before: str, after: str) -> bool:
    return before.isascii() and before.isalnum() and after.isascii() and after.isalnum()


def _outermost(spans: list[tuple[int, int]]) -> int:
    count, end = 0, -1
    for start, stop in sorted(spans):
        if start > end:
            count, end = count + 1, stop
    return count
