"""Trees to quotients of polynomials with rational coefficients, bounded in size.

A polynomial is a mapping from monomials (sorted pairs of a name and a power) to coefficients. sympy is asked only for what
needs an algorithm: square-free parts and the number and place of real roots, of polynomials whose degree, terms and
coefficients are bounded here first.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.node import Node, TooMuch

MAX_TERMS, MAX_DEGREE, MAX_BITS = 400, 24, 4_000
Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]
Quotient = tuple[Polynomial, Polynomial]
ONE: Polynomial = {(): Fraction(1)}


def quotient(node: Node) -> Quotient | None:
    """Numerator and denominator of the tree, or `None` where it is no quotient of polynomials.

    Raises:
        TooMuch: too many terms, too high a degree, or coefficients too long.
    """
    if node.op == "num":
        return {(): node.value} if node.value else {}, ONE
    if node.op == "sym":
        return {((node.value, 1),): Fraction(1)}, ONE
    if node.op in ("add", "mul"):
        parts = [quotient(arg) for arg in node.args]
        total: Quotient = ({}, ONE) if node.op == "add" else (ONE, ONE)
        for part in parts:
            if part is None:
                return None
            total = _sum(total, part) if node.op == "add" else (times(total[0], part[0]), times(total[1], part[1]))
        return total
    if node.op in ("neg", "inv", "percent"):
        inner = quotient(node.args[0])
        if inner is None or (node.op == "inv" and not inner[0]):
            return None
        if node.op == "inv":
            return inner[1], inner[0]
        return scaled(inner[0], Fraction(-1) if node.op == "neg" else Fraction(1, 100)), inner[1]
    return _power(node) if node.op == "pow" else None


def _power(node: Node) -> Quotient | None:
    exponent = rational(node.args[1])
    base = quotient(node.args[0])
    if exponent is None or base is None or exponent.denominator != 1:
        return None
    if abs(exponent) > MAX_DEGREE:
        raise TooMuch("a polynomial of too high a degree")
    if exponent < 0:
        base = (base[1], base[0])
        if not base[1]:
            return None
    result: Quotient = (ONE, ONE)
    for _ in range(abs(int(exponent))):
        result = times(result[0], base[0]), times(result[1], base[1])
    return result


def _sum(left: Quotient, right: Quotient) -> Quotient:
    if left[1] == right[1]:
        return plus(left[0], right[0]), left[1]
    return plus(times(left[0], right[1]), times(right[0], left[1])), times(left[1], right[1])


def plus(left: Mapping[Monomial, Fraction], right: Mapping[Monomial, Fraction]) -> Polynomial:
    """The sum."""
    total = dict(left)
    for monomial, factor in right.items():
        total[monomial] = total.get(monomial, Fraction(0)) + factor
    return {monomial: factor for monomial, factor in total.items() if factor}


def scaled(polynomial: Mapping[Monomial, Fraction], factor: Fraction) -> Polynomial:
    """The product with a number."""
    return {monomial: value * factor for monomial, value in polynomial.items()}


def times(left: Mapping[Monomial, Fraction], right: Mapping[Monomial, Fraction]) -> Polynomial:
    """The product.

    Raises:
        TooMuch: beyond the bounds of this module.
    """
    if len(left) * len(right) > MAX_TERMS * 4:
        raise TooMuch("a polynomial of too many terms")
    total: Polynomial = {}
    for first, one in left.items():
        for second, two in right.items():
            powers = dict(first)
            for name, power in second:
                powers[name] = powers.get(name, 0) + power
            monomial = tuple(sorted(powers.items()))
            if sum(powers.values()) > MAX_DEGREE:
                raise TooMuch("a polynomial of too high a degree")
            total[monomial] = total.get(monomial, Fraction(0)) + one * two
    result = {monomial: factor for monomial, factor in total.items() if factor}
    longest = max((f.numerator.bit_length() + f.denominator.bit_length() for f in result.values()), default=0)
    if len(result) > MAX_TERMS or longest > MAX_BITS:
        raise TooMuch("a polynomial of too many terms")
    return result


def names(polynomial: Mapping[Monomial, Fraction]) -> list[str]:
    """Its variables, sorted."""
    return sorted({name for monomial in polynomial for name, _ in monomial})


def proportional(left: Mapping[Monomial, Fraction], right: Mapping[Monomial, Fraction]) -> bool:
    """Whether one is a number times the other, and neither is zero."""
    if not left or left.keys() != right.keys():
        return False
    first = next(iter(left))
    factor = right[first] / left[first]
    return all(value * factor == right[monomial] for monomial, value in left.items())


def square_free(polynomial: Mapping[Monomial, Fraction]) -> Any:
    """sympy's `Poly` of its square-free part."""
    import sympy  # type: ignore[import-untyped]

    variables = names(polynomial)
    terms = {
        tuple(dict(monomial).get(name, 0) for name in variables): sympy.Rational(value.numerator, value.denominator)
        for monomial, value in polynomial.items()
    }
    return sympy.Poly.from_dict(terms, *map(sympy.Symbol, variables), domain="QQ").sqf_part()


def same_zeros(left: Mapping[Monomial, Fraction], right: Mapping[Monomial, Fraction]) -> bool:
    """Whether two polynomials vanish at the same (complex) points: their square-free parts are proportional."""
    if not left or not right or names(left) != names(right) or not names(left):
        return False
    if proportional(left, right):
        return True
    one, two = square_free(left).monic(), square_free(right).monic()
    return bool(one == two)


def real_zeros(polynomial: Mapping[Monomial, Fraction], digits: int) -> list[Any]:
    """The distinct real zeros of a polynomial of one variable, to that many digits, in ascending order."""
    if len(names(polynomial)) != 1:
        return []
    part = square_free(polynomial)
    return [zero.evalf(digits) for zero in part.real_roots(multiple=True)] if part.degree() > 0 else []
