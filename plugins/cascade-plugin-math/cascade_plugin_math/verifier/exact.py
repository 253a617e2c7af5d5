"""Exact rational values: a tree to a `Fraction`, or nothing.

Every step is bounded by the number of bits of its result, reckoned before it is computed: `9^(9^9)` and `(20!)!` cost
nothing. What is not rational, or has a variable, has no value here; `numeric` looks at it next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from cascade_plugin_math.verifier.node import Node, TooMuch
from cascade_plugin_math.verifier.vocabulary import takes

MAX_BITS = 150_000
MAX_FACTORIAL = 6_000
MAX_TERMS = 2_000


def rational(node: Node) -> Fraction | None:
    """The value of the tree, or `None` where it has no rational one.

    Raises:
        TooMuch: the value would have more than `MAX_BITS` bits.
    """
    if node.op == "num":
        return node.value  # type: ignore[no-any-return]
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    values = []
    for arg in node.args:
        value = rational(arg)
        if value is None:
            return None
        values.append(value)
    result = rule(node, values)
    if result is not None and _bits(result) > MAX_BITS:
        raise TooMuch("a number of too many digits")
    return result


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _product(node: Node, values: list[Fraction]) -> Fraction:
    total = Fraction(1)
    for value in values:
        total *= value
        if _bits(total) > MAX_BITS:
            raise TooMuch("a number of too many digits")
    return total


def _inverse(node: Node, values: list[Fraction]) -> Fraction | None:
    return 1 / values[0] if values[0] else None


def power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """`base` to the `exponent`, where that is rational.

    Raises:
        TooMuch: the result would be too long.
    """
    if exponent.denominator != 1:
        return None
    if base in (0, 1, -1):
        if base == 0:
            return Fraction(1) if exponent == 0 else Fraction(0) if exponent > 0 else None
        return Fraction(1) if base == 1 or exponent.numerator % 2 == 0 else Fraction(-1)
    if _bits(base) * abs(exponent.numerator) > MAX_BITS * 2:
        raise TooMuch("a power of too many digits")
    return base ** int(exponent)


def _root(node: Node, values: list[Fraction]) -> Fraction | None:
    body, index = values
    if index.denominator != 1 or not 1 <= index <= 64 or (body < 0 and index % 2 == 0):
        return None
    top, bottom = _whole_root(abs(body.numerator), int(index)), _whole_root(body.denominator, int(index))
    if top is None or bottom is None:
        return None
    return Fraction(top if body > 0 else -top, bottom)


def _whole_root(value: int, index: int) -> int | None:
    if index == 2:
        root = math.isqrt(value)
    else:
        root = 0
        for bit in range(value.bit_length() // index, -1, -1):
            if (root | 1 << bit) ** index <= value:
                root |= 1 << bit
    return root if root**index == value else None


def _whole(value: Fraction, most: int = MAX_FACTORIAL) -> int | None:
    """A non-negative integer that is small enough to count to."""
    if value.denominator != 1 or value < 0:
        return None
    if value > most:
        raise TooMuch("a factorial of too large a number")
    return int(value)


def _factorial(node: Node, values: list[Fraction]) -> Fraction | None:
    count = _whole(values[0])
    return None if count is None else Fraction(math.factorial(count))


def _double_factorial(node: Node, values: list[Fraction]) -> Fraction | None:
    count = _whole(values[0])
    return None if count is None else Fraction(math.prod(range(count, 0, -2)))


def _choose(values: list[Fraction], count: Callable[[int, int], int]) -> Fraction | None:
    if len(values) != 2 or any(value.denominator != 1 or value < 0 for value in values):
        return None
    top, bottom = int(values[0]), int(values[1])
    least = min(bottom, top - bottom) if count is math.comb else bottom
    if least > MAX_FACTORIAL or least * top.bit_length() > MAX_BITS:
        raise TooMuch("a binomial coefficient of too large numbers")
    return Fraction(count(top, bottom))


def _integers(values: list[Fraction]) -> list[int] | None:
    return [int(value) for value in values] if all(value.denominator == 1 for value in values) else None


def _whole_function(values: list[Fraction], function: Callable[..., int]) -> Fraction | None:
    integers = _integers(values)
    return None if integers is None else Fraction(function(*integers))


def _modulo(values: list[Fraction]) -> Fraction | None:
    return values[0] % values[1] if len(values) == 2 and values[1] else None


_FUNCTIONS: dict[str, Callable[[list[Fraction]], Fraction | None]] = {
    "abs": lambda values: abs(values[0]),
    "floor": lambda values: Fraction(math.floor(values[0])),
    "ceil": lambda values: Fraction(math.ceil(values[0])),
    "sign": lambda values: Fraction((values[0] > 0) - (values[0] < 0)),
    "max": max,
    "min": min,
    "gcd": lambda values: _whole_function(values, math.gcd),
    "lcm": lambda values: _whole_function(values, math.lcm),
    "mod": _modulo,
    "binom": lambda values: _choose(values, math.comb),
    "perm": lambda values: _choose(values, math.perm),
}


def _function(node: Node, values: list[Fraction]) -> Fraction | None:
    rule = _FUNCTIONS.get(node.value)
    return rule(values) if rule is not None and takes(node.value, len(values)) else None


_RULES: dict[str, Callable[[Node, list[Fraction]], Fraction | None]] = {
    "add": lambda node, values: sum(values, Fraction(0)),
    "mul": _product,
    "neg": lambda node, values: -values[0],
    "inv": _inverse,
    "pow": lambda node, values: power(values[0], values[1]),
    "root": _root,
    "fact": _factorial,
    "dfact": _double_factorial,
    "percent": lambda node, values: values[0] / 100,
    "based": lambda node, values: values[0],
    "fun": _function,
}
