"""What an answer calls its values: `x = 5`, `AB = 3`, `(x, y) = (1, 2)`, `n = 2, 3, 4`, `3/2 = k`.

A named value is the value; the name matters only beside another name. Chains (`x = 2 + 3 = 5`) are worth their last
member if every numeric member has that value, and nothing at all otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from cascade_plugin_math.verifier import units
from cascade_plugin_math.verifier.exact import rational
from cascade_plugin_math.verifier.node import Node, canonical, make, substitute, sym, symbols, text
from cascade_plugin_math.verifier.scalar import Context, equal

FALSE = Node("false")
_INDEX = re.compile(r"_\{?(\d{1,9})\b")
_MARKED = ("bar", "vec", "hat", "angle", "triangle", "measuredangle", "arc", "Pr")
_CLAIMED = ("lim.", "int.", "max_", "min_")  # what an answer says to be a value, without a way to reckon it here
_MEASURED = ("norm", "det", "deg", "dim", "tr", "max", "min")
_EQUAL = ("=", "approx")


def is_name(node: Node) -> bool:
    """Whether the left side of an equation names something rather than saying something."""
    if node.op in ("sym", "word"):
        return True
    if node.op == "apply":
        return all(arg.op in ("sym", "tuple", "num") for arg in node.args)
    if node.op == "cond":
        return node.args[0] in (sym("P"), sym("bbP"))  # `P(A|B)`, `P(X = 2)`
    if node.op == "const":
        return node.value in ("e", "i")
    if node.op == "tuple":
        return all(arg.op == "sym" for arg in node.args)
    if node.op == "ratio":
        return all(is_name(arg) for arg in node.args)
    if node.op == "mul":
        return _is_product_name(node.args)
    return node.op == "fun" and _is_function_name(node)


def _is_product_name(heads: tuple[Node, ...]) -> bool:
    """`AB`, `area ABC`, `Var(X)`, `dy/dx`, `m\\angle A`, `\\nabla f`, `P(A)`."""
    if heads[0] in (sym("d"), sym("partial")) and heads[-1].op == "inv":
        return True
    bare = [arg.args[0] if arg.op == "inv" else arg for arg in heads]
    parts = [part for arg in bare for part in _factors(arg)]
    if all(part.op == "word" or (part.op == "sym" and part.value[:1].isupper()) for part in parts):
        return True
    if len(heads) != 2 or heads[0].op != "sym":
        return False
    name, rest = heads[0].value, heads[1]
    is_measure = name == "m" and rest.op == "fun" and rest.value in _MARKED
    return (
        (name in ("P", "p", "E", "bbP", "bbE") and rest.op != "num")
        or is_measure
        or (name == "nabla" and rest.op == "sym")
    )


def _is_function_name(node: Node) -> bool:
    """`\\angle A`, `\\det A`, `\\lim a_n`; `|x| = 5` and `x^2 + 1 = 5` stay equations."""
    inner = node.args[0] if node.args else node
    if node.value in _MARKED or node.value in _CLAIMED:
        return True
    if node.value == "abs":
        return is_name(inner) and (inner.op in ("mul", "fun", "word") or (inner.op == "sym" and " " in inner.value))
    inner = inner.args[0] if inner.op == "pow" else inner
    return node.value in _MEASURED and len(node.args) == 1 and is_name(inner)


def _factors(node: Node) -> tuple[Node, ...]:
    return node.args if node.op == "mul" else (node,)


def reduce(node: Node, context: Context) -> tuple[Node | None, Node]:
    """The name, if any, and the value of a node; a contradiction is worth `FALSE`, a genuine equation stays."""
    if node.op != "rel" or any(sign not in _EQUAL for sign in node.value):
        return None, node
    members = list(node.args)
    name = None
    if is_name(members[0]) and not (len(members) == 2 and members[1].op == "word"):
        name = members.pop(0)
    elif len(members) == 2 and is_name(members[1]) and members[1] not in (members[0],):
        name = members.pop(1)
    if name is not None and name.op == "sym" and len(members) == 1 and name.value in symbols(members[0]):
        return None, node
    if len(members) == 1:
        return name, members[0]
    signs = node.value[-len(members) + 1 :]
    if (rounded := _broken_off(members[-1])) is not None:
        members[-1], signs = rounded, (*signs[:-1], "approx")
    if name is None and any(symbols(member) for member in members):
        return None, node
    return name, _chain(members, signs, context)


def _broken_off(node: Node) -> Node | None:
    """The 1.414 of `\\sqrt{2} = 1.414...`."""
    is_number = node.op == "mul" and len(node.args) == 2 and node.args[0].op == "num" and node.args[1].op == "dots"
    return node.args[0] if is_number else None


def _chain(members: list[Node], signs: tuple[str, ...], context: Context) -> Node:
    """The value of `2 + 3 = 5`; formulas (`πr² = 9π`) may come first, a contradiction is worth nothing."""
    last = members[-1]
    plain = [member for member in members if not symbols(member)]
    if "approx" in signs:
        cut = signs.index("approx") + 1
        if all(_roughly(members[cut - 1], member) for member in members[cut:]):
            members, last = members[:cut], members[cut - 1]
            plain = [member for member in members if not symbols(member)]
    if len({canonical(member) for member in members}) == 1 and len(members) > 1:
        return FALSE
    return last if all(equal(last, member, context) for member in plain) else FALSE


def _roughly(exact: Node, rounded: Node) -> bool:
    from cascade_plugin_math.verifier.numeric import Evaluator, Undefined

    (exact, unit), (rounded, other) = units.split(exact), units.split(rounded)
    converted = units.convert(rounded, other, unit)
    if converted is None:
        return False
    evaluator = Evaluator(30)
    try:
        one, two = evaluator.value(exact, {}), evaluator.value(converted, {})
    except Undefined:
        return False
    return bool(abs(one - two) <= abs(one) / 50)


def assignments(node: Node, context: Context) -> dict[str, Node] | None:
    """Named values with different names (`x = 1, y = 2`, `(x, y) = (1, 2)`), or `None`."""
    found: dict[str, Node] = {}
    if node.op == "rel":
        names, values = reduce(node, context)
        if names is None or names.op != values.op or names.op != "tuple" or len(names.args) != len(values.args):
            return None
        return {text(name): value for name, value in zip(names.args, values.args, strict=True)}
    for item in node.args if node.op in ("list", "and") else ():
        name, value = reduce(item, context)
        if name is None or name.op == "tuple" or text(canonical(name)) in found:
            return None
        found[text(canonical(name))] = value
    return found if len(found) > 1 else None


def renamed(named: tuple[Node, Node], function: Node) -> Node | None:
    """The value of `f(t) = 2t + 1` in the variable of `f(x)`; `None` where the two are not one function of one variable."""
    name, value = named
    variables = [side.args[0] if side.op == "apply" and len(side.args) == 1 else None for side in (name, function)]
    if name.value != function.value or any(one is None or one.op != "sym" for one in variables):
        return None
    mine, other = (str(one.value) for one in variables if one is not None)
    return substitute(value, mine, sym(other)) if other not in symbols(value) else None


def have_one_letter(named: Iterable[str]) -> bool:
    """Whether names differ by their index only: `x_1`, `x_2`."""
    return len({name.split("_")[0] for name in named}) == 1


def are_counted(named: Collection[str]) -> bool:
    """Whether names only count values, as roots are: `x_1`, `x_2` or `x_a`, `x_b`, but not `a_3`, `a_{37}`."""
    numbers = [int(digits) for name in named for digits in _INDEX.findall(name)]
    return have_one_letter(named) and (
        not numbers or sorted(numbers) in (list(range(len(named))), list(range(1, len(named) + 1)))
    )


def is_plain_number(node: Node) -> bool:
    """Whether the node is a number as one writes a result: no operation is left to be carried out.

    A sign, a fraction of two literals in lowest terms, a percent sign, a mixed number and a unit are no operations.
    """
    if node.op == "neg":
        return node.args[0].op != "neg" and is_plain_number(node.args[0])
    if node.op in ("percent", "degree"):
        return is_plain_number(node.args[0])
    if node.op in ("num", "based"):
        return True
    if node.op == "mul" and len(node.args) == 2:
        top, bottom = node.args
        if bottom.op == "word":
            return is_plain_number(top)
        value = rational(make("mul", top, bottom)) if bottom.op == "inv" and bottom.args[0].op == "num" else None
        return value is not None and top.op in ("num", "neg") and value.denominator == bottom.args[0].value != 1
    return False
