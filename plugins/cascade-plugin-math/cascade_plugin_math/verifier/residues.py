"""Residue classes: `x \\equiv 3 \\pmod 7`, `3 (mod 7)`, `x \\equiv 2, 5 \\pmod 7`.

Two are the same if their moduli are and the same residues remain; `n = 7k + 3` with an integer k is a class beside one. A bare number is no class; but where a number is asked,
it may be written with the modulus it was reckoned by (`4 \\pmod 7` for 4), if it is the remainder itself. Moduli and residues
that are not whole numbers are not for this module.
"""

from __future__ import annotations

from dataclasses import dataclass

from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.families import parametric
from cascade_plugin_math.verifier.node import Node, num, substitute

_POINTS = (0, 1, 2, -3, 7)


@dataclass(frozen=True)
class _Classes:
    """What is congruent to one of `values`; `name` is "" where none was given. `values` are not reduced."""

    name: str
    values: tuple[int, ...]
    modulus: int

    @property
    def residues(self) -> frozenset[int]:
        return frozenset(value % self.modulus for value in self.values)


def same(label: Node, answer: Node) -> bool | None:
    """Whether the two are the same classes; `None` if the label is neither a class nor a whole number beside one.

    Raises:
        TooMuch: a number would be too long.
    """
    left, right = _read(label), _read(answer)
    if right is None and left is not None:
        right = _progressions(answer) or _remainder(answer)
    if left is None and right is not None:
        left = _progressions(label)
    if right is None or (left is None and (right.name or len(right.values) > 1)):
        return None
    if left is None:
        left = _remainder(label)
        value = _whole(label)
        if left is None:
            return None if value is None else right.values == (value,) and 0 <= value < right.modulus
    is_named_alike = not (left.name and right.name) or left.name == right.name
    return is_named_alike and (left.modulus, left.residues) == (right.modulus, right.residues)


def _read(node: Node) -> _Classes | None:
    """A class, or several of one modulus, which may stand behind the last of them only."""
    parts = node.args if node.op in ("list", "or") else (node,)
    last = _class(parts[-1], None) if parts else None
    if last is None:
        return None
    found = [_class(part, last.modulus) for part in parts]
    names = {one.name for one in found if one is not None and one.name}
    if len(names) > 1 or any(one is None or one.modulus != last.modulus for one in found):
        return None
    return _Classes("".join(names), tuple(one.values[0] for one in found if one is not None), last.modulus)


def _progressions(node: Node) -> _Classes | None:
    """`n = 5k + 1, k \\in \\mathbb{Z}`: everything that is 1 modulo 5."""
    found = parametric(node)
    if found is None or node.args[-1].args[1].value != "Z":
        return None
    rows = [[_whole(substitute(item, found[1], num(at))) for at in _POINTS] for item in found[0]]
    steps = {None if row[0] is None or row[1] is None else row[1] - row[0] for row in rows}
    step = steps.pop() if len(steps) == 1 else None
    if step is None or abs(step) < 2 or any(row != [row[0] + step * at for at in _POINTS] for row in rows):
        return None
    names = {str(item.args[0].value) for item in node.args[:-1] if item.op == "rel"}
    return None if len(names) > 1 else _Classes("".join(names), tuple(row[0] for row in rows), abs(step))


def _class(node: Node, modulus: int | None) -> _Classes | None:
    """One class; one that names no modulus has the given one."""
    head = node
    if node.op == "cond" and node.value == "mod":
        head, modulus = node.args[0], _whole(node.args[1])
    name = ""
    if head.op == "rel" and head.value in (("equiv",), ("=",)) and head.args[0].op == "sym":
        name, sign, head = str(head.args[0].value), head.value, head.args[1]
        if sign == ("equiv",) and head.op == "fun" and head.value == "mod":  # x \equiv 3 \mod 7
            head, modulus = head.args[0], _whole(head.args[1])
    if modulus is None or modulus < 2:
        return None
    value = _whole(head)
    return None if value is None else _Classes(name, (value,), modulus)


def _remainder(node: Node) -> _Classes | None:
    """`3 \\bmod 7`, a number by itself, beside a class."""
    if node.op != "fun" or node.value != "mod":
        return None
    value, modulus = (_whole(arg) for arg in node.args)
    return None if value is None or modulus is None or modulus < 2 else _Classes("", (value,), modulus)


def _whole(node: Node) -> int | None:
    value = rational(node)
    return int(value) if value is not None and value.denominator == 1 else None
