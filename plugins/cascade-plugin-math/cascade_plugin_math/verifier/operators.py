"""How tight the signs between two expressions bind, and what each of them makes."""

from __future__ import annotations

from collections.abc import Callable

from cascade_plugin_math.verifier.node import Node, make

OR, AND, CONDITION, RELATION, SETS, RATIO, SUM, PRODUCT, SIGN, FACTOR, POWER = range(2, 24, 2)
INFIX = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, ":": RATIO, "^": POWER, "!": POWER, "!!": POWER, "%": POWER,
    "&&": AND, "_": POWER, "'": POWER,
    "pm": SUM, "mp": SUM, "cdot": PRODUCT, "times": PRODUCT, "div": PRODUCT, "ast": PRODUCT, "star": PRODUCT,
    "cup": SETS, "bigcup": SETS, "cap": SETS, "bigcap": SETS, "setminus": SETS, "backslash": SETS, "bmod": SUM, "mod": SUM,
    "colon": RATIO, "lor": OR, "vee": OR, "land": AND, "wedge": AND, "prime": POWER, "circ": PRODUCT, "permil": POWER,
    "degree": POWER, "pmod": CONDITION, "pod": CONDITION,
}  # fmt: skip
KEYS = {"or": OR, "and": AND, "for": CONDITION, "if": CONDITION, "where": CONDITION, "when": CONDITION, "with": CONDITION,
         "mod": SUM, "to": RATIO, "per": PRODUCT, "in": RELATION}  # fmt: skip


def _joined(op: str) -> Callable[[Node, Node], Node]:
    """`a or b or c` as one node."""
    return lambda a, b: make(op, *(a.args if a.op == op else (a,)), b)


def _named(name: str) -> Callable[[Node, Node], Node]:
    return lambda a, b: make("fun", a, b, value=name)


JOIN: dict[str, Callable[[Node, Node], Node]] = {
    "+": lambda a, b: make("add", a, b),
    "-": lambda a, b: make("add", a, make("neg", b)),
    "pm": lambda a, b: make("add", a, make("pm", b)),
    "mp": lambda a, b: make("add", a, make("mp", b)),
    "circ": _named("compose"),
    **dict.fromkeys(("bmod", "mod"), _named("mod")),
    **dict.fromkeys(("or", "lor", "vee"), _joined("or")),
    **dict.fromkeys(("and", "land", "wedge", "&&"), _joined("and")),
    **dict.fromkeys(("cup", "bigcup"), _joined("union")),
    **dict.fromkeys(("cap", "bigcap"), lambda a, b: make("inter", a, b)),
    **dict.fromkeys(("setminus", "backslash"), lambda a, b: make("minus", a, b)),
    **dict.fromkeys(("*", "cdot", "times", "ast", "star"), lambda a, b: make("mul", a, b)),
    **dict.fromkeys(("/", "div", "per"), lambda a, b: make("mul", a, make("inv", b))),
}
