"""Is one answer the other? The kinds of answers, each with its own idea of being equal.

Sets and solution lists have no order, tuples and named values do. A region is the set of numbers it holds, an equation the
set of its solutions, a quantity its value in one unit. Every comparison starts from the label: what the label is decides
what an answer has to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cascade_plugin_math.verifier import equations, families, names, quantities, ratios, regions, residues
from cascade_plugin_math.verifier.matrices import rows_of
from cascade_plugin_math.verifier.names import FALSE, assignments, is_name, reduce
from cascade_plugin_math.verifier.node import Node, TooMuch, canonical, make, num, rebuild, sym, symbols, text
from cascade_plugin_math.verifier.scalar import Context
from cascade_plugin_math.verifier.settle import settled
from cascade_plugin_math.verifier.signs import Signs, apart, has_several, together

MAX_VALUES = 200
_RATIOS = ("sin", "cos", "tan", "cot", "sec", "csc")  # named values: `\\cos A = 1/2`
_SETS = ("tuple", "rel", "union", "or", "and", "list")
_KEPT_WHOLE = ("rel", "stmt", "cond", "cases", "list1", "builder")


@dataclass(frozen=True)
class Asked:
    """What the question says about the answer, beside the policy.

    `ordered`: a list is asked in an order. `percent`, `ratio`, `time`: what a bare number, or a colon, means. `base`: the base
    numerals are asked in. `units`: unit words of the question. `names`: single letters that it uses as variables. `shapes`: units,
    whatever their size, that have the dimensions of what it speaks of (`m/s` for a speed).
    """

    ordered: bool = False
    percent: bool = False
    ratio: bool = False
    time: bool = False
    base: int | None = None
    units: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    wanted: str = ""
    shapes: tuple[str, ...] = ()


class Matcher:
    """Compares answers under one policy and one question.

    Args:
        context: tolerances, and what is known of the variables.
        asked: what the question says.
    """

    def __init__(self, context: Context, asked: Asked) -> None:
        self.context = context
        self.asked = asked

    def same(self, label: Node, answer: Node) -> bool:
        """Whether the answer is the label's.

        Raises:
            TooMuch: it cannot be told within the bounds of this package.
        """
        label, answer = settled(label, answer), settled(answer, label)
        if canonical(label) == canonical(answer):
            return True
        for rule in (residues.same, self._family, self._region, self._ratio, self._named, self._equation, self._values):
            verdict = rule(label, answer)
            if verdict is not None:
                return verdict
        return False

    # --- one rule a kind; None: not my kind ---------------------------------------------------------------------
    def _family(self, label: Node, answer: Node) -> bool | None:
        return families.same(label, answer, self.context)

    def _region(self, label: Node, answer: Node) -> bool | None:
        (left_name, left), (right_name, right) = reduce(label, self.context), reduce(answer, self.context)
        if left_name is not None and right_name is not None and left_name != right_name:
            return None
        if not (regions.is_region(left) or regions.is_region(right)):
            return None
        if not (regions.could_be(left) and regions.could_be(right)):
            return None if regions.is_listing(left) or regions.is_listing(right) else False
        if self.context.policy.is_loose and self._alike(left, right):
            return True
        one, two = self._as_region(left, left_name), self._as_region(right, right_name)
        if any(regions.same(first, second) for first in one for second in two):
            return True
        return self._items(label, answer) if label.op == answer.op == "list" else False

    def _alike(self, label: Node, answer: Node) -> bool:
        """Whether two sets are written alike, with ends that differ by no more than the policy allows."""
        if (label.op, label.value, len(label.args)) == (
            answer.op,
            answer.value,
            len(answer.args),
        ) and label.op in _SETS:
            return all(map(self._alike, label.args, answer.args))
        return canonical(label) == canonical(answer) or quantities.same(label, answer, self.context, self.asked)

    def _as_region(self, node: Node, name: Node | None) -> list[Node]:
        """What a node may mean as a region; inequalities between commas hold together, or are alternatives."""
        node = rebuild(node, lambda part: sym(text(part)) if part.op == "apply" and is_name(part) else None)
        if node.op == "list":
            return [make("and", *node.args), make("or", *node.args)]
        return [node]

    def _ratio(self, label: Node, answer: Node) -> bool | None:
        (_, label), (_, answer) = reduce(label, self.context), reduce(answer, self.context)
        return ratios.same(label, answer, self.asked.ratio, self.asked.time, self.same)

    def _named(self, label: Node, answer: Node) -> bool | None:
        left, right = (assignments(side, self.context) for side in (label, answer))
        if left is not None and right is not None:
            if left.keys() == right.keys():
                return all(self.same(left[name], right[name]) for name in left)
            return None if names.are_counted(left) and names.are_counted(right) else False
        for named, other in ((left, answer), (right, label)):
            in_order = other.op == "tuple" or (
                other.op == "list" and named is not None and not names.have_one_letter(named)
            )
            if named is not None and in_order and not any(part.op in ("rel", "tuple") for part in other.args):
                # by the names' own order; a bare list may also follow the order in which they are written
                ways = (sorted(named), list(named)) if other.op == "list" and named is left else (sorted(named),)
                return any(self._by_place(other, [named[name] for name in way]) for way in ways)
        return None

    def _by_place(self, listed: Node, values: Sequence[Node]) -> bool:
        return len(values) == len(listed.args) and all(map(self.same, listed.args, values))

    def _equation(self, label: Node, answer: Node) -> bool | None:
        (left_name, left), (right_name, right) = reduce(label, self.context), reduce(answer, self.context)
        if FALSE in (left, right):
            return False
        genuine = [value.op == "rel" and value.value == ("=",) for value in (left, right)]
        if all(genuine):
            return equations.same(left, right, self.context)
        if left_name is not None and right_name is not None and not genuine[0] and not genuine[1]:
            return self._two_names(label, answer, (left_name, left), (right_name, right))
        if genuine[0] or genuine[1]:
            return self._one_equation(label, answer, genuine)
        return None

    def _two_names(self, label: Node, answer: Node, left: tuple[Node, Node], right: tuple[Node, Node]) -> bool:
        if canonical(left[0]) == canonical(right[0]) or {left[0].op, right[0].op} & {"word"}:
            return self.same(left[1], right[1])
        if {left[0].op, right[0].op} == {"apply", "sym"} and (left[0] == sym("y") or right[0] == sym("y")):
            return self.same(left[1], right[1])
        if (renamed := names.renamed(right, left[0])) is not None:
            return self.same(left[1], renamed)
        as_rel = [make("rel", name, value, value=("=",)) for name, value in (left, right)]
        try:
            return symbols(left[1]) != frozenset() and equations.same(as_rel[0], as_rel[1], self.context)
        except TooMuch:
            return False

    def _one_equation(self, label: Node, answer: Node, genuine: Sequence[bool]) -> bool:
        equation, other = (label, answer) if genuine[0] else (answer, label)
        name, value = reduce(other, self.context)
        if name is not None and symbols(value) and other.op == "rel":
            return equations.same(equation, make("rel", name, value, value=("=",)), self.context)
        left, right = equation.args
        if left.op == "fun" and left.value in _RATIOS and name is None and not symbols(right):
            return self.same(label if equation is answer else right, right if equation is answer else answer)
        values = self.values(other)
        if values is None or (name is not None and name.op == "sym" and name.value not in symbols(equation)):
            return False
        return equations.solved_by(equation, values, self.context)

    def _values(self, label: Node, answer: Node) -> bool | None:
        if has_several(label) or has_several(answer):
            ways = [(one, two) for one in (together, apart) for two in (together, apart)]
            return any(
                self._listed(label, answer, self.values(label, one), self.values(answer, two)) for one, two in ways
            )
        return self._listed(label, answer, self.values(label), self.values(answer))

    def _listed(self, label: Node, answer: Node, left: list[Node] | None, right: list[Node] | None) -> bool | None:
        """Two lists of values; without one the answers are compared as they stand."""
        if left is None or right is None:
            return self._whole(label, answer)
        pair = self._pair_as_list(label, answer)
        if pair is not None:
            return pair
        if any(part.op == "dots" for part in (*left, *right)) and len(left) + len(right) > 2:
            return families.same_sequence(left, right, self._one)
        if (self.asked.ordered or self.context.policy.ordered) and label.op == answer.op == "list":
            return len(left) == len(right) and all(map(self._one, left, right))
        if self.context.policy.multiset:
            return self._matching(left, right)
        return (
            bool(left) == bool(right)
            and all(any(self._one(one, two) for two in right) for one in left)
            and all(any(self._one(one, two) for one in left) for two in right)
        )

    def _pair_as_list(self, label: Node, answer: Node) -> bool | None:
        """`1, 2` for `(1, 2)` and the other way round: in that order."""
        kinds = (label.op, answer.op)
        if kinds not in (("tuple", "list"), ("list", "tuple")) or any(
            arg.op in ("tuple", "rel") for arg in (*label.args, *answer.args)
        ):
            return None
        return len(label.args) == len(answer.args) and all(map(self.same, label.args, answer.args))

    def _items(self, label: Node, answer: Node) -> bool:
        return len(label.args) == len(answer.args) and self._matching(label.args, answer.args)

    def _matching(self, left: Sequence[Node], right: Sequence[Node]) -> bool:
        """Whether the two can be paired off."""
        rest = list(right)
        for one in left:
            partner = next((two for two in rest if self._one(one, two)), None)
            if partner is None:
                return False
            rest.remove(partner)
        return not rest

    # --- values -------------------------------------------------------------------------------------------------
    def values(self, node: Node, signs: Signs = together) -> list[Node] | None:
        """The values that a node lists, `±` written out as `signs` does; `None` if it is no list of values."""
        _, node = reduce(node, self.context)
        if node.op in ("list", "or", "and", "set", "union") and not regions.is_region(node):
            found: list[Node] = []
            for arg in node.args:
                point = self._point(arg)
                inner = [point] if arg.op == node.op == "set" or point != arg else self.values(arg, signs)
                if inner is None or len(found) > MAX_VALUES:
                    return None
                found += inner
            return found
        if node.op == "rel" and len(node.args) == 2 and node.value == ("in",) and node.args[1].op == "set":
            return self.values(node.args[1], signs)
        if node.op in _KEPT_WHOLE or node == FALSE:
            return None
        return signs(node)

    def _point(self, node: Node) -> Node:
        """`p = 5, q = 2` within a list of such: the point (5, 2)."""
        named = assignments(node, self.context) if node.op in ("list", "and") else None
        return node if named is None else make("tuple", *(named[name] for name in sorted(named)), value="()")

    def _one(self, label: Node, answer: Node) -> bool:
        """Whether two single values are the same: tuples and matrices by their parts, the rest by value and unit."""
        if canonical(label) == canonical(answer):
            return True
        if label.op in ("matrix", "tuple") and answer.op in ("matrix", "tuple"):
            return self._parts(label, answer)
        if (
            label.op in ("set", "list")
            or answer.op in ("set", "list")
            or regions.is_region(label)
            or regions.is_region(answer)
        ):
            return self.same(label, answer) if label != answer else True
        if {label.op, answer.op} & {"matrix", "tuple"}:
            return self._vector(label, answer)
        if {label.op, answer.op} & {"union", "inter", "minus", "numset", "empty", "dots", "ratio"}:
            return False
        return quantities.same(label, answer, self.context, self.asked)

    def _parts(self, label: Node, answer: Node) -> bool:
        if label.op == answer.op == "matrix" and label.value != answer.value:
            return False
        if label.op != answer.op:
            rows, columns = next(side.value for side in (label, answer) if side.op == "matrix")
            nested = next(side for side in (label, answer) if side.op == "tuple")
            if rows > 1 and columns > 1:
                return rows_of(nested) is not None and self._parts(
                    *((rows_of(s) or s) if s.op == "tuple" else s for s in (label, answer))
                )
        elif (
            label.op == "tuple"
            and "[" in label.value + answer.value
            and label.value != answer.value
            and len(label.args) == 2
        ):
            return False
        return len(label.args) == len(answer.args) and all(map(self._one, label.args, answer.args))

    def _vector(self, label: Node, answer: Node) -> bool:
        """`3i + 4j` in unit vectors beside a tuple."""
        shaped, other = (label, answer) if label.op in ("matrix", "tuple") else (answer, label)
        if not any(name.startswith("unit ") for name in symbols(other)):
            return False
        return all(
            self._one(part, _component(other, axis)) for axis, part in zip("ijk", shaped.args, strict=False)
        ) and (len(shaped.args) in (2, 3) and (len(shaped.args) == 3 or "unit k" not in symbols(other)))

    def _whole(self, label: Node, answer: Node) -> bool | None:
        """Statements that are kept as they stand: equal if they are built alike from equal parts."""
        if label.op != answer.op or label.value != answer.value or len(label.args) != len(answer.args):
            return False
        if label.op == "cases":
            return self._matching(label.args, answer.args)
        return label.op in (*_KEPT_WHOLE, "list", "or", "and") and all(map(self.same, label.args, answer.args))


def _component(node: Node, axis: str) -> Node:
    """The coefficient of one unit vector in a sum that is linear in them."""

    def change(part: Node) -> Node | None:
        if part.op == "sym" and part.value.startswith("unit "):
            return num(int(part.value == f"unit {axis}"))
        return None

    return rebuild(node, change)
