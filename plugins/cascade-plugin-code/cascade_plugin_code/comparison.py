"""Whether a value that a function returned is the expected one.

Only plain values meet here: what came back was built from text by `harness.typed`, so no method of the solution's is ever
called. Types count: a text is no number, a boolean no integer, None no empty list.

- Integers are exact, however large. A float is an expected integer only if it is that very number.
- An expected float is met within `float_abs` or `float_rel`, by an integer too; NaN by NaN, an infinity by the same one.
- Lists and tuples are one kind, since JSON has only lists. Sets have no order; their items are compared like any other.
- A key of an object that JSON can only write as a text also meets this text: `{1: "a"}` is `{"1": "a"}`.
- `unordered` lets the items of the outermost list come in any order.

Depth is bounded by what `typed` lets through.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.harness.typed import DEEPEST, dumps

TOLERANCE = 1e-6
MOST_UNORDERED = 2_000  # items whose order is free and whose floats are compared pair by pair


@dataclass(frozen=True)
class Comparison:
    """How values are compared."""

    type: str = "equal"
    float_abs: float = TOLERANCE
    float_rel: float = TOLERANCE
    ints_exact: bool = True

    def same(self, found: Any, expected: Any) -> bool:
        """Whether the value found is the expected one."""
        if self.type == "unordered" and isinstance(found, list | tuple) and isinstance(expected, list | tuple):
            return self._same_items(found, expected)
        return self._same(found, expected)

    def _same(self, found: Any, expected: Any) -> bool:
        kind = type(expected)
        if kind in (int, float) and type(found) in (int, float):
            return self._same_number(found, expected)
        if kind in (list, tuple):
            return (
                type(found) in (list, tuple)
                and len(found) == len(expected)
                and all(self._same(one, other) for one, other in zip(found, expected, strict=True))
            )
        if kind is dict:
            return type(found) is dict and self._same_mapping(found, expected)
        if kind in (set, frozenset):
            return type(found) in (set, frozenset) and self._same_items(list(found), list(expected))
        if kind is complex and type(found) is complex:
            return self._same_number(found.real, expected.real) and self._same_number(found.imag, expected.imag)
        return type(found) is kind and bool(found == expected)

    def _same_number(self, found: float, expected: float) -> bool:
        if type(expected) is int and (self.ints_exact or type(found) is float):
            return found == expected
        if type(expected) is float and not math.isfinite(expected):
            return type(found) is float and (found == expected or (math.isnan(found) and math.isnan(expected)))
        try:
            return math.isclose(found, expected, rel_tol=0.0, abs_tol=self._allowed(expected))
        except OverflowError:  # an integer beyond every float
            return False

    def _allowed(self, expected: float) -> float:
        return max(self.float_abs, self.float_rel * abs(float(expected)))

    def _same_mapping(self, found: dict[Any, Any], expected: dict[Any, Any]) -> bool:
        if len(found) != len(expected):
            return False
        if all(type(key) is str for key in expected):
            found = {_json_key(key): value for key, value in found.items()}
        wanted = {_packed(key): value for key, value in expected.items()}
        have = {_packed(key): value for key, value in found.items()}
        return wanted.keys() == have.keys() and all(self._same(have[key], wanted[key]) for key in wanted)

    def _same_items(self, found: Sequence[Any], expected: Sequence[Any]) -> bool:
        """Whether the items can be paired off; what is exactly equal first, the rest one by one."""
        if len(found) != len(expected):
            return False
        left: dict[bytes, list[Any]] = {}
        for item in found:
            left.setdefault(_packed(item), []).append(item)
        unmet = []
        for item in expected:
            equal = left.get(_packed(item))
            if equal:
                equal.pop()
            else:
                unmet.append(item)
        rest = [item for items in left.values() for item in items]
        return len(rest) <= MOST_UNORDERED and self._paired(rest, unmet)

    def _paired(self, found: list[Any], expected: list[Any]) -> bool:
        for item in expected:
            place = next((place for place, other in enumerate(found) if self._same(other, item)), None)
            if place is None:
                return False
            found.pop(place)
        return True


def read(value: Any) -> Comparison:
    """The comparison of a task's answer.

    Raises:
        TaskError: an unknown type or setting.
    """
    if isinstance(value, str):
        value = {"type": value}
    given = reading.mapping(value, "'compare'", ("type", "float_abs", "float_rel", "ints_exact"))
    return Comparison(
        reading.choice(given.get("type", "equal"), "'compare.type'", ("equal", "unordered")),
        float_abs=reading.number(given.get("float_abs", TOLERANCE), "'compare.float_abs'", positive=False),
        float_rel=reading.number(given.get("float_rel", TOLERANCE), "'compare.float_rel'", positive=False),
        ints_exact=reading.switch(given.get("ints_exact", True), "'compare.ints_exact'"),
    )


def _packed(value: Any) -> bytes:
    """The same bytes for what is exactly the same value: sets in any order."""
    if isinstance(value, set | frozenset):
        return b"{" + b",".join(sorted(_packed(item) for item in value)) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(_packed(item) for item in value) + b"]"
    return dumps(value)


def _json_key(key: Any) -> Any:
    """A key as JSON writes it, where it is one that JSON can write only as a text."""
    if type(key) is int:
        return str(key) if abs(key) < 1 << 53 else key
    return json.dumps(key) if key is None or type(key) in (bool, float) else key


_MARKS = ("__float__", "__int__", "__tuple__", "__set__", "__frozenset__", "__bytes__", "__complex__", "__dict__")


def value_of(written: Any, where: str, depth: int = 0) -> Any:
    """A value of a test as it is written in a task's answer, with the marks for what JSON has not.

    Raises:
        TaskError: a mark that is none, or nested too deep.
    """
    if depth > DEEPEST - 10:
        raise TaskError(f"{where} is nested too deep")
    if isinstance(written, list | tuple):
        return [value_of(item, where, depth + 1) for item in written]
    if not isinstance(written, dict):
        return written
    if len(written) == 1 and next(iter(written)) in _MARKS:
        ((mark, content),) = written.items()
        try:
            return _marked(mark, content, where, depth)
        except (ValueError, TypeError) as cause:
            raise (
                cause if isinstance(cause, TaskError) else TaskError(f"{where}: {mark} cannot be {content!r:.60}")
            ) from cause
    return {key: value_of(item, where, depth + 1) for key, item in written.items()}


def _marked(mark: str, content: Any, where: str, depth: int) -> Any:
    if mark == "__float__":
        return float(content)
    if mark == "__int__":
        return int(content, 0) if isinstance(content, str) else int(content)
    if mark == "__bytes__":
        return bytes.fromhex(content)
    inner = value_of(list(content), where, depth + 1)
    if mark == "__complex__":
        real, imaginary = inner
        return complex(real, imaginary)
    if mark == "__dict__":
        return {_frozen(key): item for key, item in inner}
    if mark == "__tuple__":
        return tuple(inner)
    return {"__set__": set, "__frozenset__": frozenset}[mark](map(_frozen, inner))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
