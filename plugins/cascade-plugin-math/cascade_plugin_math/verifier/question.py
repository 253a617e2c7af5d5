"""What the wording of a question says about its answer: an order, a base, a unit, positive variables.

Only plain statements are read, each with one pattern. Without a question nothing is known, and every rule falls back to its strict
form.
"""

from __future__ import annotations

import re

from cascade_plugin_math.verifier.bases import _NAMES
from cascade_plugin_math.verifier.match import Asked
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.scalar import Context
from cascade_plugin_math.verifier.units import known

MAX_LENGTH = 20_000
_ORDERED = re.compile(r"\b(?:in\s+(?:\w+\s+)?(?:increasing|decreasing|ascending|descending|alphabetical|chronological|this|that)\s+order|in order\b(?! to)|"
                      r"from (?:smallest|least|largest|greatest) to|sorted)\b", re.I)  # fmt: skip
_ASKS_PERCENT = re.compile(
    r"\b(?:what|which|how many)\s+(?:\w+\s+){0,2}?(?:percent|percentage|per cent)\b|\b(?:as|in)\s+(?:a\s+)?(?:percent\b|percentage\b|\\?%)|"
    r"\b(?:find|calculate|determine|compute|give)\s+the\s+(?:\w+\s+)?percentage\b",
    re.I,
)
_RATIO = re.compile(r"\b(?:ratio|ratios|proportion|odds|scale)\b", re.I)
_TIME = re.compile(r"\b(?:what time|o'?clock|a\.?m\.?|p\.?m\.?|HH:MM|hours? and minutes|duration)\b", re.I)
_BASE = re.compile(
    r"\b(?:in|into|to|as a?)\s+(?:a\s+)?(?:base[- ](\d+|[a-z]+)|(binary|octal|hexadecimal|decimal))\b", re.I
)
_IN_UNIT = re.compile(
    r"\bin\s+(?:the unit\s+)?(?:\\?(?:text|mathrm)?\{?)([A-Za-z]+|\$)\}?(?:\^?\{?([23])\}?)?(?=[\s.,?)}$]|$)(?!\s+per\b)",
    re.I,
)
_IN_RATE = re.compile(
    r"\bin\s+(?!dollar|cent|euro|yen|yuan|rupee|pound)([A-Za-z]+)(?:\s+per\s+|/)([A-Za-z]+)\b(?!\s*[/^²³]|\s+(?:per|squared|cubed)\b)"
)
_HOW_MANY = re.compile(r"\bhow many\s+([a-z]{2,})\b", re.I)
_UNIT_WORD = re.compile(r"[A-Za-z]{2,}")
_PER = re.compile(
    r"(?<![A-Za-z\\])(?:\\(?:text|mathrm)\{\s*)?(km|cm|mm|m|ft|mi|kg|g|L)\}?\s*/\s*(?:\\(?:text|mathrm)\{\s*)?(s|h|hr|min|day|m|L|mol)(?![A-Za-z])"
)
_PER_WORD = re.compile(r"\b([A-Za-z]{2,20})\s+per\s+([A-Za-z]{2,20})\b(?!\s+(?:per|squared|cubed)\b)")
_FINDS = r"\b(?:find|compute|determine|calculate|give|what is|what's|what was)\s+(?:(?:the|its|his|her|their)\s+)?(?:\w+\s+){0,2}?"
_SHAPES = tuple(
    (re.compile(pattern.replace("FINDS", _FINDS), re.I), unit)
    for pattern, unit in (
        (r"FINDS(?:speed|velocity)\b|\bhow fast\b", "m/s"),
        (r"FINDSacceleration\b|\bper\s+second\s+(?:squared|per\s+second)\b", "m/s/s"),
        (r"FINDSarea\b|\bsquare\s+(?:\w*met(?:er|re)s?|feet|inches|yards|miles|units)\b", "hectare"),
        (r"FINDSvolume\b|\bcubic\s+(?:\w*met(?:er|re)s?|feet|inches|yards|units)\b", "litre"),
        (r"FINDSdensity\b", "kg/m/m/m"),
    )
)
_LETTER = re.compile(r"(?<![A-Za-z\\])([A-Za-z])(?![A-Za-z])")
_POSITIVE = re.compile(r"(?<![A-Za-z\\])([A-Za-z])\s*(?:>|\\gt\b)\s*0(?![.\d])|positive\s+(?:real\s+)?(?:number|integer|constant|variable)?s?\s*\$?([A-Za-z])\b"
                       r"|(?<![A-Za-z\\])([A-Za-z])\$?\s+(?:is|be|are)\s+(?:a\s+)?positive")  # fmt: skip
_INTEGER = re.compile(r"(?<![A-Za-z\\])([A-Za-z])\$?\s+(?:is|be|are)\s+(?:an?\s+)?(?:positive\s+|non-?negative\s+|natural\s+)?(?:integer|number of|natural|whole)"
                      r"|(?:integer|natural number|whole number)s?\s+\$?([A-Za-z])\b|(?<![A-Za-z\\])([A-Za-z])\s*\\in\s*\\mathbb\{?[ZN]")  # fmt: skip
_ARTICLES = frozenset("aI")


def context(problem: str, policy: Policy) -> Context:
    """What the question says about its variables."""
    text = problem[:MAX_LENGTH]
    return Context(policy, _names(_POSITIVE, text), _names(_INTEGER, text))


def asked(problem: str) -> Asked:
    """What the question says about the form of its answer."""
    text = problem[:MAX_LENGTH]
    base = _BASE.search(text)
    number = 0
    if base:
        word = (base[1] or base[2]).lower()
        number = int(word) if word.isdigit() and len(word) < 3 else _NAMES.get(word, 0)
    # "has" is no plural of the hectare
    said = tuple(word for word in _UNIT_WORD.findall(text) if len(word) > 2 and word != "has" and known(word))[:20]
    pairs = [pair for pair in _PER.findall(text)[:4] if all(map(known, pair))]
    said += tuple(unit for pair in pairs for unit in pair)
    pairs += [pair for pair in _PER_WORD.findall(text)[:20] if all(map(known, pair))]
    shapes = tuple(map("/".join, pairs)) + tuple(unit for pattern, unit in _SHAPES if pattern.search(text))
    wanted = next(
        (match[1] for match in _IN_UNIT.finditer(text) if len(match[1]) > 1 and known(match[1]) and not match[2]), ""
    )
    if not wanted and (rate := _IN_RATE.search(text)) and all(map(known, rate.groups())):
        wanted = "/".join(rate.groups())
    counted = _HOW_MANY.search(text)
    if not wanted and counted and known(counted[1]):
        wanted = counted[1]
    letters = frozenset(_LETTER.findall(_PER.sub(" ", text))) - _ARTICLES
    return Asked(
        ordered=bool(_ORDERED.search(text)),
        percent=bool(_ASKS_PERCENT.search(text)),
        ratio=bool(_RATIO.search(text)),
        time=bool(_TIME.search(text)),
        base=number if 2 <= number <= 36 else None,
        units=said,
        names=letters,
        wanted=wanted,
        shapes=shapes,
    )


def _names(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    return frozenset(name for match in pattern.finditer(text) for name in match.groups() if name)
