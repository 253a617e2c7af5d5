"""Typed values on their way out of and into a process that nobody trusts: JSON with a tag where JSON has no type.

None, booleans, texts, finite floats and integers up to 2**53 are themselves. Anything else is a list that begins with its kind:
`["list", …]`, `["tuple", …]`, `["set", …]`, `["frozenset", …]`, `["dict", key, value, key, value, …]`, `["int", "-0x1f"]`,
`["float", "nan"]`, `["complex", re, im]`, `["bytes", "00ff"]`. A value of a subclass travels as one of the base. Depth and
number of values are bounded on both sides, so nothing that comes back can exhaust who reads it.

Packing runs beside the solution, which may make it say anything; unpacking builds plain values and nothing else.
"""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100
MOST_VALUES = 1_000_000
_EXACT = 1 << 53
_FLOATS = ("nan", "inf", "-inf")


class Unplain(ValueError):
    """No plain data: of another type, too deep, too large; or a text that no `dumps` made."""


def dumps(value: Any) -> str:
    """The value as ASCII text.

    Raises:
        Unplain: it is no plain value.
    """
    try:
        return json.dumps(_Packing().pack(value, 0), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise Unplain("nested too deep") from None


def loads(text: str | bytes) -> Any:
    """The value of a text that `dumps` made.

    Raises:
        Unplain: it is no such text.
    """
    try:
        return _Unpacking().unpack(json.loads(text, parse_constant=_refused), 0)
    except Unplain:
        raise
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError) as cause:
        raise Unplain("no typed value: " + type(cause).__name__) from None


def _refused(name: str) -> Any:
    raise Unplain(name + " is no typed value")


class _Counted:
    """Counts values, and says when they are too many or too deep."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def count(self, depth: int) -> None:
        self._left -= 1
        if depth > DEEPEST:
            raise Unplain(f"nested more than {DEEPEST} deep")
        if self._left < 0:
            raise Unplain(f"more than {MOST_VALUES} values")


class _Packing(_Counted):
    def pack(self, value: Any, depth: int) -> Any:
        self.count(depth)
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, (int, float, complex)):
            return self._number(value)
        if isinstance(value, (bytes, bytearray)):
            return ["bytes", value.hex()]
        if isinstance(value, dict):
            return ["dict", *[self.pack(part, depth + 1) for pair in value.items() for part in pair]]
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind):
                return [kind.__name__, *[self.pack(item, depth + 1) for item in value]]
        raise Unplain("an object of type " + type(value).__name__[:80])

    def _number(self, value: Any) -> Any:
        if isinstance(value, int):
            whole = int(value)
            return whole if -_EXACT <= whole <= _EXACT else ["int", hex(whole)]
        if isinstance(value, float):
            number = float(value)
            return number if abs(number) < float("inf") else ["float", repr(number)]
        whole_complex = complex(value)
        return ["complex", self._number(whole_complex.real), self._number(whole_complex.imag)]


class _Unpacking(_Counted):
    def unpack(self, packed: Any, depth: int) -> Any:
        self.count(depth)
        if not isinstance(packed, list):
            if isinstance(packed, dict):
                raise Unplain("an object is no typed value")
            return packed
        if not packed or not isinstance(packed[0], str):
            raise Unplain("a list without its kind")
        kind, parts = packed[0], packed[1:]
        if kind in ("int", "float", "bytes"):
            return self._atom(kind, parts)
        values = [self.unpack(part, depth + 1) for part in parts]
        if kind == "complex":
            real, imaginary = (float(value) for value in values)
            return complex(real, imaginary)
        if kind == "dict":
            made = {values[index]: values[index + 1] for index in range(0, len(values), 2)}
            if 2 * len(made) != len(values):
                raise Unplain("a key comes twice")
            return made
        makers = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
        if kind not in makers:
            raise Unplain("an unknown kind of value")
        return makers[kind](values)

    def _atom(self, kind: str, parts: list[Any]) -> Any:
        if len(parts) != 1 or not isinstance(parts[0], str):
            raise Unplain(f"{kind} takes one text")
        if kind == "int":
            return int(parts[0], 16)
        if kind == "bytes":
            return bytes.fromhex(parts[0])
        if parts[0] not in _FLOATS:
            raise Unplain("no such float")
        return float(parts[0])
