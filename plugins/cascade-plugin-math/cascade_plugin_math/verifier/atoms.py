"""Numbers, names and words: what an expression begins with, and what belongs to it.

A number takes its base (`52_8`), its fraction (`2\\frac14`, `2 1/4`) and its scale (`3 million`); a name its index, its
primes and, where it is surely a function, its arguments. Nothing here looks back or reads anything twice.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cascade_plugin_math.verifier import brackets
from cascade_plugin_math.verifier.bases import based
from cascade_plugin_math.verifier.node import Node, Unreadable, const, make, num, sym
from cascade_plugin_math.verifier.operators import FACTOR
from cascade_plugin_math.verifier.vocabulary import HEDGES, SCALES

if TYPE_CHECKING:
    from cascade_plugin_math.verifier.parser import Parser

_FRACTIONS = ("frac", "dfrac", "tfrac", "cfrac")
_CURRENCIES = frozenset(("$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "Rs"))


def number(parser: Parser) -> Node:
    """The number literal at hand, with what makes it another number."""
    token = parser.take()
    if token.node is None:
        raise Unreadable("a number without a value")
    if parser.has("op", "_"):
        parser.take()
        return based(token.text, parser.argument())
    follows = parser.next
    if token.text.isdigit() and follows.kind == "num" and follows.spaced and parser.peek().text == "/":
        return _mixed(parser, token.node)
    if token.text.isdigit() and follows.kind == "cmd" and follows.text in _FRACTIONS:
        return _mixed_latex(parser, token.node)
    if follows.kind == "word" and follows.text.lower() in SCALES:
        return make("mul", token.node, num(SCALES[parser.take().text.lower()]))
    parser.literal = parser.at
    return token.node


def _mixed(parser: Parser, whole: Node) -> Node:
    """`2 1/4`; its fraction must be a proper one."""
    top = parser.take()
    parser.take()
    bottom = parser.expect("num")
    if not (top.text.isdigit() and bottom.text.isdigit() and top.node and bottom.node):
        raise Unreadable("two numbers side by side")
    if not 0 < top.node.value < bottom.node.value or parser.has("op", "/"):
        raise Unreadable("a mixed number whose fraction is not a proper one")
    return num(whole.value + top.node.value / bottom.node.value)


def _mixed_latex(parser: Parser, whole: Node) -> Node:
    """`2\\frac{1}{4}`; what is no proper fraction of two numbers stays for the product."""
    texts: list[str] = []
    length = 1
    while len(texts) < 2:
        token = parser.peek(length)
        braced = token.text == "{"
        if braced:
            token = parser.peek(length + 1)
        if token.kind != "num" or not token.text.isdigit() or (braced and parser.peek(length + 2).text != "}"):
            return whole
        texts += [token.text] if braced or len(token.text) == 1 else [token.text[0], token.text[1:]]
        length += 3 if braced else 1
    follows = parser.peek(length).text
    degree = "circ" in (parser.peek(length + 1).text, parser.peek(length + 2).text)
    if len(texts[0]) + len(texts[1]) > 200 or not 0 < int(texts[0]) < int(texts[1]) or (follows == "^" and not degree):
        return whole
    for _ in range(length):
        parser.take()
    return num(whole.value + Fraction(int(texts[0]), int(texts[1])))


def combination(parser: Parser) -> Node:
    """`{}_nC_k` and `^nC_k`: a binomial coefficient, or with P the number of arrangements."""
    parser.take()
    top = parser.argument()
    name = parser.expect("sym", "C", "P").text
    parser.expect("op", "_")
    return make("fun", top, parser.argument(), value="binom" if name == "C" else "perm")


def symbol(parser: Parser) -> Node:
    """A variable, or one of the constants e and i."""
    name = parser.take().text
    if name in ("e", "i") and not parser.has("op", "_"):
        return const(name)
    return named(parser, name)


def named(parser: Parser, name: str) -> Node:
    """A variable with its primes, its index, and its arguments where it is surely a function."""
    while parser.has("op", "'", "_") or parser.has("cmd", "prime"):
        index = parser.take().text == "_"
        name += f"_{flat(parser.argument())}" if index else "'"
    if name in ("f", "g", "h") and [parser.peek(k).text for k in range(6)] == ["^", "{", "-", "1", "}", "("]:
        for _ in range(5):
            parser.take()
        name += "^-1"
        return make("apply", brackets.read(parser), value=name)
    if name[0] in "fghFGHO" and len(name.rstrip("'")) == 1 and parser.has("open", "("):
        return make("apply", brackets.read(parser), value=name)
    return sym(name)


def word(parser: Parser) -> Node:
    """A word in upright type: a unit, a thing, a name, hexadecimal digits.

    Raises:
        Unreadable: it is a word that makes a value into something else.
    """
    text = parser.take().text
    if text.lower() in HEDGES:
        raise Unreadable(f"the word {text}")
    if parser.has("op", "_"):
        parser.take()
        base = parser.argument()
        if all(char in "0123456789abcdefABCDEF" for char in text):
            return based(text, base)
        return sym(f"{text}_{flat(base)}")
    if text in ("e", "i"):
        return const(text)
    if text == "d":
        return sym(text)
    node = Node("word", (), text)
    return _money(parser, node) if text in _CURRENCIES else node


def _money(parser: Parser, currency: Node) -> Node:
    """A currency that stands before its amount."""
    if parser.has("op", "."):
        parser.take()
    if parser.has("op", "-"):
        parser.take()
        return make("neg", make("mul", number(parser), currency)) if parser.next.kind == "num" else currency
    if parser.next.kind == "num":
        return make("mul", number(parser), currency)
    if parser.next.kind == "open" or parser.has("cmd", *_FRACTIONS):
        return make("mul", parser.expression(FACTOR), currency)
    return currency


def flat(node: Node) -> str:
    """The text of an index."""
    if node.op == "num":
        return str(node.value) if node.value.numerator.bit_length() < 64 else "?"
    if node.op in ("sym", "word", "const"):
        return str(node.value)
    parts = [flat(arg) for arg in node.args]
    return f"{node.op}({','.join(sorted(parts) if node.op in ('add', 'mul') else parts)})"
