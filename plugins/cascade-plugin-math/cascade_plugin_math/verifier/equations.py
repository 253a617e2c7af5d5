"""Equations that are no plain `x = value`: equal if they have the same solutions.

Polynomial equations are compared by the square-free part of their numerators (over the complex numbers), others by
whether one is a constant times the other. An equation of one unknown is also equal to the full list of its solutions.
A tautology has no solution set worth naming and equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from cascade_plugin_math.verifier import polynomial
from cascade_plugin_math.verifier.node import Node, TooMuch, make, num, substitute, symbols
from cascade_plugin_math.verifier.scalar import Context, equal

Equal = Callable[[Node, Node, Context], bool]


def difference(node: Node) -> Node:
    """Left side minus right side."""
    return make("add", node.args[0], make("neg", node.args[1]))


def same(label: Node, answer: Node, context: Context) -> bool:
    """Whether two equations have the same solutions.

    Raises:
        TooMuch: it cannot be told within the bounds of this package.
    """
    left, right = difference(label), difference(answer)
    if symbols(left) != symbols(right) or not symbols(left):
        return False
    if equal(num(0), left, context) or equal(num(0), right, context):
        return False
    numerators = [_numerator(side) for side in (left, right)]
    if numerators[0] is not None and numerators[1] is not None:
        return polynomial.same_zeros(numerators[0], numerators[1])
    return _constant_ratio(left, right, context)


def _numerator(node: Node) -> polynomial.Polynomial | None:
    try:
        parts = polynomial.quotient(node)
    except TooMuch:
        return None
    return None if parts is None else parts[0]


def _constant_ratio(left: Node, right: Node, context: Context) -> bool:
    """Whether `right / left` does not depend on any variable and is not zero."""
    ratio = make("mul", right, make("inv", left))
    point = {name: num(Fraction(index + 2, 7)) for index, name in enumerate(sorted(symbols(ratio)))}
    fixed = ratio
    for name, value in point.items():
        fixed = substitute(fixed, name, value)
    return equal(fixed, ratio, context) and not equal(num(0), fixed, context)


def solved_by(equation: Node, values: Sequence[Node], context: Context) -> bool:
    """Whether `values` are all the solutions of an equation of one unknown, over the real or the complex numbers."""
    unknowns = symbols(difference(equation))
    numerator = _numerator(difference(equation))
    if len(unknowns) != 1 or not numerator:
        return False
    name = next(iter(unknowns))
    distinct: list[Node] = []
    for value in values:
        if symbols(value) or not equal(num(0), substitute(difference(equation), name, value), context):
            return False
        if not any(equal(other, value, context) for other in distinct):
            distinct.append(value)
    part = polynomial.square_free(numerator)
    if len(distinct) == part.degree():
        return True
    return len(distinct) == part.count_roots() and all(_is_real(value) for value in distinct)


def _is_real(value: Node) -> bool:
    from cascade_plugin_math.verifier.numeric import Evaluator, Undefined

    evaluator = Evaluator(60)
    try:
        return bool(abs(evaluator.mp.im(evaluator.value(value, {}))) < 1e-40)
    except Undefined:
        return False
