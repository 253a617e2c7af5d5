"""Answers that go on: sequences with dots, solutions with an integer parameter, antiderivatives with a constant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.node import Node, make, num, substitute, sym, symbols
from cascade_plugin_math.verifier.scalar import Context, equal

_CONSTANTS = ("C", "c", "K", "k", "C_1", "c_1", "C_0", "const")
_PARAMETERS = "nkmljtNKM"


def same(label: Node, answer: Node, context: Context) -> bool | None:
    """Whether two families are one; `None` if the label is none."""
    left, right = parametric(label), parametric(answer)
    if left is not None and right is not None:
        return _same_family(left, right, context)
    if left is not None or right is not None:
        return None
    one, two = _constant(label), _constant(answer)
    if one is None or two is None:
        return None
    if one[1] == two[1] and canonical_equal(label, answer, context):
        return True
    variables = (symbols(one[0]) | symbols(two[0])) - {one[1], two[1]}
    if not variables or one[1] not in ("C", "c", "C_1", "K") or two[1] not in _CONSTANTS:
        return None
    gap = make("add", two[0], make("neg", one[0]))
    fixed = gap
    for index, name in enumerate(sorted(variables)):
        fixed = substitute(fixed, name, num(Fraction(index * 2 + 3, 7)))
    return equal(fixed, gap, context)


def canonical_equal(label: Node, answer: Node, context: Context) -> bool:
    """Plain equality; a value that does not exist is not equal."""
    return equal(label, answer, context)


def _constant(node: Node) -> tuple[Node, str] | None:
    """An antiderivative: the rest of a sum, and the name of its additive constant."""
    if node.op != "add":
        return None
    found = [arg for arg in node.args if arg.op == "sym" and arg.value in _CONSTANTS]
    if len(found) != 1:
        return None
    name = found[0].value
    rest = make("add", *(arg for arg in node.args if arg != found[0]))
    return None if name in symbols(rest) else (rest, name)


def parametric(node: Node) -> tuple[tuple[Node, ...], str] | None:
    """Solutions and their integer parameter: `x = π/4 + nπ, n ∈ Z`."""
    if node.op not in ("list", "and", "cond") or len(node.args) < 2:
        return None
    last = node.args[-1]
    member = last.op == "rel" and last.value == ("in",) and last.args[0].op == "sym" and last.args[1].op == "numset"
    if not member or last.args[1].value not in "ZN":
        return None
    name = last.args[0].value
    items = tuple(_value(item) for item in node.args[:-1])
    return (items, name) if all(name in symbols(item) for item in items) else None


def _value(item: Node) -> Node:
    return item.args[1] if item.op == "rel" and item.value == ("=",) and item.args[0].op == "sym" else item


def _same_family(left: tuple[tuple[Node, ...], str], right: tuple[tuple[Node, ...], str], context: Context) -> bool:
    """Whether each family holds the first members of the other."""
    return _holds(left, right, context) and _holds(right, left, context)


def _holds(whole: tuple[tuple[Node, ...], str], part: tuple[tuple[Node, ...], str], context: Context) -> bool:
    members = [substitute(item, whole[1], num(index)) for item in whole[0] for index in range(-12, 13)]
    asked = [substitute(item, part[1], num(index)) for item in part[0] for index in range(-3, 4)]
    return all(any(equal(member, one, context) for member in members) for one in asked)


def same_sequence(left: Sequence[Node], right: Sequence[Node], one: Callable[[Node, Node], bool]) -> bool:
    """Whether `1, 2, …, n` and `1, 2, 3, …, n` are one sequence: written members equal, and the same ends.

    A longer beginning must go on in the steps of the shorter one.
    """
    cuts = [[at for at, item in enumerate(side) if item.op == "dots"] for side in (left, right)]
    if any(len(cut) != 1 for cut in cuts):
        return False
    heads, tails = zip(
        *((side[: cut[0]], side[cut[0] + 1 :]) for side, cut in zip((left, right), cuts, strict=True)), strict=True
    )
    if len(tails[0]) != len(tails[1]) or not all(map(one, *tails)):
        return False
    short, long = sorted(heads, key=len)
    if not all(map(one, short, long)):
        return False
    values = [rational(item) for item in long]
    if len(short) == len(long):
        return True
    steps = {b - a for a, b in itertools.pairwise(values) if a is not None and b is not None}
    return None not in values and len(steps) == 1 and len(short) >= 2


__all__ = ["same", "same_sequence", "sym"]
