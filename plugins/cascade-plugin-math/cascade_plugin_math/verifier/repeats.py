"""Does an answer merely repeat an expression of the question? `\\boxed{300+45}` answers nothing to `300+45=`.

An answer with something left to compute is a repetition if the question contains it, sign for sign, or contains the same
expression in another order. Plain numbers are never repetitions: `1/2` may well be one of two values the question names.
"""

from __future__ import annotations

import re

from cascade_plugin_math.verifier.names import is_plain_number
from cascade_plugin_math.verifier.node import Node, TooMuch, Unreadable, canonical, make, num, rebuild
from cascade_plugin_math.verifier.parser import parse
from cascade_plugin_math.verifier.tables import spaced
from cascade_plugin_math.verifier.tokens import Token, tokenise

_MAX_PROBLEM, _MAX_PIECES, _MAX_PIECE = 20_000, 60, 300
_DELIMITED = re.compile(r"\$\$?([^$]{1,300})\$\$?|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]", re.S)
_RUN = re.compile(
    r"(?:[-+*/^()=<>.,!|%×÷·−√π²³\s\d{}\[\]]|\\[A-Za-z]+|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|\b(?:sin|cos|tan|log|ln|sqrt|pi|exp)\b){3,300}"
)
_OPERATIONS = spaced("add mul pow root fact dfact fun pm mp rel inv")


def repeats(answer: Node, problem: str) -> bool:
    """Whether the answer is one of the question's own expressions, not carried out."""
    if not problem or is_plain_number(answer) or answer.op not in _OPERATIONS:
        return False
    target = canonical(rebuild(answer, _plainer))
    return any(target in (piece, _left(piece), _right(piece)) for piece in _expressions(problem[:_MAX_PROBLEM]))


def _plainer(node: Node) -> Node | None:
    """The node without what changes nothing: `+ 0`, `· 1`, `/ 1`, `^1`, a doubled sign."""
    if node.op in ("add", "mul"):
        neutral = num(0) if node.op == "add" else num(1)
        kept = [arg for arg in node.args if arg not in (neutral, make("neg", neutral), make("inv", neutral))]
        return make(node.op, *kept) if kept and len(kept) < len(node.args) else None
    if node.op == "pow" and node.args[1] == num(1):
        return node.args[0]
    return node.args[0].args[0] if node.op == "neg" and node.args[0].op == "neg" else None


def written_in(text: str, problem: str) -> bool:
    """Whether the answer's own symbols stand in the question one after another."""
    mine, theirs = symbols_of(text), symbols_of(problem[:_MAX_PROBLEM])
    return len(mine.split()) >= 3 and f" {mine} " in f" {theirs} "


def symbols_of(text: str) -> str:
    """The symbols of an expression, a blank between them, without layout."""
    out: list[str] = []
    for piece in re.findall(r"\\[A-Za-z]+|\d+(?:\.\d+)?|[A-Za-z]+|[^\s\w]", text):
        if piece not in ("{", "}", "$", "\\left", "\\right", "\\cdot", "\\times", "*", "×", "·"):
            out.append({"−": "-", "\\div": "/", "÷": "/", "\\dfrac": "\\frac", "\\tfrac": "\\frac"}.get(piece, piece))
    return " ".join(out)


def _expressions(problem: str) -> list[Node]:
    pieces = [next(part for part in match.groups() if part) for match in _DELIMITED.finditer(problem)]
    pieces += [match[0] for match in _RUN.finditer(problem)]
    found = []
    for piece in pieces[:_MAX_PIECES]:
        try:
            found.append(canonical(parse(_trimmed(piece))))
        except (Unreadable, TooMuch):
            continue
    return found


def _trimmed(piece: str) -> str:
    from cascade_plugin_math.verifier.characters import plain

    return plain(piece).strip().rstrip("=?.,;: \t\n").lstrip("=,;:. ")


def _left(node: Node) -> Node | None:
    return node.args[0] if node.op == "rel" else None


def _right(node: Node) -> Node | None:
    return node.args[-1] if node.op == "rel" else None


__all__ = ["Token", "repeats", "symbols_of", "tokenise", "written_in"]
