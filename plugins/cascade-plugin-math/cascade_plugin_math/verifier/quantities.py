"""Single values with what they may carry: a unit, a percent sign, a degree sign, a base, a sign of both kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_plugin_math.verifier import units
from cascade_plugin_math.verifier.node import Node, make, num, rebuild, walk
from cascade_plugin_math.verifier.scalar import Context, equal
from cascade_plugin_math.verifier.units import Unit

if TYPE_CHECKING:
    from cascade_plugin_math.verifier.match import Asked


def same(label: Node, answer: Node, context: Context, asked: Asked) -> bool:
    """Whether two single values are the same quantity.

    Raises:
        TooMuch: it cannot be told within the bounds of this package.
    """
    if "based" in (label.op, answer.op):
        return _based(label, answer, context, asked)
    for left, right in ((label, answer), *_percents(label, answer, asked)):
        (value, unit), (given, other) = _split(left, right, asked)
        wanted = unit if not unit.is_none or not asked.wanted else _wanted(asked.wanted)
        converted = units.convert(given, other, wanted)
        if converted is not None and equal(value, converted, context):
            return True
        if unit.is_none != other.is_none and _degree_as_radian(value, given, unit, other, context):
            return True
    return False


def _wanted(name: str) -> Unit:
    """The unit of that name; `m/s` for a rate."""
    above, *below = (Node("word", (), word) for word in name.split("/"))
    return units.split(make("mul", num(1), above, *(make("inv", word) for word in below)))[1]


def _split(label: Node, answer: Node, asked: Asked) -> tuple[tuple[Node, Unit], tuple[Node, Unit]]:
    """Values and units; a letter such as `m` is a unit only where the other side, or the question, says so."""
    left, right = units.split(label), units.split(answer)
    if right[1].is_none:
        right = _letter_unit(answer, left[1], asked) or right
    if left[1].is_none:
        left = _letter_unit(label, right[1], asked) or left
    return left, right


def _letter_unit(node: Node, beside: Unit, asked: Asked) -> tuple[Node, Unit] | None:
    if node.op != "mul":
        return None
    at = len(node.args)
    while at > 1 and _is_letters(node.args[at - 1], asked):
        at -= 1
    if at == len(node.args):
        return None
    value, read = units.split(make("mul", *node.args[:at], *(rebuild(part, _upright) for part in node.args[at:])))
    spoken = [_wanted(name).powers for name in (*asked.units, asked.wanted) if name]
    said = {dimension for powers in spoken for dimension, _ in powers}
    is_spoken = read.powers in (*spoken, *(_wanted(name).powers for name in asked.shapes))
    if read.powers == beside.powers or (is_spoken and {dimension for dimension, _ in read.powers} <= said):
        return value, read
    return None


def _is_letters(node: Node, asked: Asked) -> bool:
    """Whether a factor is a letter that may be a unit, its power, or such a one below the line: the `m` and the `s` of `m/s`."""
    if node.op in ("inv", "pow"):
        return _is_letters(node.args[0], asked)
    return node.op == "sym" and node.value in units.KNOWN_UNITS and node.value not in asked.names


def _upright(part: Node) -> Node | None:
    return Node("word", (), part.value) if part.op == "sym" else None


def _percents(label: Node, answer: Node, asked: Asked) -> list[tuple[Node, Node]]:
    """Where the question asks for a percentage, a bare number and the same number with a percent sign are one."""
    if not asked.percent or (label.op == "percent") == (answer.op == "percent"):
        return []
    return [tuple(side.args[0] if side.op == "percent" else side for side in (label, answer))]  # type: ignore[list-item]


def _degree_as_radian(value: Node, given: Node, unit: Unit, other: Unit, context: Context) -> bool:
    """45° for π/4: only where the bare side is written with pi."""
    degree = (("degree", 1),)
    bare = given if unit.powers == degree else value if other.powers == degree else None
    if bare is None or not any(part.op == "const" and part.value == "pi" for part in walk(bare)):
        return False
    left, right = (side if side is bare else make("degree", side) for side in (value, given))
    return equal(left, right, context)


def _based(label: Node, answer: Node, context: Context, asked: Asked) -> bool:
    """Numerals of a base are their value; where the question asks for a base, the answer is a numeral of it."""
    if label.op == answer.op == "based":
        return bool(label.value == answer.value) if asked.base else equal(label, answer, context)
    numeral, other = (label, answer) if label.op == "based" else (answer, label)
    if asked.base in (None, 10):
        return equal(label, answer, context)
    base, digits = numeral.value
    bare = other.op == "num" and digits.isdigit() and len(digits) < 4000
    return bool(base == asked.base and bare and other.value == int(digits))
