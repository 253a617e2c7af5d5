"""Ratios and times of day: both are written with colons, and mean different things.

`12:30` is a time where the question speaks of time, or where every later part has two digits; else a ratio, which is
its proportions. A ratio of two is also their quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.node import Node, make

Same = Callable[[Node, Node], bool]


def same(label: Node, answer: Node, says_ratio: bool, says_time: bool, equal: Same) -> bool | None:
    """Whether the two are one ratio or one time; `None` if neither is written with a colon."""
    left, right = _parts(label), _parts(answer)
    if left is None and right is None:
        return None
    if left is None or right is None:
        return _quotient(label, answer, says_ratio, equal)
    if len(left) != len(right):
        return False
    if all(map(equal, left, right)):
        return True
    if (
        any(part.op == "dots" for part in (*left, *right))
        or (_is_time(label) and _is_time(answer) and not says_ratio)
        or says_time
    ):
        return False
    zero = [rational(part) == 0 for part in (*left, *right)]
    if any(zero):
        return False
    return all(
        equal(make("mul", left[0], other), make("mul", right[0], mine))
        for mine, other in zip(left[1:], right[1:], strict=True)
    )


def _parts(node: Node) -> tuple[Node, ...] | None:
    return node.args if node.op == "ratio" else None


def _is_time(node: Node) -> bool:
    """Whether the parts look like hours and minutes."""
    later = [rational(part) for part in node.args[1:]]
    return all(value is not None and 0 <= value < 60 and value.denominator == 1 for value in later) and any(
        value is not None and (value >= 10 or value == 0) for value in later
    )


def _quotient(label: Node, answer: Node, says_ratio: bool, equal: Same) -> bool:
    ratio, other = (label, answer) if label.op == "ratio" else (answer, label)
    if len(ratio.args) != 2 or (_is_time(ratio) and not says_ratio) or rational(ratio.args[1]) in (None, Fraction(0)):
        return False
    quotient = make("mul", ratio.args[0], make("inv", ratio.args[1]))
    return equal(quotient, other) if ratio is label else equal(other, quotient)
