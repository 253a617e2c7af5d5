"""Brackets that wrap only another bracket: dropped before parsing, so that nesting without content costs no depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_plugin_math.verifier.node import Unreadable

if TYPE_CHECKING:
    from cascade_plugin_math.verifier.tokens import Token


def _is_argument(tokens: list[Token], begin: int) -> bool:
    """Whether an empty group stands where something is missing: `\\frac{12}{}`, `x^{}`."""
    if not begin:
        return False
    before = tokens[begin - 1]
    return (
        (before.kind == "close" and before.text == "}")
        or (before.kind == "op" and before.text in "^_")
        or (before.kind == "cmd" and before.text in ("frac", "dfrac", "tfrac", "cfrac", "binom", "sqrt"))
    )


def collapsed(tokens: list[Token]) -> list[Token]:
    """Drops every bracket pair whose only content is another pair of the same kind."""
    partner: dict[int, int] = {}
    stack: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "open" and token.text in "({":
            stack.append(at)
        elif token.kind == "close" and token.text in ")}" and stack:
            begin = stack.pop()
            if tokens[begin].text + token.text in ("()", "{}"):
                partner[begin] = at
    dead: set[int] = set()
    for begin, end in partner.items():
        if (partner.get(begin + 1) == end - 1 and tokens[begin].text == tokens[begin + 1].text) or (
            end == begin + 1 and tokens[begin].text == "{"
        ):
            if end == begin + 1 and _is_argument(tokens, begin):
                raise Unreadable("an argument is empty")
            dead.update((begin, end))
    return [token for at, token in enumerate(tokens) if at not in dead] if dead else tokens
