"""Answers in words: names, yes and no, `no solution`, number words, lists of things.

Two texts are the same if they name the same things in any order; case, plural, articles and hyphens do not matter, every other
word does. A few fixed phrases mean a piece of mathematics (`all real numbers`) and are given to the reader as such.
"""

from __future__ import annotations

import re

from cascade_plugin_math.verifier import spelled
from cascade_plugin_math.verifier.characters import plain
from cascade_plugin_math.verifier.tables import spaced
from cascade_plugin_math.verifier.units import stem
from cascade_plugin_math.verifier.vocabulary import HEDGES

_COMMANDS = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|textsf|operatorname|emph|mbox|hbox|boxed|bf|rm|it|displaystyle|left|right)\b\*?|\\[,;:! ]|\\q?quad"
)
_SPLIT = re.compile(r"\s*(?:,\s*and\b|,\s*or\b|[,;]|\band\b|\bor\b|\\&|&)\s*")
_ANNOUNCED = re.compile(
    r"\s*(?:\\(?:text|textbf|mathrm)\s*\{\s*([A-Za-z][A-Za-z ]{2,60}?(?::|\s(?:is|are|equals)\s*:?))\s*\}|"
    r"\\(?:text|textbf|mathrm)\s*\{\s*([A-Za-z][A-Za-z ]{2,60}?)\s*\}\s*[=:]|"
    r"((?:the\s+)?(?:(?:final|correct|right)\s+)?(?:answer|result|solution)s?\s*(?::|=|\bis\b|\bare\b))\s*:?|"
    r"(?!lambda\b)([A-Za-z][A-Za-z ]{2,40}:)(?=\s*[-+\d\\$]))\s*",
    re.I,
)
_WHOLE = re.compile(r"\\(?:text|textbf|mathrm)\s*\{([^{}]{1,200})\}")
_ANNOUNCING = spaced("is are equals answer correct right true")
_FILLERS = spaced("the a an number numbers of its")
_PHRASES = {
    "none": "\\{\\}",
    "no solution": "\\{\\}", "no solutions": "\\{\\}", "no real solution": "\\{\\}", "no real solutions": "\\{\\}", "empty set": "\\{\\}",
    "the empty set": "\\{\\}", "no such number": "\\{\\}", "no roots": "\\{\\}", "no real roots": "\\{\\}", "null set": "\\{\\}",
    "all real numbers": "\\mathbb{R}", "all reals": "\\mathbb{R}", "every real number": "\\mathbb{R}", "any real number": "\\mathbb{R}",
    "all real numbers x": "\\mathbb{R}", "all integers": "\\mathbb{Z}", "all natural numbers": "\\mathbb{N}",
    "infinity": "\\infty", "positive infinity": "\\infty", "negative infinity": "-\\infty", "minus infinity": "-\\infty",
}  # fmt: skip
_TEXT = re.compile(r"\\(?:text|textrm|mathrm|mbox)\s*\{([^{}]*)\}")
_REALS = re.compile(
    r"(?:x\s+is\s+)?(?:all|any|every)\s+reals?(?:\s+numbers?|\s+values?)?(?:\s+(?:of\s+)?x)?(?:\s*,|\s+such\s+that|\s+with|\s+where)?\s*"
    r"(?:(x\s*(?:\\neq?(?![A-Za-z])|≠|!=|\\not\s*=).{1,80})|(?:except|excluding|but|other\s+than|besides)(?:\s+for)?\s+(?:x\s*=\s*)?(.{1,80}))",
    re.I | re.S,
)
_AND = re.compile(r"\s*,?\s*\b(?:and|or)\b\s*(?:x\s*=\s*)?|,\s*x\s*=\s*")
_LETTERS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_OPTION = re.compile(r"^(?:(?:the )?(?:option|choice) )?\(?([a-j])\)?$")
_SAME = {
    "the limit does not exist": "does not exist",
    "limit does not exist": "does not exist",
    "it does not exist": "does not exist",
    "true": "yes",
    "false": "no",
    "dne": "does not exist",
    "doesn't exist": "does not exist",
    "nonexistent": "does not exist",
    "n/a": "not applicable",
}


def unlabelled(text: str) -> str:
    """The text without words that only announce it: `Answer: 7`, `\\text{The area is } 7`."""
    whole = _WHOLE.fullmatch(text)
    if whole and (inner := unlabelled(whole[1].strip())) != whole[1].strip():
        return rf"\text{{{inner}}}"
    match = _ANNOUNCED.match(text)
    if match is None or not text[match.end() :].strip():
        return text
    said = re.findall(r"[a-z']+", next(part for part in match.groups() if part is not None).lower())
    return text if any(word in HEDGES and word not in _ANNOUNCING for word in said) else text[match.end() :]


def spoken(text: str) -> str:
    """The words of a text, in lower case, without markup."""
    text = _COMMANDS.sub(" ", plain(text)).replace("{", " ").replace("}", " ").replace("$", " ").replace("~", " ")
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text.lower())
    return " ".join(re.sub(r"[\"“”`*]|(?<![.!:])[.!:]++(?=\s|$)", " ", text).split())


def phrase(text: str) -> str | None:
    """The mathematics that a fixed phrase or a number word means."""
    said = spoken(text)
    reals = _REALS.fullmatch(_TEXT.sub(r" \1 ", text.replace("$", " ")).strip())
    if reals and (reals[1] or not _LETTERS.search(_AND.sub(",", reals[2]))):
        return reals[1] or rf"\mathbb{{R}}\setminus\{{{_AND.sub(',', reals[2])}\}}"
    if said in _PHRASES:
        return _PHRASES[said]
    number = spelled.value(said)
    return None if number is None else str(number)


def is_wordy(text: str) -> bool:
    """Whether the text has words that a person would read aloud, and balanced brackets."""
    said = spoken(re.sub(r"\\(?:begin|end)\s*\{[^{}]*\}|\\(?!text)[A-Za-z]+", " ", text))
    return (
        bool(re.search(r"[^\W\d_]{2,}", said))
        and text.count("{") == text.count("}")
        and text.count("(") == text.count(")")
    )


def same(label: str, answer: str) -> bool:
    """Whether two texts say the same."""
    left, right = (spoken(side) for side in (label, answer))
    left, right = (_OPTION.sub(r"\1", _SAME.get(side, side)) for side in (left, right))
    if not left or not right:
        return False
    if left == right or left.replace(" ", "") == right.replace(" ", ""):
        return True
    return bool(_things(left)) and _things(left) == _things(right)


def _things(said: str) -> frozenset[tuple[str, ...]]:
    items = (item for item in _SPLIT.split(said) if item)
    return frozenset(
        kept for item in items if (kept := tuple(stem(word) for word in item.split() if word not in _FILLERS))
    )
