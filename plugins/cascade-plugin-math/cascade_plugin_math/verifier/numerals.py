"""Number literals: digits to an exact `Fraction`, whatever they are grouped with.

Grouped thousands (`1,234`, `1{,}234`, `1\\,234`, `1'234`, `1 234`), decimals, repeating decimals (`0.\\overline{36}`,
`0.(36)`, `0.333\\ldots`), E-notation, prefixes (`0xFF`) and numerals of a base. A comma groups only where three digits
follow and no bracket is open, so that `(1,234)` stays a pair. Work is bounded by `MAX_DIGITS`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable, num

MAX_DIGITS = 20_000
_CHUNK = 4_000
_SEPARATORS = r",\\! |,\\!|,\\,|,|\{,\}|\\,|\\;|\\:|\\ |~|'|\\_|_| "
_INNER = r"\{,\}|\\,|\\;|\\:|\\ |~|'|\\_|_| "


def _grouped(separators: str, point: str) -> re.Pattern[str]:
    return re.compile(rf"[1-9]\d{{0,2}}({separators})\d{{3}}(?:\1\d{{3}})*(?!\d)(?:{point}(\d+))?")


_GROUPED = _grouped(_SEPARATORS, r"\.")
_GROUPED_INSIDE = _grouped(_INNER, r"\.")
_GROUPED_COMMA = _grouped(r"\.|\\,|\\;|\\:|\\ |~|'| ", r"(?:,|\{,\})")
_PREFIXED = re.compile(r"0(?:[xX]([0-9a-fA-F]+)|[bB]([01]+)|[oO]([0-7]+))(?![0-9A-Za-z])")
_REPEATING = re.compile(
    r"(\d*)\.(\d*)(?:\\(?:overline|bar)\s*(?:\{(\d+)\}|(\d))|\((\d+)\)|"
    r"\\dot\s*\{?(\d)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?)"
)
_ENDLESS = re.compile(
    r"(\d{0,40})\.(\d{0,40}?)(?:(\d)\3{2,40}|(\d{2,20}?)\4{1,20})\s*(?:\\ldots|\\dots|\\cdots|\.\.\.)"
)
_DECIMAL = re.compile(r"\d+(?:\.\d+)?|\.\d+")
_DECIMAL_COMMA = re.compile(r"\d+(?:(?:,|\{,\})\d+|\.\d+)?|[.,]\d+")
_COMMA_IN_BRACES = re.compile(r"(\d+)\{,\}(\d+)")
_EXPONENT = re.compile(r"(?:[eE](\d{1,6})|E([+-]\d{1,6}))(?![\dA-Za-z.])")
_EXPONENT_SIGNED = re.compile(r"[eE]([+-]?\d{1,6})(?![\dA-Za-z.])")


def integer(digits: str, base: int = 10) -> int:
    """Digits of that base to an integer, past the interpreter's own limit on digits.

    Raises:
        TooMuch: more than `MAX_DIGITS` digits.
        Unreadable: a digit that the base has not.
    """
    if len(digits) > MAX_DIGITS:
        raise TooMuch("a number of too many digits")
    try:
        if base != 10 or len(digits) <= _CHUNK:
            return int(digits or "0", base)
        value = 0
        for begin in range(0, len(digits), _CHUNK):
            chunk = digits[begin : begin + _CHUNK]
            value = value * 10 ** len(chunk) + int(chunk)
        return value
    except ValueError:
        raise Unreadable("digits that the base does not have") from None


def read(text: str, at: int, *, inside: bool, comma: bool, signed_exponent: bool) -> tuple[Node, int]:
    """The number literal at `at`, and where it ends.

    Args:
        inside: a bracket is open, so that a plain comma separates.
        comma: decimal comma, with points between the thousands.
        signed_exponent: read `2e-3` as 0.002 and not as 2e − 3.
    """
    prefixed = _PREFIXED.match(text, at)
    if prefixed:
        digits, base = next((d, b) for d, b in zip(prefixed.groups(), (16, 2, 8), strict=True) if d)
        return num(integer(digits, base)), prefixed.end()
    for pattern, build in ((_REPEATING, _repeating), (_ENDLESS, _endless)):
        match = pattern.match(text, at)
        if match:
            return num(build(match)), match.end()
    whole, part, end = _digits(text, at, inside, comma)
    exponent = (_EXPONENT_SIGNED if signed_exponent else _EXPONENT).match(text, end)
    if exponent is None:
        return _literal(whole, part, 0), end
    return _literal(whole, part, int(exponent[1] or exponent[exponent.re.groups])), exponent.end()


def _digits(text: str, at: int, inside: bool, comma: bool) -> tuple[str, str, int]:
    grouped = (_GROUPED_COMMA if comma else _GROUPED_INSIDE if inside else _GROUPED).match(text, at)
    if grouped and not (grouped[1] == " " and text[grouped.end() :].lstrip().startswith("/")):
        whole = grouped[0][: grouped.start(2) - at - 1] if grouped[2] else grouped[0]
        return re.sub(r"\D", "", whole), grouped[2] or "", grouped.end()
    braced = _COMMA_IN_BRACES.match(text, at)
    if braced:
        return braced[1], braced[2], braced.end()
    match = (_DECIMAL_COMMA if comma and not inside else _DECIMAL).match(text, at)
    if match is None:
        raise Unreadable("no number")
    whole, _, part = match[0].replace("{,}", ".").replace(",", ".").partition(".")
    return whole, part, match.end()


def _literal(whole: str, part: str, exponent: int) -> Node:
    if abs(exponent) > MAX_DIGITS:
        raise TooMuch("an exponent out of all bounds")
    significant = len((whole + part).lstrip("0")) if part or exponent < 0 else 0
    value = Fraction(integer(whole + part)) * Fraction(10) ** (exponent - len(part))
    return num(value, significant)


def _fraction(whole: str, start: str, period: str) -> Fraction:
    head = Fraction(integer(whole + start), 10 ** len(start))
    return head + Fraction(integer(period), (10 ** len(period) - 1) * 10 ** len(start))


def _repeating(match: re.Match[str]) -> Fraction:
    whole, start, braced, single, bracketed, first, between, last = match.groups(default="")
    if len(match[0]) > 400:
        raise TooMuch("a period of too many digits")
    return _fraction(whole, start, braced or single or bracketed or first + between + last)


def _endless(match: re.Match[str]) -> Fraction:
    return _fraction(match[1], match[2], match[3] or match[4])
