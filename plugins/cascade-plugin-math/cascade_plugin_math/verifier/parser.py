"""Tokens to a `Node`: a precedence parser for LaTeX and plain mathematics.

From loose to tight: lists (`,` `;`), `or`, `and`, conditions, relations, set operations, ratios, sums, products
(explicit, implicit, division), signs, powers and postfix signs. Two numbers side by side are no product, and whatever is
left over makes the whole text unreadable: nothing is dropped to make an answer fit.
Commands with arguments are in `constructs`, brackets in `brackets`. Nothing here evaluates anything.
"""

from __future__ import annotations

from fractions import Fraction

from cascade_plugin_math.verifier import brackets, constructs
from cascade_plugin_math.verifier.bases import based
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable, const, make, num, sym
from cascade_plugin_math.verifier.tokens import Token, tokenise
from cascade_plugin_math.verifier.vocabulary import HEDGES, RELATIONS, SCALES

MAX_DEPTH = 90
OR, AND, CONDITION, RELATION, SETS, RATIO, SUM, PRODUCT, SIGN, FACTOR, POWER = range(2, 24, 2)
_INFIX = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, ":": RATIO, "^": POWER, "!": POWER, "!!": POWER, "%": POWER,
    "&&": AND, "_": POWER, "'": POWER,
    "pm": SUM, "mp": SUM, "cdot": PRODUCT, "times": PRODUCT, "div": PRODUCT, "ast": PRODUCT, "star": PRODUCT,
    "cup": SETS, "bigcup": SETS, "cap": SETS, "bigcap": SETS, "setminus": SETS, "backslash": SETS, "bmod": SUM, "mod": SUM,
    "colon": RATIO, "lor": OR, "vee": OR, "land": AND, "wedge": AND, "prime": POWER, "circ": PRODUCT, "permil": POWER,
    "degree": POWER, "pmod": CONDITION, "pod": CONDITION,
}  # fmt: skip
_KEYS = {"or": OR, "and": AND, "for": CONDITION, "if": CONDITION, "where": CONDITION, "when": CONDITION, "with": CONDITION,
         "mod": SUM, "per": PRODUCT, "in": RELATION}  # fmt: skip
