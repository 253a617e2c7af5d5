"""Tokens to a `Node`: a precedence parser for LaTeX and plain mathematics.

From loose to tight: lists (`,` `;`), `or`, `and`, conditions, relations, set operations, ratios, sums, products
(explicit, implicit, division), signs, powers and postfix signs. Two numbers side by side are no product, and whatever is
left over makes the whole text unreadable: nothing is dropped to make an answer fit.
Commands with arguments are in `constructs`, brackets in `brackets`. Nothing here evaluates anything.
"""

from __future__ import annotations

from fractions import Fraction

from cascade_plugin_math.verifier import atoms, brackets, constructs
from cascade_plugin_math.verifier.atoms import flat
from cascade_plugin_math.verifier.bases import based
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable, const, make, num, sym
from cascade_plugin_math.verifier.operators import (
    CONDITION,
    INFIX,
    JOIN,
    KEYS,
    POWER,
    PRODUCT,
    RELATION,
    SIGN,
    SUM,
)
from cascade_plugin_math.verifier.tokens import Token, tokenise
from cascade_plugin_math.verifier.vocabulary import RELATIONS

MAX_DEPTH = 90
_PRIVATE = ("over", "choose", "atop")
_DEGREES = (sym("circ"), sym("o"), Node("word", (), "o"))
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


