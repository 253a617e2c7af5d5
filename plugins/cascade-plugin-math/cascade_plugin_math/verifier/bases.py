"""Numerals with a base: `52_8`, `FF_{16}`, `1101_{\\text{two}}`."""

from __future__ import annotations

from cascade_plugin_math.verifier.node import Node, Unreadable, num
from cascade_plugin_math.verifier.numerals import integer

_NAMES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "sixteen": 16, "twenty": 20, "binary": 2, "bin": 2, "octal": 8, "oct": 8, "decimal": 10, "dec": 10,
    "hexadecimal": 16, "hex": 16,
}  # fmt: skip


def number_of(base: Node) -> int:
    """The base that an index names.

    Raises:
        Unreadable: it names none between 2 and 36.
    """
    value = _NAMES.get(str(base.value).lower(), 0) if base.op == "word" else base.value if base.op == "num" else 0
    if not 2 <= value <= 36 or value != int(value):
        raise Unreadable("an index that is no base")
    return int(value)


def bare(text: str, base: int) -> int | None:
    """The value of a numeral without its base, `-57c6b0` in base 13; `None` where it is none."""
    try:
        return int(text, base) if text.lstrip("-").isalnum() else None
    except ValueError:
        return None


def based(digits: str, base: Node) -> Node:
    """The value of a numeral; it remembers its base and digits as the node's arguments.

    Raises:
        Unreadable: a digit that the base does not have, or no base.
    """
    number = number_of(base)
    whole, _, part = digits.replace(",", "").replace(" ", "").partition(".")
    if not (whole + part).isalnum():
        raise Unreadable("a numeral with signs in it")
    value = num(integer(whole + part, number)).value / number ** len(part)
    return Node(
        "based",
        (num(value),),
        (number, (whole.lstrip("0") or "0").upper() + ("." + part.upper() if part else "")),
        height=2,
    )
