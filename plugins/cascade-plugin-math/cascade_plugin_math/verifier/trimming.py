"""What an answer carries beside its value: `\\therefore` before it, a check mark behind it, its own rounding in brackets.

Works on plain text before it is read. A rounding becomes `\\approx`, so that the rule for chains checks it; nothing else that
has a value is dropped.
"""

from __future__ import annotations

import re

from cascade_plugin_math.verifier import spelled

_LEADS = ("\\therefore", "\\implies", "\\Rightarrow", "\\Longrightarrow", "∴")
_ORNAMENTS = (
    "\\checkmark",
    "\\blacksquare",
    "\\square",
    "\\Box",
    "\\qedsymbol",
    "\\qed",
    "✓",
    "✔",
    "✔\ufe0f",
    "✅",
    "■",
    "□",
    "∎",
)
_BLANKS = ("\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad", "\\qquad", " ")
_ROUNDING = re.compile(
    r"(?:[\s,~]|\\[,;: ]|\\q?quad(?![A-Za-z]))*(?:\\text\s*\{\s*)?(?:\(\s*)?(?:\\text\s*\{\s*)?(?:or\s+)?"
    r"(?:\\approx(?![A-Za-z])|(?:approximately|approx\b\.?|about|roughly))\s*(?:\}\s*)?(?:\\approx(?![A-Za-z])\s*)?(?:\$\s*)?"
    r"(-?\d{1,40}(?:[.,]\d{1,40})*)(?:\\?\.\.\.|\\[lc]?dots)?\s*(?:\$\s*)?"
    r"(?:(\\(?:text|mathrm)\s*)?(?:\{\s*)?([A-Za-z]{1,12})\s*(?:\}\s*)?)?(?:\)\s*)?(?:\}\s*)?\)?$"
)
_OF_A = re.compile(r"(?<=[\d}])(\s*\\text\s*\{)?\s*\bof\s+(?:an?|the)\s+(?!form\b)([a-z]{3,})")


def trimmed(text: str) -> str:
    """The text without them; the text itself where nothing else would be left."""
    while text.startswith(_LEADS):
        lead = next(lead for lead in _LEADS if text.startswith(lead))
        rest = text[len(lead) :].lstrip()
        if not rest or text[len(lead)].isalpha():
            break
        text = rest
    if text.endswith(_ORNAMENTS):
        text = _unadorned(text)
    if " of " in text:
        text = _OF_A.sub(_thing, text, count=1)
    return _rounded(text) if "approx" in text or "about" in text or "roughly" in text else text


def _thing(match: re.Match[str]) -> str:
    """`of the cake` as the unit `cake`; as it is where another number follows, as in `2 of the six`."""
    rest = match[2] + match.string[match.end() :]
    if spelled.says_number(rest) or any(char.isdigit() for char in rest):
        return match[0]
    return f"{match[1]} {match[2]}" if match[1] else rf"\text{{ {match[2]}}}"


def _unadorned(text: str) -> str:
    """The text without the ornaments at its end and the blanks before each; step by step, as a pattern would look at every blank in it."""
    end = len(text)
    while mark := next((mark for mark in (*_ORNAMENTS, *_BLANKS) if text.endswith(mark, 0, end)), ""):
        end -= len(mark)
    return text[:end] or text


def _rounded(text: str) -> str:
    """`2\\sqrt2 \\text{ (about 2.83)}` as `2\\sqrt2 \\approx 2.83`."""
    match = _ROUNDING.search(text[-400:])
    exact = text[-400:][: match.start()] if match else ""
    if match is None or not exact.strip():
        return text
    closing = match[0].count("}") - match[0].count("{")  # 1: the rounding stands within the text of a unit
    if closing not in (0, 1):
        return text
    unit = match[3] or ""
    if len(unit) > 1 or "\\text" in match[0] or match[2] or closing:  # one italic letter is a factor
        unit = rf"\text{{ {unit}}}"
    return rf"{text[:-400]}{exact}{'}' * closing} \approx {match[1]}{unit}"
