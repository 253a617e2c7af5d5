"""Sets of numbers given by intervals, inequalities, memberships, set-builders and their unions: are they the same?

Both sides become a question that can be asked of a number: is it in the set? It is asked at every point where the answer
can change (end points, zeros, poles, the bends of absolute values), close to each of them on both sides, between them and far out. Zeros
of polynomials are exact; other ones are found where a sign changes on a fixed grid. With several variables the others
are held at fixed values, each variable in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cascade_plugin_math.verifier import polynomial
from cascade_plugin_math.verifier.node import Node, TooMuch, make, num, rebuild, substitute, sym, symbols, walk
from cascade_plugin_math.verifier.numeric import Evaluator, Undefined

ANY = "·"
DIGITS = 60
MAX_SIZE = 400
_ORDER = ("<", "<=", ">", ">=", "!=")
_GRID = [Fraction(n, 8) + Fraction(1, 97) for n in range(-160, 161)] + [
    Fraction(s * 3**k) for k in range(3, 9) for s in (1, -1)
]
_HELD = (Fraction(5, 7), Fraction(-13, 11), Fraction(17, 3), Fraction(-7, 2), Fraction(1, 3))


def is_region(node: Node) -> bool:
    """Whether the node is a set of numbers that is not a finite list, or a statement about one."""
    if node.op == "rel":
        return all(sign in (*_ORDER, "in", "notin", "=") for sign in node.value) and any(
            sign != "=" for sign in node.value
        )
    if node.op == "tuple":
        return len(node.args) == 2 and node.value in ("[)", "(]")
    if (
        node.op in ("union", "inter")
        and all(map(_is_set, node.args))
        and any(arg.op == "tuple" and len(arg.args) == 2 for arg in node.args)
    ):
        return True  # points are no sets: `[1,2] ∪ [2,3]` unites intervals
    if node.op in ("or", "and", "union", "inter", "list"):
        return any(is_region(arg) for arg in node.args) and all(
            is_region(arg) or _is_set(arg) or _is_equation(arg) for arg in node.args
        )
    return node.op in ("numset", "builder") or (node.op == "minus" and node.args[0].op != "set")


def is_listing(node: Node) -> bool:
    """Whether the node says which values there are: `x ∈ {4, 6}`."""
    return node.op == "rel" and node.value == ("in",) and node.args[1].op == "set"


def _is_set(node: Node) -> bool:
    return node.op in ("set", "tuple", "numset", "builder", "union", "inter", "minus")


def _is_equation(node: Node) -> bool:
    return node.op == "rel" and node.value == ("=",)


def could_be(node: Node) -> bool:
    """Whether the node may be read as a region beside one that surely is: a pair of brackets, a finite set."""
    return (
        is_region(node)
        or _is_set(node)
        or _is_equation(node)
        or (node.op in ("or", "and") and all(could_be(a) for a in node.args))
    )


def same(label: Node, answer: Node) -> bool:
    """Whether both describe one set.

    Raises:
        TooMuch: it cannot be told within the bounds of this package.
    """
    if any(sum(1 for _ in walk(side)) > MAX_SIZE for side in (label, answer)):
        raise TooMuch("a set of too many parts")
    left, right = _subject(label), _subject(answer)
    named = {name for name in (left, right) if name != ANY}
    if len(named) > 1 and _free(label) != _free(answer):
        return False
    name = min(named, default=ANY)
    label, answer = (_about(side, name) for side in (label, answer))
    others = sorted((_free(label) | _free(answer)) - {name})
    if (_free(label) - {name}) != (_free(answer) - {name}):
        return False
    turns = [name, *others] if len(named) == 1 and others and left == right != ANY else [name]
    return all(_same_in_turn(label, answer, turn, sorted({name, *others} - {turn})) for turn in turns)


def _same_in_turn(label: Node, answer: Node, name: str, others: Sequence[str]) -> bool:
    for shift in range(4 if others else 1):
        held = {other: _HELD[(index + shift) % len(_HELD)] + shift for index, other in enumerate(others)}
        sides = [label, answer]
        for other, value in held.items():
            sides = [substitute(side, other, num(value)) for side in sides]
        if not _same_line(sides[0], sides[1], name):
            return False
    return True


def _same_line(label: Node, answer: Node, name: str) -> bool:
    asker = _Asker(name)
    points = asker.points(label, answer)
    answers = [(asker.holds(label, point), asker.holds(answer, point)) for point in points]
    told = [pair for pair in answers if None not in pair]
    undefined = [pair for pair in answers if (pair[0] is None) != (pair[1] is None)]
    if any(True in pair for pair in undefined) or len(told) < 3:
        return False
    return all(one == two for one, two in told)


def _free(node: Node) -> frozenset[str]:
    """Variables, those bound by a set-builder left out."""
    if node.op == "builder":
        return _free(node.args[1]) - _bound(node) if _bound(node) else symbols(node)
    if node.op == "sym":
        return frozenset((node.value,))
    return frozenset().union(*(_free(arg) for arg in node.args)) if node.args else frozenset()


def _bound(node: Node) -> frozenset[str]:
    head = node.args[0]
    name = head.args[0] if head.op == "rel" else head
    return frozenset((name.value,)) if name.op == "sym" else frozenset()


def _subject(node: Node) -> str:
    """The variable that a statement is about; `ANY` for a set, which names none."""
    if _is_set(node):
        return ANY
    if node.op == "rel":
        names = [arg.value for arg in node.args if arg.op == "sym"]
        inner = sorted(_free(node))
        return names[0] if names else inner[0] if inner else ANY
    subjects = {_subject(arg) for arg in node.args} - {ANY}
    return min(subjects, default=ANY)


def _about(node: Node, name: str) -> Node:
    """The same statement with its nameless subject named."""
    if _is_set(node):
        return make("rel", sym(name), node, value=("in",))
    return rebuild(node, lambda part: sym(name) if part == sym(ANY) else None)


class _Asker:
    """Asks whether a number is in a set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ev = Evaluator(DIGITS)
        self.tiny = self.ev.mp.mpf(10) ** -40

    # --- membership ---------------------------------------------------------------------------------------------
    def holds(self, node: Node, at: Any) -> bool | None:
        """Whether the statement holds at the point; `None` where it has no meaning there."""
        try:
            return self._holds(node, {self.name: at})
        except Undefined:
            return False

    def _holds(self, node: Node, env: Mapping[str, Any]) -> bool:
        if node.op in ("and", "list"):
            return all(self._holds(arg, env) for arg in node.args)
        if node.op == "or":
            return any(self._holds(arg, env) for arg in node.args)
        if node.op != "rel":
            return self._contains(node, env[self.name], env)
        pairs = zip(node.args, node.args[1:], node.value, strict=False)
        return all(self._related(left, right, sign, env) for left, right, sign in pairs)

    def _related(self, left: Node, right: Node, sign: str, env: Mapping[str, Any]) -> bool:
        if sign in ("in", "notin"):
            return self._contains(right, self._real(left, env), env) == (sign == "in")
        ends = (_infinity(left), _infinity(right))
        if any(ends):
            one = ends[0] or 0
            two = ends[1] or 0
            return {"<": one < two, "<=": one < two, ">": one > two, ">=": one > two, "!=": True, "=": False}[sign]
        gap = self._real(left, env) - self._real(right, env)
        zero = abs(gap) < self.tiny
        return bool({"<": gap < 0 and not zero, "<=": gap < 0 or zero, ">": gap > 0 and not zero, ">=": gap > 0 or zero,
                     "!=": not zero, "=": zero}[sign])  # fmt: skip

    def _real(self, node: Node, env: Mapping[str, Any]) -> Any:
        value = self.ev.value(node, env)
        if abs(self.ev.mp.im(value)) > self.tiny:
            raise Undefined("no real number")
        return self.ev.mp.re(value)

    def _contains(self, node: Node, at: Any, env: Mapping[str, Any]) -> bool:
        if node.op == "tuple" and len(node.args) == 2:
            low = self._related(node.args[0], sym("·at"), "<" if node.value[0] == "(" else "<=", {**env, "·at": at})
            return low and self._related(
                sym("·at"), node.args[1], "<" if node.value[1] == ")" else "<=", {**env, "·at": at}
            )
        if node.op == "set":
            return any(abs(self._real(arg, env) - at) < self.tiny for arg in node.args)
        if node.op == "numset":
            return node.value in "RCQ" or (
                bool(self.ev.mp.isint(at)) and (node.value == "Z" or at > -self.ev.mp.mpf(node.value != "N"))
            )
        if node.op == "union":
            return any(self._contains(arg, at, env) for arg in node.args)
        if node.op == "inter":
            return all(self._contains(arg, at, env) for arg in node.args)
        if node.op == "minus":
            return self._contains(node.args[0], at, env) and not self._contains(node.args[1], at, env)
        if node.op == "builder":
            return self._built(node, at, env)
        raise TooMuch("a set that is not understood")

    def _built(self, node: Node, at: Any, env: Mapping[str, Any]) -> bool:
        name = next(iter(_bound(node)), None)
        if name is None:
            raise TooMuch("a set that is not understood")
        inner = {**env, name: at}
        return (node.args[0].op != "rel" or self._holds(node.args[0], inner)) and self._holds(node.args[1], inner)

    # --- where the answer can change ----------------------------------------------------------------------------
    def points(self, *sides: Node) -> list[Any]:
        """Points that tell two sets apart, if anything does."""
        mpf = self.ev.mp.mpf
        marks = sorted({mark for side in sides for mark in self._marks(side)} | {mpf(0), mpf(1)})
        if len(marks) > 60:
            raise TooMuch("too many end points")
        points = [marks[0] - 1, marks[0] - 1000, marks[-1] + 1, marks[-1] + 1000, *map(mpf, (-2, 2, 3, -1, 5, 10))]
        for index, mark in enumerate(marks):
            near = (1 + abs(mark)) * mpf(10) ** -12
            points += [mark, mark - near, mark + near]
            if index + 1 < len(marks):
                points += [(mark + marks[index + 1]) / 2, (2 * mark + marks[index + 1]) / 3]
        return points

    def _marks(self, node: Node) -> list[Any]:
        found: list[Any] = []
        for part in walk(node):
            if part.op == "tuple" or part.op == "set":
                found += [value for arg in part.args if (value := self._constant(arg)) is not None]
            elif part.op == "rel":
                for left, right in zip(part.args, part.args[1:], strict=False):
                    if not _is_set(right) and not _infinity(left) and not _infinity(right):
                        found += self._zeros(make("add", left, make("neg", right)), self._variable(node, part))
            elif part.op in ("inv", "fun", "root") and part.args:
                found += self._zeros(part.args[0], self.name)
        return [+mark for mark in found]

    def _variable(self, node: Node, part: Node) -> str:
        inner = symbols(part)
        return self.name if self.name in inner or len(inner) != 1 else next(iter(inner))

    def _constant(self, node: Node) -> Any | None:
        if symbols(node) or _infinity(node):
            return None
        try:
            return self._real(node, {})
        except Undefined:
            return None

    def _zeros(self, node: Node, name: str) -> list[Any]:
        """Real zeros of an expression of one variable."""
        if symbols(node) != {name}:
            return []
        parts = polynomial.quotient(node)
        if parts is None:
            return self._sign_changes(node, name)
        zeros = [zero for part in parts for zero in polynomial.real_zeros(part, DIGITS + 10)]
        return [self.ev.mp.mpf(str(zero)) for zero in zeros]

    def _sign_changes(self, node: Node, name: str) -> list[Any]:
        grid = sorted(self.ev.mp.mpf(x.numerator) / x.denominator for x in _GRID)
        values = [(x, value) for x in grid if (value := self._try(node, name, x)) is not None]
        zeros = [x for x, value in values if value == 0]
        for (x, one), (y, two) in itertools.pairwise(values):
            if one * two < 0 and len(zeros) < 12:
                zeros.append(self._bisect(node, name, x, y, one))
        return zeros

    def _try(self, node: Node, name: str, x: Any) -> Any | None:
        try:
            return self._real(node, {name: x})
        except Undefined:
            return None

    def _bisect(self, node: Node, name: str, low: Any, high: Any, sign: Any) -> Any:
        for _ in range(190):
            middle = (low + high) / 2
            value = self._try(node, name, middle)
            if value is None or value == 0:
                return middle
            low, high = (middle, high) if value * sign > 0 else (low, middle)
        return (low + high) / 2


def _infinity(node: Node) -> int:
    if node.op == "const" and node.value == "inf":
        return 1
    return -_infinity(node.args[0]) if node.op == "neg" else 0
