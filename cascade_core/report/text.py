"""Numbers and strangers' text, made fit to print.

Responses are hostile input. Jinja's autoescape keeps markup from being markup; `visible` does what escaping cannot: it shows
control characters, lone surrogates and characters that turn the direction of text as visible signs, so that no response
can break the file or disguise what it says. It touches nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MINUS = "−"

# C0 without tab and line feed, DEL, C1, lone surrogates, non-characters, line separators and the controls of
# bidirectional text (Unicode Annex 9): the last can make a line read other than it is.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True)
class Clip:
    """A text cut in its middle: the end is kept, for that is where answers stand. `omitted` counts characters."""

    head: str
    omitted: int = 0
    tail: str = ""


def visible(text: str) -> str:
    """The same text with every unfit character as a sign that can be seen: `⟨U+0000⟩`, `⟨U+202E⟩`, `⟨U+D800⟩`."""
    return _UNFIT.sub(_sign, text)


def _sign(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def clip(text: str, limit: int) -> Clip:
    """At most about `limit` characters of a text: its beginning and its end."""
    if len(text) <= limit + 40:
        return Clip(text)
    half = limit // 2
    return Clip(text[:half], len(text) - 2 * half, text[-half:])


def decimals(scale: float) -> int:
    """How many decimals to show of numbers whose largest magnitude is `scale`."""
    return 3 if scale <= 1 else 2 if scale < 10 else 1 if scale < 1000 else 0


def plain(value: float, digits: int = 3) -> str:
    """A number with a real minus sign, never `−0.000`."""
    shown = f"{value:,.{digits}f}"
    return shown.lstrip("-") if not float(shown.replace(",", "")) else shown.replace("-", MINUS)


def signed(value: float, digits: int = 3) -> str:
    """A difference, with its sign."""
    shown = plain(value, digits)
    return shown if shown.startswith(MINUS) else f"+{shown}"


def short(value: float) -> str:
    """About three significant digits: what a curve's heading says."""
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}".replace("-", MINUS)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return plain(value, digits)


def duration(seconds: float) -> str:
    """Seconds in the largest two units that say something."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def moment(seconds: float | None) -> str:
    """A time of day in UTC, or `""` where there is none that a calendar knows."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds is not None else ""
    except (OverflowError, ValueError, OSError):
        return ""


def shown(value: Any) -> str:
    """A JSON value for people: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
