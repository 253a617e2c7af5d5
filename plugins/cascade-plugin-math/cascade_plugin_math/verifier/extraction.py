"""Boxes: the last complete `\\boxed{…}` or `\\fbox{…}` of an answer, with what stands right beside it.

One linear pass that pairs braces, whatever the text. A box that is never closed is no box. Boxes that follow one another
with nothing but separators in between are one list (`\\boxed{3} and \\boxed{8}`), so that offering several values is
never better than offering a list; a box that takes back an earlier one stands for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cascade_plugin_math.verifier.units import is_unit

_START = re.compile(r"\\(?:boxed|fbox)\b\s*|\\(?:boxed|fbox)(?=[\d{])")
_OPENED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BARE = re.compile(
    r"\([^(){}]{1,80}\)|[-+]?\d[\d.,]*\d|[-+]?\d|\\[A-Za-z]+(?:\s*\{[^{}]{0,200}\}){0,2}|(?![A-Za-z]{2})[^\s\\{}$]"
)
_JOINT = re.compile(
    r"[\s$,;.*~&:()\[\]]*(?:\\(?:quad|qquad|text\{\s*(?:and|or)\s*\}|[,;:! \]\[()])|and|or|und|oder|\s|[$,;.*~&:()\[\]])*"
)
_NAMED = re.compile(r"(?<![A-Za-z])([A-Za-z](?:_\{?\w\}?)?)\s*=\s*\$?\s*$")
_HEDGE = re.compile(
    r"\b(?:if (?:that|this|it) (?:is|was|'s)n?'?t? ?(?:wrong|incorrect|not)|otherwise|alternatively|or (?:maybe|perhaps|possibly|else))\b",
    re.I,
)
_AFTER = re.compile(
    r"\s*(?:\$?\s*(\\?%|(?:percent|pct|percentage)\b)|(\^\s*\\circ|\^\s*\{\s*\\circ\s*\}|°)|((?:\\[,;: ]|~)?\s*\\(?:text|mathrm|rm|textrm)\s*\{([^{}]{1,40})\}(?:\^\{?\d\}?)?))"
)
_UNIT_WORD = re.compile(
    r"\s*\$?(?:\\[,;: ]|~)?\s*([A-Za-z]{1,20})(?:/([A-Za-z]{1,20}))?(?:\^\{?\d\}?|[²³])?\s*\$?(?=[.,;!]?\s*(?:$|\n))"
)
_OFFERED = re.compile(
    r"[\s$.,)]*\(?\s*\\?(?:text\{)?\s*(?:or|alternatively|otherwise)\b[\s}:,]*(?:maybe |perhaps |possibly |else |equivalently,? )?(.{1,80})",
    re.S | re.I,
)
_VALUE = re.compile(r"\$([^$]{1,60})\$|\\\((.{1,60}?)\\\)|((?:-?\d[\d.,/]*\d|-?\d)(?:\s*\\?%)?)")
_DISOWNED = re.compile(
    r"\b(?:example of the (?:answer )?format|illustrates? the format|(?:i )?(?:have|has) no answer|just a placeholder|ignore (?:the|that|this) box|"
    r"i (?:do not|don't|cannot|can't|could not|couldn't) (?:know|determine|solve|say|tell|find)|i have no idea)\b",
    re.I,
)


@dataclass(frozen=True)
class Boxed:
    """What stands in the last box or group of boxes; `alternative` is a value that the text offers beside it."""

    text: str
    alternative: str = ""
    disowned: bool = False


@dataclass(frozen=True)
class _Box:
    begin: int
    end: int
    content: str


def boxed(text: str) -> Boxed | None:
    """The last complete box of the text, or `None`."""
    boxes = _boxes(text)
    if not boxes:
        return None
    group = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        if not _joined(text[box.end : group[0].begin]):
            break
        group.insert(0, box)
    contents = _listed(group, text)
    tail = text[group[-1].end : group[-1].end + 400]
    content = ", ".join(contents) if len(contents) > 1 else contents[0] + _beside(tail)
    return Boxed(content, _alternative(tail), bool(_DISOWNED.search(tail)))


def is_boxing(text: str) -> bool:
    """Whether a box is begun, complete or not."""
    return "\\boxed" in text or "\\fbox" in text


def is_cut_off(text: str) -> bool:
    """Whether a box is begun and none is complete: the response was cut off while it answered."""
    return _OPENED.search(text) is not None and boxed(text) is None


def _inner(content: str) -> str:
    """The content of a box within a box, where there is nothing else."""
    for _ in range(20):
        inner = _boxes(content)
        if len(inner) != 1 or content[: inner[0].begin].strip(" $") or content[inner[0].end :].strip(" $"):
            break
        content = inner[0].content.strip()
    return content


def _joined(between: str) -> bool:
    """Whether two boxes belong together: only separators between them, or the second is offered in case."""
    if len(between) >= 200:
        return False
    separators = _NAMED.sub("", between)
    return (len(separators) <= 60 and _JOINT.fullmatch(separators) is not None) or _HEDGE.search(between) is not None


def _listed(group: list[_Box], text: str) -> list[str]:
    """The contents of a group of boxes, with the names before them where every box has one: `x = \\boxed{3}`."""
    contents = [_inner(box.content.strip()) for box in group]
    names = [_NAMED.search(text[max(0, box.begin - 20) : box.begin]) for box in group]
    if len(group) > 1 and all(names):
        contents = [f"{name[1]} = {content}" for name, content in zip(names, contents, strict=True) if name]
    return list(dict.fromkeys(contents))


def _boxes(text: str) -> list[_Box]:
    starts = [match.end() for match in _START.finditer(text)]
    if not starts:
        return []
    partner = _pairs(text, starts[0])
    found: list[_Box] = []
    for match in _START.finditer(text):
        begin = match.end()
        if found and match.start() < found[-1].end:
            continue
        if text[begin : begin + 1] == "{":
            end = partner.get(begin)
            if end is not None:
                found.append(_Box(match.start(), end + 1, text[begin + 1 : end]))
        elif bare := _BARE.match(text, begin):
            found.append(_Box(match.start(), bare.end(), bare[0]))
    return found


def _pairs(text: str, start: int) -> dict[int, int]:
    """Opening braces to closing ones, from `start` on; a backslash takes the next character with it."""
    partner: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text, start):
        if match[0] == "{":
            stack.append(match.start())
        elif match[0] == "}" and stack:
            partner[stack.pop()] = match.start()
    return partner


def _beside(tail: str) -> str:
    """A percent sign, a degree sign or a unit that stands right after the box."""
    match = _AFTER.match(tail)
    word = _UNIT_WORD.match(tail)
    if match is None and word and word[1] != "in" and all(is_unit(part) for part in word.groups() if part):
        return rf"\text{{ {word[0].strip(' $~')}}}"
    if match is None or (match[3] and not all(map(is_unit, re.findall(r"[A-Za-z]+", match[4])))):
        return ""
    return match[0]


def _alternative(tail: str) -> str:
    """A value that is offered right after the box: `\\boxed{7} or 8`."""
    offered = _OFFERED.match(tail)
    value = _VALUE.search(offered[1]) if offered else None
    return next((part for part in value.groups() if part), "") if value else ""
