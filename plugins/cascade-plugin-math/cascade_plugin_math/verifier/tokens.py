"""Text of one answer to tokens: numbers, names, words, commands, brackets and signs.

One linear pass. Layout (`\\left`, `\\,`, `\\displaystyle`), struck-out and invisible parts (`\\cancel{7}`, `\\phantom{7}`)
vanish here; `\\text{…}` turns letters into words; brackets that wrap only another bracket are dropped, so that nesting
without content costs no depth. Nothing is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cascade_plugin_math.verifier import numerals
from cascade_plugin_math.verifier.layout import prepared
from cascade_plugin_math.verifier.nesting import collapsed
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable
from cascade_plugin_math.verifier.units import KNOWN_UNITS
from cascade_plugin_math.verifier.vocabulary import (
    ALLOWED_BARE,
    CLOSERS,
    CONSTANTS,
    DROPPED,
    FONTS,
    FUNCTIONS,
    HEDGES,
    OPENERS,
    SKIPPED,
    SPACES,
    UPRIGHT,
)

MAX_TOKENS = 2_000
_KEYWORDS = {"to", "or", "and", "not", "mod", "for", "if", "where", "when", "in", "per", "with"}
_COMMAND = re.compile(r"\\([A-Za-z]+\*?|.)", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_HEXADECIMAL = re.compile(
    r"(?<![A-Za-z\\])(?=[0-9A-F]*[A-F])(?=[A-F]{2}|[0-9A-F]*[0-9])[0-9A-F]{2,40}(?=\}?_\{?(?:1[1-6]|\\text)\b)"
)
_CODES = ("USD", "EUR", "GBP", "JPY", "INR")
_AMOUNT = re.compile(r"\.?\s*\d")
_AFTER_INCHES = re.compile(r"[\s}.$]*(?:\^\s*\{?[23]\}?|[²³])?[\s}.$]*")
_SIGNS = ("<=>", "...", "<=", ">=", "=<", "=>", "!=", "==", "**", "!!", "->", "&&", ":=")
_SIGN_NAMES = {
    "<=": "<=",
    ">=": ">=",
    "=<": "<=",
    "=>": ">=",
    "!=": "!=",
    "==": "=",
    ":=": "=",
    "**": "^",
    "->": "to",
    "...": "dots",
}


@dataclass(slots=True)
class Token:
    """`kind` is num, sym, word, key, cmd, open, close, op or end; `spaced` says that white space came before."""

    kind: str
    text: str
    spaced: bool = False
    node: Node | None = None


class Lexer:
    """Reads one text; see `tokenise`."""

    def __init__(self, text: str, comma: bool = False, signed_exponent: bool = False) -> None:
        self.text = prepared(text)
        self.comma, self.signed_exponent = comma, signed_exponent
        self.at, self.depth, self.spaced = 0, 0, False
        self.out: list[Token] = []
        self.modes: list[tuple[str, bool]] = []  # one entry an open brace: how it ends, and the mode to return to
        self.upright = False
        self.pending: str | None = None  # what the next brace opens: "upright" or "plain"

    def run(self) -> list[Token]:
        """All tokens, ended by one of kind `end`."""
        while self.at < len(self.text):
            self._step()
        if self.modes:
            raise Unreadable("a brace is not closed")
        tokens = collapsed(self.out)
        if len(tokens) > MAX_TOKENS:
            raise TooMuch("an answer of too many symbols")
        return [*tokens, Token("end", "")]

    def _emit(self, kind: str, text: str, node: Node | None = None) -> None:
        self.out.append(Token(kind, text, self.spaced, node))
        self.spaced = False

    def _step(self) -> None:
        char = self.text[self.at]
        if char.isspace() or char == "~":
            self.spaced, self.at = True, self.at + 1
        elif char == "\\":
            self._command()
        elif char in "{}":
            self._brace(char)
        elif char.isascii() and (numeral := _HEXADECIMAL.match(self.text, self.at)):
            self.at = numeral.end()
            self._emit("word", numeral[0])
        elif char.isdigit() or (char == "." and self.text[self.at + 1 : self.at + 2].isdigit()):
            begin = self.at
            node, self.at = numerals.read(
                self.text, begin, inside=self.depth > 0, comma=self.comma, signed_exponent=self.signed_exponent
            )
            self._emit("num", self.text[begin : self.at], node)
        elif char.isalpha():
            self._word() if self.upright or not char.isascii() else self._letters()
        elif char == "$":
            self._dollar()
        else:
            self._sign()

    def _brace(self, char: str) -> None:
        self.at += 1
        if char == "{":
            upright, self.pending = self.pending == "upright", None
            self.modes.append(("silent" if upright else "group", self.upright))
            self.upright = self.upright or upright
            if not upright:
                self._emit("open", "{")
            else:
                self.spaced = True
            return
        if not self.modes:
            raise Unreadable("a brace is not opened")
        kind, self.upright = self.modes.pop()
        if kind == "group":
            self._emit("close", "}")
        else:
            self.spaced = True

    def _dollar(self) -> None:
        self.at += 1
        if self.upright:
            return
        follows = self.text[self.at : self.at + 1]
        if (follows.isdigit() or follows == ".") and self.text.count("$") % 2:
            self._emit("word", "$")

    def _sign(self) -> None:
        sign = next((sign for sign in _SIGNS if self.text.startswith(sign, self.at)), self.text[self.at])
        self.at += len(sign)
        if sign in "()[]":
            self.depth += 1 if sign in "([" else -1
            self._emit("open" if sign in "([" else "close", sign)
        elif sign in "€£¥₹¢":
            self._emit("word", sign)
        elif sign not in ('"', "`") and not (sign == "." and self.upright):
            self._emit("op", _SIGN_NAMES.get(sign, sign))

    def _command(self) -> None:
        match = _COMMAND.match(self.text, self.at)
        if match is None:
            raise Unreadable("a backslash without a command")
        name, self.at = match[1], match.end()
        if name in SPACES or name.isspace():
            self.spaced = self.spaced or name != "!"
        elif name in SKIPPED:
            self._skip_dot(name)
        elif name in DROPPED:
            self._drop()
        elif name in UPRIGHT:
            self._open_upright()
        elif name in FONTS:
            pass
        elif name in "$%#&_" or name in ("euro", "pounds", "yen", "percent"):
            self._escaped(name)
        elif name in OPENERS:
            self.depth += 1
            self._emit("open", "\\" + OPENERS[name])
        elif name in CLOSERS:
            self.depth -= 1
            self._emit("close", "\\" + CLOSERS[name])
        elif name == "|":
            self._emit("op", "||")
        elif name == "\\":
            self._emit("op", "\\\\")
        else:
            self._emit("cmd", name)

    def _skip_dot(self, name: str) -> None:
        if name in ("left", "right", "middle") and re.match(r"\s*\.(?!\d)", self.text[self.at : self.at + 8]):
            self.at = self.text.index(".", self.at) + 1

    def _escaped(self, name: str) -> None:
        words = {"$": "$", "euro": "€", "pounds": "£", "yen": "¥"}
        if name in words:
            self._emit("word", words[name])
        elif name in ("%", "percent"):
            self._emit("op", "%")
        elif name == "&":
            self._emit("key", "and")

    def _open_upright(self) -> None:
        follows = re.compile(r"\s*\{").match(self.text, self.at)
        if follows:
            self.at, self.pending = follows.end() - 1, "upright"

    def _drop(self) -> None:
        follows = re.compile(r"\s*(?:\[[^\]]{0,40}\])?\s*\{").match(self.text, self.at)
        if follows is None:
            return
        depth, at = 1, follows.end()
        while at < len(self.text) and depth:
            if self.text[at] == "\\":
                at += 1
            else:
                depth += {"{": 1, "}": -1}.get(self.text[at], 0)
            at += 1
        self.at = at

    def _word(self) -> None:
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise Unreadable("a letter of an unknown script")
        self.at = match.end()
        self._emit_word(match[0])

    def _emit_word(self, word: str) -> None:
        low = word.lower()
        if low == "in" and self._ends_here():
            self._emit("word", "inch")
        elif low in _KEYWORDS:
            self._emit("key", low)
        elif low in ("percent", "pct", "percentage"):
            self._emit("op", "%")
        elif word in CONSTANTS or ((word in FUNCTIONS and self._is_called(word)) and word not in KNOWN_UNITS):
            self._emit("cmd", word)
        else:
            self._emit("word", word)

    def _ends_here(self) -> bool:
        """Whether nothing follows: `5 in` are inches."""
        return bool(self.out) and _AFTER_INCHES.fullmatch(self.text[self.at : self.at + 40]) is not None

    def _is_called(self, word: str) -> bool:
        """Whether an upright name such as `lcm` is a function here: it is applied to something."""
        rest = self.text[self.at : self.at + 24].lstrip(" }")
        return rest[:1] in ("(", "_", "^", "\\", "{") or (
            word in ("sin", "cos", "tan", "ln", "log", "cis") and rest[:1].isalnum()
        )

    def _letters(self) -> None:
        """A run of bare letters: a known name, a unit, a word, or a product of single letters."""
        match = _LETTERS.match(self.text, self.at)
        run = match[0] if match else self.text[self.at]
        self.at += len(run)
        last = self.out[-1] if self.out else None
        if len(run) == 1:
            self._emit("word" if self._is_below_unit(run) else "sym", run)
        elif run in _CODES or (run == "Rs" and last is None and _AMOUNT.match(self.text, self.at)):
            self._emit("word", run)
        elif run in FUNCTIONS or run in CONSTANTS or run in ("choose", "over"):
            self._emit("cmd", run)
        elif run.lower() in ("pct", "percent", "percentage"):
            self._emit("op", "%")
        elif set(run) <= set("ABCDEF") and self.text[self.at : self.at + 1] == "_":
            self._emit("word", run)
        elif len(run) == 2 and run.isupper() and run != "OR" and (last is not None or self.text[self.at :].strip()):
            self._emit("sym", run[0])
            self._emit("sym", run[1])
        elif len(run) > 3 or run.lower() in ALLOWED_BARE or run.lower() in HEDGES:
            self._long_run(run)
        elif self._is_unit_here(run, last) or (last is None and self._is_word_alone(run)):
            self._emit("word", run)
        else:
            for letter in run:
                self._emit("sym", letter)

    def _is_below_unit(self, run: str) -> bool:
        """Whether a letter is the unit below another one: `60 km/h`."""
        above = self.out[-2:]
        return (
            run in KNOWN_UNITS
            and len(above) == 2
            and above[1].text == "/"
            and (above[0].kind, above[0].text in KNOWN_UNITS) == ("word", True)
        )

    def _is_unit_here(self, run: str, last: Token | None) -> bool:
        """Whether a short run is a unit: it is one, and stands where units stand."""
        return (
            run in KNOWN_UNITS
            and last is not None
            and (last.kind in ("num", "close") or last.text in ("/", "per", "^"))
        )

    def _is_word_alone(self, run: str) -> bool:
        """Whether three letters that are the whole answer are a word, `cat`, and no product of variables, `xyz`."""
        products = ("abcd", "xyzw", "pqrs", "uvw", "klmn")
        return (
            len(run) == 3 and not self.text[self.at :].strip() and not any(set(run.lower()) <= set(p) for p in products)
        )

    def _is_call(self, run: str) -> bool:
        """Whether a bare word is applied to a number, as programs are: `print(5)`."""
        applied = re.compile(r"\(\s*-?[\d.]").match(self.text, self.at)
        return applied is not None and not any(run.lower() in known for known in (KNOWN_UNITS, _KEYWORDS, FUNCTIONS))

    def _long_run(self, run: str) -> None:
        """Four letters or more: `arctanx` is a function and its argument, `sinxcosx` a product, the rest a word."""
        if self._is_call(run):
            raise Unreadable(f"a function {run} that mathematics does not have")
        for size in range(len(run) - 1, 2, -1):
            if (
                run[:size] in FUNCTIONS
                and len(run) - size <= 3
                and len(run[:size]) > 2
                and run.lower() not in KNOWN_UNITS
            ):
                self.at -= len(run) - size
                self._emit("cmd", run[:size])
                return
        self._emit_word(run)


def tokenise(text: str, *, comma: bool = False, signed_exponent: bool = False) -> list[Token]:
    """The tokens of one answer.

    Raises:
        Unreadable: a brace without its partner, or a character that has no place in mathematics.
        TooMuch: more than `MAX_TOKENS`.
    """
    return Lexer(text, comma, signed_exponent).run()
