"""What a tree means beside another answer: the few forms whose reading needs more than the text itself.

`\\mathbb{R} - \\{2\\}` is a difference of sets, a determinant a number, `P(1,2)` a point named P and `C(10,3)` a
binomial coefficient, unless the other answer is a point. Nothing large is computed.
"""

from __future__ import annotations

from fractions import Fraction

from cascade_plugin_math.verifier.compound import combined
from cascade_plugin_math.verifier.matrices import carried_out, is_small
from cascade_plugin_math.verifier.node import Node, fun, make, num, rebuild, sym

_LARGEST_DETERMINANT = 4


def settled(node: Node, other: Node) -> Node:
    """The tree, read beside `other`."""
    node = combined(node) or rebuild(node, _change)
    if _is_class(node) and _is_class(other) and node.args[0].op == "rel" != other.args[0].op:
        node = make("cond", node.args[0].args[-1], node.args[1], value="mod")  # `x ≡ 7 (mod 10)` beside `7 (mod 10)`
    node = _letter(node)
    if node.op == "mul" and len(node.args) == 2 and node.args[0].op == "sym" and node.args[1].op == "tuple":
        return _applied(node.args[0].value, node.args[1], other)
    return node


def _is_class(node: Node) -> bool:
    """Whether the node is a number modulo another, named or not."""
    if node.op != "cond" or node.value != "mod":
        return False
    head = node.args[0]
    return head.op != "rel" or (head.value == ("equiv",) and head.args[0].op == "sym")


def _applied(name: str, arguments: Node, other: Node) -> Node:
    if name == "C" and len(arguments.args) == 2 and other.op != "tuple":
        return fun("binom", *arguments.args)
    return arguments if len(name) == 1 and name.isupper() else make("mul", sym(name), arguments)


def _letter(node: Node) -> Node:
    """The name that one upright letter is."""
    return sym(node.value) if node.op == "word" and len(node.value) == 1 and node.value.isalpha() else node


def _change(part: Node) -> Node | None:
    if part.op in ("list", "and", "or", "set") and any(arg.op == "word" for arg in part.args):
        return make(part.op, *map(_letter, part.args), value=part.value)
    if part.op == "add" and part.args[0].op in ("numset", "minus"):
        rest = part.args[1:]
        if all(arg.op == "neg" and arg.args[0].op in ("set", "tuple", "numset") for arg in rest):
            whole = part.args[0]
            for arg in rest:
                whole = make("minus", whole, arg.args[0])
            return whole
    if part.op in ("add", "mul", "neg") and (matrix := carried_out(part)) is not None:
        return matrix
    if part.op == "mul" and part.args[0].op == "degree":
        return _minutes(part)
    if part.op == "rel" and part.value == ("=",) and part.args[1].op == "cond":
        value, condition = part.args[1].args
        return make("cond", make("rel", part.args[0], value, value=("=",)), condition, value="for")
    if part.op == "fun" and part.value == "det" and part.args[0].op == "matrix":
        return _determinant(part.args[0])
    if part.op == "union" and any(arg.op in ("num", "neg", "sym") for arg in part.args):
        return make("union", *(make("set", arg) if arg.op in ("num", "neg", "sym") else arg for arg in part.args))
    return None


def _minutes(angle: Node) -> Node | None:
    """`30^\\circ 15' 36''` in degrees; `None` where something else follows the degrees."""
    total, share = [angle.args[0].args[0]], Fraction(1)
    for part in angle.args[1:]:
        share /= 60
        for _ in range(1 if share == Fraction(1, 60) else 2):
            if part.op != "fun" or part.value != "'":
                return None
            part = part.args[0]
        total.append(make("mul", num(share), part))
    return make("degree", make("add", *total)) if 2 <= len(total) <= 3 else None


def _determinant(matrix: Node) -> Node | None:
    """The determinant as a sum of products; `None` for large ones and for what is not square."""
    rows, columns = matrix.value
    if rows != columns or rows > _LARGEST_DETERMINANT or not is_small(matrix):
        return None
    return _expanded([list(matrix.args[row * columns : (row + 1) * columns]) for row in range(rows)])


def _expanded(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, cell in enumerate(rows[0]):
        minor = _expanded([row[:column] + row[column + 1 :] for row in rows[1:]])
        term = make("mul", cell, minor)
        terms.append(term if column % 2 == 0 else make("neg", term))
    return make("add", *terms) if terms else num(1)