class Parser:
    """Reads one token list; see `parse`."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars: list[str] = []  # the brackets that are open, innermost last
        self.literal = -1  # where the last number literal ended

    # --- tokens -------------------------------------------------------------------------------------------------
    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def has(self, kind: str, *texts: str) -> bool:
        return self.next.kind == kind and (not texts or self.next.text in texts)

    def expect(self, kind: str, *texts: str) -> Token:
        if not self.has(kind, *texts):
            raise Unreadable(f"{' or '.join(texts) or kind} is missing")
        return self.take()

    # --- the loose end ------------------------------------------------------------------------------------------
    def whole(self) -> Node:
        """Everything up to the end."""
        node = self.sequence()
        if self.next.kind != "end":
            raise Unreadable("something is left over")
        return node

    def sequence(self) -> Node:
        """One statement, or a list of them; commas within semicolons make a list of lists."""
        rows: list[list[Node]] = [[self.expression()]]
        separators: set[str] = set()
        while self.has("op", ",", ";", "\\\\"):
            separator = self.take().text
            separators.add(separator)
            if self.has("key", "and", "or"):
                self.take()
            if self.next.kind in ("end", "close") or self.has("op", ";", ","):
                break
            if separator == ";" and rows[-1]:
                rows.append([])
            rows[-1].append(self.expression())
        if not separators:
            return rows[0][0]
        nested = "," in separators and len(rows) > 1
        items = [make("list", *row, value=",") for row in rows] if nested else [item for row in rows for item in row]
        return make("list", *items, value=";" if ";" in separators else ",")

    def expression(self, power: int = 0) -> Node:
        """The longest expression whose operators bind tighter than `power`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooMuch("nested too deeply")
        left = self.prefix()
        while True:
            binding = self.binding()
            if binding is None or binding <= power:
                self.depth -= 1
                return left
            left = self.infix(left, binding)

    # --- what comes before --------------------------------------------------------------------------------------
    def prefix(self) -> Node:
        token = self.next
        if token.kind == "op" and token.text in ("+", "-"):
            self.take()
            inner = self.expression(SIGN)
            return make("neg", inner) if token.text == "-" else inner
        if token.kind == "cmd" and token.text in ("pm", "mp"):
            self.take()
            return make(token.text, self.expression(SUM))
        if self.sign(token) is not None and token.text not in ("in", "to"):
            return self.bound()
        if token.kind == "num":
            return atoms.number(self)
        if token.kind == "sym":
            return atoms.symbol(self)
        if token.kind == "word":
            return atoms.word(self)
        if token.kind == "open" or token.text in ("|", "||", "]"):
            return brackets.read(self)
        if token.kind == "op" and token.text == "dots":
            self.take()
            return Node("dots")
        if token.kind == "cmd":
            return constructs.read(self)
        if token.kind == "op" and token.text in ("_", "^"):
            return atoms.combination(self)
        raise Unreadable(f"{token.text or 'the end'} came unexpected")

    def bound(self) -> Node:
        """`>7`: half a relation. `≈ 7` is the value 7, and so is `= 7`."""
        sign = self.sign(self.take())
        inner = self.expression(RELATION)
        return inner if sign in ("approx", "=", "sim") else make("rel", sym("·"), inner, value=(sign,))

    # --- what comes after ---------------------------------------------------------------------------------------
    def sign(self, token: Token) -> str | None:
        return RELATIONS.get(token.text) if token.kind in ("op", "cmd") else None

    def binding(self) -> int | None:
        """How tight the next token binds to what is on its left; `None` ends the expression."""
        token = self.next
        if self.is_modulus():
            return CONDITION
        if token.kind == "key":
            return KEYS.get(token.text)
        if token.kind in ("end", "close") or token.text in _PRIVATE or (token.kind == "cmd" and token.text == "end"):
            return None
        if token.kind == "op" and token.text in ("|", "||"):
            return RELATION if token.text == "|" and self.bars[-1:] == ["\\set"] else self.implicit()
        if token.text in ("mid", "nmid", "colon", ":") and self.bars[-1:] == ["\\set"]:
            return RELATION
        if token.text == "mid" or self.sign(token) is not None or token.text == "not":
            return RELATION
        if token.kind in ("op", "cmd") and token.text in INFIX:
            return INFIX[token.text]
        return self.implicit()

    def implicit(self) -> int | None:
        """The binding of a product without a sign, if the next token can begin a factor."""
        token = self.next
        if token.text in ("|", "||") and token.kind == "op":
            return None if self.bars[-1:] == [token.text] else PRODUCT
        if token.kind == "open" and token.text == "[" and brackets.closes_outward(self):
            return None
        if token.kind == "num":
            return None if self.literal == self.at else PRODUCT
        if token.kind == "op":
            return PRODUCT if token.text == "dots" else None
        return PRODUCT

    def infix(self, left: Node, binding: int) -> Node:
        if self.is_modulus():
            return self.modulus(left)
        token = self.next
        if binding == RELATION:
            return self.relation(left)
        if binding == POWER:
            return self.postfix(left)
        if token.text not in (KEYS if token.kind == "key" else INFIX if token.kind in ("op", "cmd") else ()):
            right = self.expression(PRODUCT)
            return make("cond", left, right, value="for") if right.op == "rel" else make("mul", left, right)
        self.take()
        if binding == CONDITION:
            return self.condition(left, token.text)
        right = self.expression(binding)
        if token.text in (":", "colon", "to"):
            return make("ratio", *(left.args if left.op == "ratio" else (left,)), right)
        return JOIN[token.text](left, right)

    def condition(self, left: Node, word: str) -> Node:
        if word in ("pmod", "pod"):
            return make("cond", left, self.argument(), value="mod")
        return make("cond", left, self.expression(CONDITION), value="for")

    def is_modulus(self) -> bool:
        """Whether `(mod 7)` is next: the same as `\\pmod 7`."""
        return self.has("open", "(") and self.peek().text in ("mod", "bmod")

    def modulus(self, left: Node) -> Node:
        self.take()
        self.take()
        inner = self.expression()
        self.expect("close", ")")
        return make("cond", left, inner, value="mod")

    def postfix(self, left: Node) -> Node:
        token = self.take()
        if token.text in ("!", "!!"):
            return make("fact" if token.text == "!" else "dfact", left)
        if token.text in ("%", "permil"):
            return make("percent", left) if token.text == "%" else make("mul", left, num(Fraction(1, 1000)))
        if token.text == "degree":
            return make("degree", left)
        if token.text in ("'", "prime"):
            return make("fun", left, value="'")
        if token.text == "_":
            base = self.argument()
            if left.op == "word":
                return sym(f"{left.value}_{flat(base)}")
            digits = "".join(flat(part) for part in (left.args if left.op == "mul" else (left,)))
            if digits.isalnum():
                return based(digits, base)
            raise Unreadable("an index on something that has no name")
        return self.raised(left)

    def raised(self, left: Node) -> Node:
        """A power; `^\\circ` is a degree sign, `5^{th}` is 5, and `^T` transposes a matrix."""
        exponent = self.argument()
        while self.has("op", "^") and self.tokens[self.at - 1].kind != "close":  # plain text: 2^3^2 is 2^(3^2)
            self.take()
            exponent = make("pow", exponent, self.argument())
        if exponent in _DEGREES:
            return make("degree", left)
        if left.op == "num" and _is_ordinal(left.value, exponent):
            return left
        if exponent in (sym("T"), sym("top"), sym("intercal")) and left.op in ("matrix", "tuple"):
            return constructs.transposed(left) if left.op == "matrix" else left
        if exponent in (sym("prime"), sym("ast"), sym("star"), sym("dagger"), sym("c")):
            return make("fun", left, value=f"^{exponent.value}")
        return make("pow", left, exponent)

    def relation(self, left: Node) -> Node:
        """`a < b ≤ c`, one node for the whole chain."""
        args, signs = [left], []
        while True:
            token = self.next
            negated = token.text == "not" and token.kind == "cmd"
            if negated:
                self.take()
                token = self.next
            sign = "in" if token.kind == "key" and token.text == "in" else self.sign(token)
            if token.text in ("mid", "|", ":", "colon"):
                sign = "mid"
            if sign is None or (self.binding() != RELATION and not negated):
                break
            self.take()
            signs.append({"=": "!=", "in": "notin"}.get(sign, f"not {sign}") if negated else sign)
            args.append(self.expression(RELATION))
        if not signs:
            raise Unreadable("half a relation")
        return make("rel", *args, value=tuple(signs))

    def argument(self) -> Node:
        """What a command, `^` or `_` takes: a group, one symbol, a number, or a command with its own argument."""
        if self.has("open", "{"):
            return brackets.read(self)
        token = self.next
        if token.kind == "num":
            self.take()
            return token.node or num(0)
        if token.kind == "sym":
            self.take()
            return const(token.text) if token.text in "ei" else sym(token.text)
        if token.kind == "op" and token.text in ("-", "+"):
            self.take()
            inner = self.argument()
            return make("neg", inner) if token.text == "-" else inner
        if token.kind == "op" and token.text in ("'", "*"):
            self.take()
            return sym("prime" if token.text == "'" else "ast")
        if token.kind == "word":
            self.take()
            return Node("word", (), token.text)
        if token.kind == "cmd" or self.has("open", "("):
            return self.prefix()
        raise Unreadable("an argument is missing")


def _is_ordinal(number: Fraction, exponent: Node) -> bool:
    """Whether the exponent is the ending that the number has as an ordinal; italic, `nd` is a product of two letters."""
    ending = "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(int(number % 10), "th")
    italic = ending != "nd" and exponent == make("mul", *map(sym, ending))
    return number.denominator == 1 and (italic or exponent == Node("word", (), ending))


def parse(text: str, *, comma: bool = False, signed_exponent: bool = False) -> Node:
    """One answer, as a tree.

    Args:
        comma: numbers have a decimal comma.
        signed_exponent: `2e-3` is a number, not 2e − 3.

    Raises:
        Unreadable: it is no mathematics that this parser knows, or a bracket is left open.
        TooMuch: it is larger or deeper than the bounds of this package.
    """
    return Parser(tokenise(text, comma=comma, signed_exponent=signed_exponent)).whole()
