"""Commands that take arguments: fractions, roots, functions, sums, matrices, accents, quantifiers.

An unknown command is read as a name, so that an answer with `\\aleph_0` or `\\heartsuit` can still be the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_plugin_math.verifier import brackets
from cascade_plugin_math.verifier.atoms import flat, named
from cascade_plugin_math.verifier.node import Node, Unreadable, const, fun, make, num, rebuild, sym
from cascade_plugin_math.verifier.operators import FACTOR, PRODUCT, RELATION
from cascade_plugin_math.verifier.tokens import Token
from cascade_plugin_math.verifier.vocabulary import ACCENTS, CONSTANTS, FUNCTIONS, INVERSES, NUMBER_SETS

if TYPE_CHECKING:
    from cascade_plugin_math.verifier.parser import Parser

_FRACTIONS = ("frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac", "flatfrac")
_BINOMIALS = ("binom", "dbinom", "tbinom")
_BIG = {"sum": "sum", "prod": "prod", "int": "int", "iint": "iint", "oint": "oint", "lim": "lim", "limsup": "limsup"}


def read(parser: Parser) -> Node:
    """The command at the next token, with its arguments.

    Raises:
        Unreadable: an argument is missing.
    """
    name = parser.take().text
    if name in _FRACTIONS:
        top = _small(parser)
        return make("mul", top, make("inv", _small(parser)))
    if name in _BINOMIALS:
        top = _small(parser)
        return fun("binom", top, _small(parser))
    if name == "sqrt":
        return _root(parser)
    if name in CONSTANTS:
        return const(CONSTANTS[name]) if CONSTANTS[name] != "Pi" else named(parser, "Pi")
    if name in FUNCTIONS:
        return _function(parser, FUNCTIONS[name])
    if name in _BIG:
        return _big(parser, _BIG[name])
    if name == "begin":
        return _environment(parser)
    if name in ("mathbb", "Bbb"):
        return _number_set(parser, flat(parser.argument()))
    return _other(parser, name)


def _other(parser: Parser, name: str) -> Node:
    if name in ("emptyset", "varnothing", "O"):
        return make("set")
    if name in ("ldots", "dots", "cdots", "vdots", "dotsc", "dotsb", "textellipsis", "therefore", "because"):
        return Node("dots")
    if name in ("reals", "R", "Z", "N", "Q"):
        return Node("numset", (), "R" if name == "reals" else name)
    if name == "unitvector":
        return sym(f"unit {flat(parser.argument())}")
    if name in ACCENTS:
        return _accent(parser, name)
    if name in ("forall", "exists", "neg", "lnot", "nexists"):
        return make("stmt", parser.expression(RELATION - 1), value=name)
    if name == "operatorname" or name == "not":
        raise Unreadable("a command without its argument")
    if name == "mathring":
        return parser.argument()
    return named(parser, name.removeprefix("var") if name in ("varphi", "vartheta", "varepsilon") else name)


def _number_set(parser: Parser, letter: str) -> Node:
    """`\\mathbb{R}`, its positive half `\\mathbb{R}^+`, or a name such as `\\mathbb{Z}_5`."""
    if letter not in NUMBER_SETS or parser.has("op", "_"):
        return named(parser, f"bb{letter}")
    if not parser.has("op", "^"):
        return Node("numset", (), NUMBER_SETS[letter])
    parser.take()
    braced = parser.has("open", "{")
    if braced:
        parser.take()
    sign = parser.take().text
    if braced:
        parser.expect("close", "}")
    if letter == "Z" and sign == "+":
        return Node("numset", (), "N")
    ends = {"+": (num(0), const("inf")), "-": (make("neg", const("inf")), num(0))}
    return make("tuple", *ends[sign], value="()") if letter == "R" and sign in ends else sym(f"bb{letter}^{sign}")


def _small(parser: Parser) -> Node:
    """An argument of TeX: a bare number gives only its first digit (`\\frac17 2` is 1/7 · 2)."""
    token = parser.next
    if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
        rest = token.text[1:]
        parser.tokens[parser.at] = Token("num", rest, False, num(int(rest) if len(rest) < 4000 else 0))
        return num(int(token.text[0]))
    return parser.argument()


def _root(parser: Parser) -> Node:
    index = None
    if parser.has("open", "["):
        parser.take()
        parser.bars.append("[")
        index = parser.expression()
        parser.bars.pop()
        parser.expect("close", "]")
    body = brackets.read(parser) if parser.has("open", "(") else _small(parser)
    return make("root", body, num(2) if index is None else index)


def _function(parser: Parser, name: str) -> Node:
    base = power = None
    while parser.has("op", "_", "^"):
        if parser.take().text == "_":
            token = parser.next
            base = (
                _small(parser)
                if token.kind == "num" and not token.spaced and _needs_split(parser)
                else parser.argument()
            )
        else:
            power = parser.argument()
    if name in ("max", "min", "gcd", "lcm") and base is not None:
        return make("fun", base, _applied(parser), value=f"{name}_")
    if power is not None and power == make("neg", num(1)) and name in INVERSES:
        name, power = INVERSES[name], None
    if name == "sqrt":
        node = make("root", _applied(parser), num(2))
    elif name == "cbrt":
        node = make("root", _applied(parser), num(3))
    else:
        node = _call(name, _applied(parser), base)
    return node if power is None else make("pow", node, power)


def _needs_split(parser: Parser) -> bool:
    """`\\log_28`: one number is base and argument, since nothing follows it that could be the argument."""
    follows = parser.peek()
    return len(parser.next.text) > 1 and (
        follows.kind in ("end", "close") or (follows.kind == "op" and follows.text != "|")
    )


def _call(name: str, body: Node, base: Node | None) -> Node:
    args = body.args if body.op in ("list", "tuple") else (body,)
    if name == "exp":
        return make("pow", const("e"), body)
    if name == "cis":
        return make("add", fun("cos", body), make("mul", const("i"), fun("sin", body)))
    if name == "factorial":
        return make("fact", body)
    if name == "log" and base is not None:
        return fun("logb", body, base)
    if name in ("ln", "lg") or base is None:
        return fun(name, *args)
    return make("fun", *args, base, value=f"{name}_")


def _applied(parser: Parser) -> Node:
    """What a function is applied to: a bracket, or the factors that follow, up to the next function."""
    if parser.has("open", "(") or parser.has("open", "["):
        return brackets.read(parser)
    if parser.has("open", "\\set"):
        return make("list", *brackets.read(parser).args, value=",")
    parts = [parser.expression(FACTOR)]
    while parser.implicit() is not None and _continues(parser):
        parts.append(parser.expression(FACTOR))
    return make("mul", *parts)


def _continues(parser: Parser) -> bool:
    token = parser.next
    if token.kind == "cmd":
        return token.text in ("pi", "sqrt", *_FRACTIONS) or (
            token.text not in FUNCTIONS and token.text.isalpha() and not _is_infix(parser)
        )
    return token.kind in ("sym", "num") or (token.kind == "open" and token.text == "{")


def _is_infix(parser: Parser) -> bool:
    return parser.binding() != PRODUCT or parser.next.text in ("cdot", "times", "div", "ast", "star", "circ")


def _big(parser: Parser, name: str) -> Node:
    """Sums, products, integrals, limits: bounds, body and variable."""
    low = high = None
    while parser.has("op", "_", "^"):
        if parser.take().text == "_":
            low = parser.argument()
        else:
            high = parser.argument()
    body = parser.expression(PRODUCT - 2)
    if name in ("sum", "prod") and low is not None and high is not None and low.op == "rel" and low.value == ("=",):
        if low.args[0] == const("i"):
            body = rebuild(body, lambda part: sym("i") if part == const("i") else None)
            return fun(name, sym("i"), low.args[1], high, body)
        return fun(name, low.args[0], low.args[1], high, body)
    return make("fun", *(part for part in (low, high, body) if part is not None), value=f"{name}.")


def _accent(parser: Parser, name: str) -> Node:
    if name in ("overset", "stackrel", "underset"):
        parser.argument()
        return parser.argument()
    if name in ("angle", "triangle", "measuredangle"):
        return make("fun", parser.expression(PRODUCT - 1), value=name)
    inner = parser.argument()
    if name in ("underbrace", "overbrace"):
        return inner
    kind = {"overline": "bar", "widehat": "hat", "widetilde": "tilde", "overrightarrow": "vec"}.get(name, name)
    if inner.op == "sym":
        return named(parser, f"{kind} {inner.value}")
    return make("fun", inner, value=kind)


def transposed(matrix: Node) -> Node:
    """The matrix with rows and columns exchanged."""
    rows, columns = matrix.value
    cells = [matrix.args[row * columns + column] for column in range(columns) for row in range(rows)]
    return make("matrix", *cells, value=(columns, rows))


def _environment(parser: Parser) -> Node:
    name = _environment_name(parser)
    if name == "array":
        while not parser.has("close", "}"):
            parser.take()
        parser.take()
    rows: list[list[Node]] = [[]]
    parser.bars.append("env")
    while not parser.has("cmd", "end"):
        if parser.has("op", "&", "\\\\"):
            if parser.take().text != "&":
                rows.append([])
        elif parser.has("op", ",", ";", ".") or (rows[-1] and parser.has("key", "if", "for", "when", "where")):
            parser.take()
        else:
            rows[-1].append(_cell(parser))
            if not (parser.has("op", "&", "\\\\", ",", ";", ".") or parser.has("cmd", "end")):
                raise Unreadable("an environment is not ended")
    parser.bars.pop()
    parser.take()
    if _environment_name(parser) != name:
        raise Unreadable("an environment is ended by another one")
    return _shaped(name, [row for row in rows if row])


def _cell(parser: Parser) -> Node:
    if parser.has("word", "otherwise", "else") and parser.peek().text in ("end", "\\\\", ",", "."):
        return Node("word", (), parser.take().text)
    return parser.expression()


def _environment_name(parser: Parser) -> str:
    parser.expect("open", "{")
    name = ""
    while not parser.has("close", "}"):
        if parser.next.kind not in ("sym", "word", "cmd") and parser.next.text != "*":
            raise Unreadable("an environment without a name")
        name += parser.take().text
    parser.take()
    return name.rstrip("*")


def _shaped(name: str, rows: list[list[Node]]) -> Node:
    cells = [cell for row in rows for cell in row]
    if not cells:
        raise Unreadable("an empty environment")
    if name == "cases" or not name.endswith(("matrix", "array")):
        if all(len(row) == 1 for row in rows):
            return make("list", *cells, value=",") if len(cells) > 1 else cells[0]
        return make("cases", *(make("list", *row, value=",") for row in rows))
    if len({len(row) for row in rows}) != 1:
        raise Unreadable("rows of unequal length")
    matrix = make("matrix", *cells, value=(len(rows), len(rows[0])))
    return fun("det", matrix) if name == "vmatrix" else matrix
