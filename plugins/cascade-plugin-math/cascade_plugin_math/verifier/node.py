"""`Node`: what a piece of mathematics is read into, before any library sees it.

A node is an operation, its arguments and, for leaves, a value. Building one never computes: `9^(9^9)` is three
leaves and two powers. Height is bounded as nodes are built, so that every walk over a tree can be recursive.

Operations
    leaves      num (Fraction), sym, const (pi, e, i, inf), word (upright text: units, nouns, names), dots, numset
    arithmetic  add, mul, neg, inv, pow, root, fact, dfact, percent, degree, pm, mp, fun (value: name), apply
    shapes      list, tuple (value: its two brackets), set, builder, matrix, cases, ratio, union, inter, minus
    statements  rel (value: the relation signs), or, and, cond, not, stmt (quantifiers and other logic, kept whole)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

MAX_HEIGHT = 160


class Unreadable(ValueError):
    """The text is no mathematics that this reader knows."""


class TooMuch(ValueError):
    """The text asks for more work than one answer deserves; the verdict on it is wrong, with the note `limit`."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `digits` is how many significant digits a decimal was written with; 0 for anything exact."""

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None
    digits: int = field(default=0, compare=False)
    height: int = field(default=1, compare=False)


def make(op: str, *args: Node, value: Any = None) -> Node:
    """An inner node; sums and products are kept flat.

    Raises:
        TooMuch: the tree would be higher than `MAX_HEIGHT`.
    """
    if op in ("add", "mul"):
        args = tuple(part for arg in args for part in (arg.args if arg.op == op else (arg,)))
        if len(args) == 1:
            return args[0]
    height = 1 + max((arg.height for arg in args), default=0)
    if height > MAX_HEIGHT:
        raise TooMuch("nested too deeply")
    return Node(op, args, value, height=height)


def num(value: int | Fraction, digits: int = 0) -> Node:
    """A number."""
    return Node("num", (), Fraction(value), digits)


def sym(name: str) -> Node:
    """A variable."""
    return Node("sym", (), name)


def const(name: str) -> Node:
    """One of pi, e, i, inf."""
    return Node("const", (), name)


def fun(name: str, *args: Node) -> Node:
    """A known function of its arguments."""
    return make("fun", *args, value=name)


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, the root first."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.args))


def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The tree with every node for which `change` gives another one replaced, leaves first."""
    if node.args:
        args = tuple(rebuild(arg, change) for arg in node.args)
        if args != node.args:
            kept = make(node.op, *args, value=node.value)
            node = kept
    changed = change(node)
    return node if changed is None else changed


def substitute(node: Node, name: str, value: Node) -> Node:
    """The tree with the variable `name` replaced."""
    return rebuild(node, lambda part: value if part.op == "sym" and part.value == name else None)


def symbols(node: Node) -> frozenset[str]:
    """The names of its variables, those bound by a sum or a set left out."""
    if node.op == "sym":
        return frozenset((node.value,))
    inner = frozenset().union(*(symbols(arg) for arg in node.args)) if node.args else frozenset()
    if node.op == "fun" and node.value in ("sum", "prod", "int") and node.args[0].op == "sym":
        return inner - {node.args[0].value}
    return inner


_COMMUTES = {"add", "mul", "set", "union", "inter", "or", "and"}
_FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def canonical(node: Node) -> Node:
    """The same tree with the order of what commutes settled; nothing is computed."""

    def order(part: Node) -> Node | None:
        if part.op in _COMMUTES:
            return Node(part.op, tuple(sorted(part.args, key=text)), part.value, height=part.height)
        if part.op == "rel" and len(part.value) == 1 and part.value[0] in _FLIP:
            sign, flipped = part.value[0], _FLIP[part.value[0]]
            if sign in (">", ">=") or (sign in ("=", "!=") and text(part.args[0]) > text(part.args[1])):
                return Node("rel", part.args[::-1], (flipped,), height=part.height)
        return None

    return rebuild(node, order)


def text(node: Node) -> str:
    """The tree as one line, the same for equal trees; its length is bounded by that of the tree."""
    parts = []
    for part in walk(node):
        value = f"{part.value.numerator:x}/{part.value.denominator:x}" if part.op == "num" else repr(part.value)
        parts.append(f"{part.op}:{value}:{len(part.args)}")
    return " ".join(parts)