_PRIVATE = ("over", "choose", "atop")


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
        """One statement, or a list of them between commas, semicolons or line breaks."""
        items, separators = [self.expression()], set()
        while self.has("op", ",", ";", "\\\\"):
            separators.add(self.take().text)
            if self.has("key", "and", "or"):
                self.take()
            if self.next.kind in ("end", "close") or self.has("op", ";", ","):
                break
            items.append(self.expression())
        if len(items) == 1 and not separators:
            return items[0]
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
            return self.number()
        if token.kind == "sym":
            return self.symbol()
        if token.kind == "word":
            return self.word()
        if token.kind == "open" or token.text in ("|", "||", "]"):
            return brackets.read(self)
        if token.kind == "op" and token.text == "dots":
            self.take()
            return Node("dots")
        if token.kind == "cmd":
            return constructs.read(self)
        raise Unreadable(f"{token.text or 'the end'} came unexpected")

    def bound(self) -> Node:
        """`>7`: half a relation. `≈ 7` is the value 7, and so is `= 7`."""
        sign = self.sign(self.take())
        inner = self.expression(RELATION)
        return inner if sign in ("approx", "=", "sim") else make("rel", sym("·"), inner, value=(sign,))

    def number(self) -> Node:
        token = self.take()
        node = token.node
        if node is None:
            raise Unreadable("a number without a value")
        if self.has("op", "_"):
            self.take()
            return based(token.text, self.argument())
        follows = self.next
        if token.text.isdigit() and follows.kind == "num" and follows.spaced and self.peek().text == "/":
            return self.mixed(node)
        if token.text.isdigit() and follows.kind == "cmd" and follows.text in ("frac", "dfrac", "tfrac", "cfrac"):
            return self.mixed_latex(node)
        if follows.kind == "word" and follows.text.lower() in SCALES:
            return make("mul", node, num(SCALES[self.take().text.lower()]))
        self.literal = self.at
        return node

    def mixed(self, whole: Node) -> Node:
        """`2 1/4`, a mixed number; its fraction must be a proper one."""
        top = self.take()
        self.take()
        bottom = self.expect("num")
        if not (top.text.isdigit() and bottom.text.isdigit() and top.node and bottom.node):
            raise Unreadable("two numbers side by side")
        if not 0 < top.node.value < bottom.node.value or self.has("op", "/"):
            raise Unreadable("a mixed number whose fraction is not a proper one")
        return num(whole.value + top.node.value / bottom.node.value)

    def mixed_latex(self, whole: Node) -> Node:
        """`2\\frac{1}{4}`; what is no proper fraction of two numbers stays for the product."""
        before = self.at
        fraction = constructs.read(self)
        top, bottom = fraction.args if len(fraction.args) == 2 else (fraction, fraction)
        plain = fraction.op == "mul" and top.op == "num" and bottom.op == "inv" and bottom.args[0].op == "num"
        if plain and 0 < top.value < bottom.args[0].value and (not self.has("op", "^") or self.is_degree()):
            return num(whole.value + top.value / bottom.args[0].value)
        self.at = before
        return whole

    def is_degree(self) -> bool:
        """Whether a degree sign follows: `^\\circ`."""
        return "circ" in (self.peek().text, self.peek(2).text)

    def symbol(self) -> Node:
        name = self.take().text
        if name == "e" and not self.has("op", "_"):
            return const("e")
        if name == "i" and not self.has("op", "_"):
            return const("i")
        return self.named(name)

    def named(self, name: str) -> Node:
        """A variable with its primes, its index, and its arguments where it is surely a function."""
        while self.has("op", "'", "_") or self.has("cmd", "prime"):
            if self.take().text == "_":
                name += f"_{_flat(self.argument())}"
            else:
                name += "'"
        if name[0] in "fghFGHO" and len(name.rstrip("'")) == 1 and self.has("open", "("):
            return make("apply", brackets.read(self), value=name)
        return sym(name)

    def word(self) -> Node:
        token = self.take()
        low = token.text.lower()
        if low in HEDGES:
            raise Unreadable(f"the word {token.text}")
        if self.has("op", "_"):
            self.take()
            base = self.argument()
            if all(char in "0123456789abcdefABCDEF" for char in token.text):
                return based(token.text, base)
            return sym(f"{token.text}_{_flat(base)}")
        if len(token.text) == 1 and token.text in "ei":
            return const(token.text)
        node = Node("word", (), token.text)
        return self.money(node) if token.text in ("$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "Rs") else node

    def money(self, currency: Node) -> Node:
        """A currency that stands before its amount."""
        if self.has("op", "."):
            self.take()
        if self.next.kind == "num":
            return make("mul", self.number(), currency)
        if self.next.kind == "open" or self.has("cmd", "frac", "dfrac"):
            return make("mul", self.expression(FACTOR), currency)
        return currency

    # --- what comes after ---------------------------------------------------------------------------------------
    def sign(self, token: Token) -> str | None:
        return RELATIONS.get(token.text) if token.kind in ("op", "cmd") else None

    def binding(self) -> int | None:
        """How tight the next token binds to what is on its left; `None` ends the expression."""
        token = self.next
        if token.kind == "key":
            return _KEYS.get(token.text)
        if token.kind in ("end", "close") or token.text in _PRIVATE or (token.kind == "cmd" and token.text == "end"):
            return None
        if token.kind == "op" and token.text in ("|", "||"):
            return RELATION if token.text == "|" and self.bars[-1:] == ["\\set"] else self.implicit()
        if token.text in ("mid", "nmid", "colon", ":") and self.bars[-1:] == ["\\set"]:
            return RELATION
        if token.text == "mid" or self.sign(token) is not None or token.text == "not":
            return RELATION
        if token.kind in ("op", "cmd") and token.text in _INFIX:
            return _INFIX[token.text]
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
        token = self.next
        if binding == RELATION:
            return self.relation(left)
        if binding == POWER:
            return self.postfix(left)
        if (
            token.kind in ("num", "sym", "word", "open")
            or token.text in ("|", "||", "dots")
            or token.text not in (*_INFIX, *_KEYS)
        ):
            return make("mul", left, self.expression(PRODUCT))
        self.take()
        if binding == CONDITION:
            return self.condition(left, token.text)
        right = self.expression(binding)
        if token.text == ":" or token.text == "colon":
            return make("ratio", *(left.args if left.op == "ratio" else (left,)), right)
        return _JOIN[token.text](left, right)

    def condition(self, left: Node, word: str) -> Node:
        if word in ("pmod", "pod"):
            return make("cond", left, self.argument(), value="mod")
        return make("cond", left, self.expression(CONDITION), value="for")

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
                return sym(f"{left.value}_{_flat(base)}")
            digits = "".join(str(part.value) for part in (left.args if left.op == "mul" else (left,)))
            if digits.isalnum():
                return based(digits, base)
            raise Unreadable("an index on something that has no name")
        return self.raised(left)

    def raised(self, left: Node) -> Node:
        """A power; `^\\circ` is a degree sign and `^T` transposes a matrix."""
        exponent = self.argument()
        while self.has("op", "^") and self.tokens[self.at - 1].kind != "close":  # plain text: 2^3^2 is 2^(3^2)
            self.take()
            exponent = make("pow", exponent, self.argument())
        if exponent == sym("circ"):
            return make("degree", left)
        if exponent in (sym("T"), sym("top"), sym("intercal")) and left.op == "matrix":
            return constructs.transposed(left)
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


def _flat(node: Node) -> str:
    """The text of an index."""
    if node.op == "num":
        return str(node.value) if node.value.numerator < 10**9 else "?"
    if node.op in ("sym", "word", "const"):
        return str(node.value)
    return f"{node.op}({','.join(_flat(arg) for arg in node.args)})"


_JOIN = {
    "+": lambda a, b: make("add", a, b), "-": lambda a, b: make("add", a, make("neg", b)),
    "pm": lambda a, b: make("add", a, make("pm", b)), "mp": lambda a, b: make("add", a, make("mp", b)),
    "bmod": lambda a, b: make("fun", a, b, value="mod"), "mod": lambda a, b: make("fun", a, b, value="mod"),
    "or": lambda a, b: make("or", *_parts(a, "or"), b), "lor": lambda a, b: make("or", *_parts(a, "or"), b),
    "vee": lambda a, b: make("or", *_parts(a, "or"), b), "and": lambda a, b: make("and", *_parts(a, "and"), b),
    "land": lambda a, b: make("and", *_parts(a, "and"), b), "wedge": lambda a, b: make("and", *_parts(a, "and"), b),
    "&&": lambda a, b: make("and", *_parts(a, "and"), b),
    "cup": lambda a, b: make("union", *_parts(a, "union"), b), "bigcup": lambda a, b: make("union", *_parts(a, "union"), b),
    "cap": lambda a, b: make("inter", a, b), "bigcap": lambda a, b: make("inter", a, b),
    "setminus": lambda a, b: make("minus", a, b), "backslash": lambda a, b: make("minus", a, b),
    "circ": lambda a, b: make("fun", a, b, value="compose"),
    **dict.fromkeys(("*", "cdot", "times", "ast", "star"), lambda a, b: make("mul", a, b)),
    **dict.fromkeys(("/", "div", "per"), lambda a, b: make("mul", a, make("inv", b))),
}  # fmt: skip


def _parts(node: Node, op: str) -> tuple[Node, ...]:
    return node.args if node.op == op else (node,)


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
