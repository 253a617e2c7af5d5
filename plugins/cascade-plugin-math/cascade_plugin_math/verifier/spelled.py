"""Numbers in English words: `one hundred and five`, `minus three quarters`, `two and a half`, `three point one four`.

Reads a text that is nothing but one number; anything else, also a list of numbers (`five and six`), is none.
"""

from __future__ import annotations

import re
from fractions import Fraction

from cascade_plugin_math.verifier.tables import listed

_SMALL = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_UNITS = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * value for value, word in enumerate(_TENS, 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "quarter": 4} | {
    word: value for value, word in enumerate(listed("third fourth fifth sixth seventh eighth ninth tenth"), 3)
}
_PARTS |= {"twelfth": 12, "hundredth": 100, "thousandth": 1000}
_NUMBERS = frozenset((*_UNITS, *_SCALES, *_PARTS, "hundred", "dozen", "halves", "both"))
_LONGEST = 24  # words


def says_number(text: str) -> bool:
    """Whether a word of the text, in whatever case, is part of a number."""
    words = re.findall(r"[a-z]+", text.lower())
    return any(word in _NUMBERS or word.removesuffix("s") in _NUMBERS for word in words)


def value(said: str) -> Fraction | None:
    """The number that words in lower case, without hyphens, say; `None` if they say none."""
    words = said.split()
    if not 0 < len(words) <= _LONGEST:
        return None
    if words[0] in ("negative", "minus"):
        size = _size(words[1:])
        return None if size is None else -size
    return _size(words)


def _size(words: list[str]) -> Fraction | None:
    whole = _whole(words)
    if whole is not None:
        return Fraction(whole)
    if "point" in words:
        at = words.index("point")
        return _decimal(words[:at], words[at + 1 :])
    part = _part(words)
    if part is not None or "and" not in words:
        return part
    at = len(words) - 1 - words[::-1].index("and")  # `two hundred and one and a half`
    whole, part = _whole(words[:at]), _part(words[at + 1 :])
    return whole + part if whole and part is not None and 0 < part < 1 else None


def _part(words: list[str]) -> Fraction | None:
    """`a half`, `three quarters`, `twenty one hundredths`; a singular after a number, `twenty fifth`, is an ordinal."""
    *before, last = words or [""]
    if last in _PARTS:
        is_one = before in (["a"], ["an"], ["one"]) or (not before and last in ("half", "quarter"))
        return Fraction(1, _PARTS[last]) if is_one else None
    name = "half" if last == "halves" else last.removesuffix("s")
    count = _whole(before) if name in _PARTS else None
    return Fraction(count, _PARTS[name]) if count else None


def _decimal(whole: list[str], digits: list[str]) -> Fraction | None:
    front = _whole(whole) if whole else 0
    values = [_SMALL.index(word) if word in _SMALL[:10] else -1 for word in digits]
    if front is None or not values or -1 in values:
        return None
    return front + Fraction(int("".join(map(str, values))), 10 ** len(values))


def _whole(words: list[str]) -> int | None:
    """A cardinal number: scales go down, and `and` only joins what is below a hundred to a larger number."""
    total, least = 0, 10**15
    group: list[str] = []
    for word in words:
        if word not in _SCALES:
            group.append(word)
            continue
        count = 1 if group == ["a"] else _below_thousand(group)
        if not count or _SCALES[word] >= least:
            return None
        total, least, group = total + count * _SCALES[word], _SCALES[word], []
    if not group:
        return total or None
    joined = group[1:] if total and group[0] == "and" else group
    rest = _below_thousand(joined)
    return None if rest is None or (total and not rest) else total + rest


def _below_thousand(words: list[str]) -> int | None:
    if len(words) > 1 and words[1] == "hundred":
        count = 1 if words[0] == "a" else _UNITS.get(words[0], 0)
        rest = words[3:] if words[2:3] == ["and"] else words[2:]
        tail = _below_hundred(rest) if rest else 0
        return (
            None
            if not 0 < count < 20 or tail is None or (rest and not tail) or words[-1] == "and"
            else count * 100 + tail
        )
    return _below_hundred(words)


def _below_hundred(words: list[str]) -> int | None:
    if len(words) == 1:
        return _UNITS.get(words[0])
    if len(words) == 2 and words[0] in _TENS and words[1] in _SMALL[1:10]:
        return _UNITS[words[0]] + _UNITS[words[1]]
    return None
