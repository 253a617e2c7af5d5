"""Are two expressions equal? Exact arithmetic first, then values to 60 and 150 digits at fixed points.

Rational values are compared exactly. For the rest both trees are evaluated at several points: equal means that they agree
to all digits wherever both are real, and that there are enough such points. A difference that shrinks with the
precision is zero, one that stays is not: `y = x^2` and `y = x^2 + 10^{-40}` are told apart. No algebra system is
asked, so the work is bounded by the size of the trees alone.
A decimal counts as the number it shows; beside an exact value it may also be that value to double precision.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from cascade_plugin_math.verifier import polynomial
from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.node import Node, TooMuch, canonical, symbols, walk
from cascade_plugin_math.verifier.numeric import Evaluator, Undefined
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.tables import spaced

COARSE, FINE = 60, 150
DOUBLE = Fraction(1, 10**14)
_DOUBLE_DIGITS = 14
_ENOUGH = 3
_INDICES = spaced("n k m j N K M p q")


@dataclass(frozen=True)
class Context:
    """What a comparison may know beside the two answers."""

    policy: Policy = field(default_factory=Policy)
    positive: frozenset[str] = frozenset()
    integers: frozenset[str] = frozenset()


def equal(label: Node, answer: Node, context: Context) -> bool:
    """Whether two expressions have the same value for every value of their variables.

    Raises:
        TooMuch: it cannot be told within the bounds of this package.
    """
    if canonical(label) == canonical(answer):
        return True
    infinite = _infinite(label), _infinite(answer)
    if any(infinite):
        return infinite[0] == infinite[1] and infinite[0] is not None
    left, right = rational(label), rational(answer)
    if left is not None and right is not None:
        return _close(label, answer, left, right, context.policy)
    if left is not None and right is None and _undefined_constant(answer):
        return False
    as_quotients = _same_quotients(label, answer, context)
    return _same_values(label, answer, context) if as_quotients is None else as_quotients


def _same_quotients(label: Node, answer: Node, context: Context) -> bool | None:
    """Whether two quotients of polynomials are the same, exactly; `None` where they are none, or too large."""
    if context.policy.is_loose or _double(label, answer) or not symbols(label) | symbols(answer):
        return None
    try:
        left, right = polynomial.quotient(label), polynomial.quotient(answer)
        if left is None or right is None:
            return None
        return polynomial.times(left[0], right[1]) == polynomial.times(right[0], left[1])
    except TooMuch:
        return None


def _infinite(node: Node) -> int | None:
    if node.op == "const" and node.value == "inf":
        return 1
    if node.op == "neg":
        inner = _infinite(node.args[0])
        return None if inner is None else -inner
    return None


def _undefined_constant(node: Node) -> bool:
    """Whether a part of the tree is 1/0."""
    return any(part.op == "inv" and rational(part.args[0]) == 0 for part in walk(node))


# --- rational values ---------------------------------------------------------------------------------------------
def _close(label: Node, answer: Node, left: Fraction, right: Fraction, policy: Policy) -> bool:
    if left == right:
        return True
    if policy.rel_tol or policy.abs_tol:
        return abs(left - right) <= max(Fraction(policy.rel_tol) * abs(left), Fraction(policy.abs_tol))
    if isinstance(policy.decimals, int):
        return round(left, policy.decimals) == round(right, policy.decimals)
    shown = _digits(answer)
    if policy.decimals == "rounded" and answer.op in ("num", "neg") and shown >= 3:
        return abs(left - right) <= _half_unit(answer)
    return _double(label, answer) and abs(left - right) <= DOUBLE * abs(left)


def _digits(node: Node) -> int:
    return max((part.digits for part in walk(node)), default=0)


def _half_unit(node: Node) -> Fraction:
    """Half a unit of the last place that a decimal literal shows."""
    literal = node.args[0] if node.op == "neg" else node
    places, value = 0, abs(literal.value)
    while places < 400 and value * 10**places < 10 ** (literal.digits - 1):
        places += 1
    return Fraction(1, 2 * 10**places)


def _double(label: Node, answer: Node) -> bool:
    """Whether one side is a decimal of double precision and the other one exact."""
    shown = _digits(label), _digits(answer)
    return (shown[0] == 0 and shown[1] >= _DOUBLE_DIGITS) or (shown[1] == 0 and shown[0] > _DOUBLE_DIGITS)


# --- values at points --------------------------------------------------------------------------------------------
def _same_values(label: Node, answer: Node, context: Context) -> bool:
    readings = (False, True) if _has_log(label) or _has_log(answer) else (False,)
    return any(_agree(label, answer, context, log10) for log10 in readings)


def _has_log(node: Node) -> bool:
    return any(part.op == "fun" and part.value == "log" for part in walk(node))


def _agree(label: Node, answer: Node, context: Context, log10: bool) -> bool:
    names = sorted(symbols(label) | symbols(answer))
    if not names:
        return _same_at(label, answer, {}, context, log10, real=False) is True
    for points, real in _plans(names, context):
        verdicts = [_same_at(label, answer, point, context, log10, real) for point in points]
        told = [verdict for verdict in verdicts if verdict is not None]
        if False in told:
            return False
        if len(told) >= _ENOUGH:
            return True
    return False


def _plans(names: Sequence[str], context: Context) -> Iterator[tuple[list[dict[str, Fraction]], bool]]:
    """Sets of points to try, best first: real ones, whole ones, and real ones where values may be complex."""
    signed = [_point(names, index, context) for index in range(8)]
    yield signed, True
    yield [_whole_point(names, index) for index in range(8)], True
    yield signed, False


def _point(names: Sequence[str], index: int, context: Context) -> dict[str, Fraction]:
    """Values between -3 and 3 for most points, all positive for every second one; whole for what must be."""
    point = {}
    for name in names:
        share = Fraction(zlib.crc32(f"{name} {index}".encode()) % 999_983, 999_983)
        if name in context.integers:
            point[name] = Fraction(1 + int(share * 9) + index)
        elif index % 2 == 0 or name in context.positive:
            point[name] = Fraction(1, 7) + share * 3
        else:
            point[name] = share * 6 - 3
    return point


def _whole_point(names: Sequence[str], index: int) -> dict[str, Fraction]:
    whole = {name: Fraction(1 + (zlib.crc32(f"{name} whole".encode()) + index) % 11) for name in names}
    real = _point(names, 2 * index, Context())
    return {name: whole[name] if name[0] in _INDICES or len(names) == 1 else real[name] for name in names}


def _same_at(
    label: Node, answer: Node, point: Mapping[str, Fraction], context: Context, log10: bool, real: bool
) -> bool | None:
    """Whether both have one value at this point; `None` where one has none, or is not real and has to be."""
    coarse = _pair(label, answer, point, COARSE, log10, real)
    if coarse is None or (real and not all(_is_real(value) for value in coarse)):
        return None
    policy = context.policy
    difference, size = abs(coarse[0] - coarse[1]), max(abs(coarse[0]), abs(coarse[1]))
    if policy.rel_tol or policy.abs_tol:
        return bool(difference <= max(policy.rel_tol * abs(coarse[0]), policy.abs_tol))
    if difference <= size * 1e-14 and _double(label, answer):
        return True
    if not point and _rounded(answer, coarse, policy):
        return True
    if difference > size * 1e-45 and size > 1e-40:
        return False
    fine = _pair(label, answer, point, FINE, log10, real)
    return fine is not None and bool(
        abs(fine[0] - fine[1]) <= max(abs(fine[0]), abs(fine[1])) * 1e-120 or _both_vanish(coarse, fine)
    )


def _rounded(answer: Node, values: Sequence[Any], policy: Policy) -> bool:
    if isinstance(policy.decimals, int):
        return bool(abs(values[0] - values[1]) <= 0.5 * 10.0**-policy.decimals and rational(answer) is not None)
    if policy.decimals != "rounded" or answer.op not in ("num", "neg") or _digits(answer) < 3:
        return False
    half = _half_unit(answer)
    return bool(abs(values[0] - values[1]) <= values[0].real * 0 + half.numerator / half.denominator)


def _both_vanish(coarse: Sequence[Any], fine: Sequence[Any]) -> bool:
    """Whether both are zero: what is left shrinks with the precision."""
    return all(
        abs(small) <= abs(large) * 1e-60 and abs(large) < 1e-40 for large, small in zip(coarse, fine, strict=True)
    )


def _pair(
    label: Node, answer: Node, point: Mapping[str, Fraction], digits: int, log10: bool, real: bool
) -> tuple[Any, Any] | None:
    evaluator = Evaluator(digits, log10, real)
    env = {name: evaluator.mp.mpf(value.numerator) / value.denominator for name, value in point.items()}
    try:
        return evaluator.value(label, env), evaluator.value(answer, env)
    except Undefined:
        return None


def _is_real(value: Any) -> bool:
    imaginary = getattr(value, "imag", 0)
    return bool(abs(imaginary) <= abs(value) * 1e-45)


__all__ = ["Context", "TooMuch", "equal"]
