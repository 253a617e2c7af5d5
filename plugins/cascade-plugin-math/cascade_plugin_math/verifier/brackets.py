"""Brackets to nodes: groups, tuples, intervals of either notation, sets, set-builders, absolute values, floors.

A tuple node keeps its two brackets as its value, since `(0,1)` is a point or an interval, and `[0,1)` is only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_plugin_math.verifier.node import Node, Unreadable, fun, make

if TYPE_CHECKING:
    from cascade_plugin_math.verifier.parser import Parser

_ROUND = {"(": (")", "]"), "[": ("]", ")"), "]": ("[", "]")}


def read(parser: Parser) -> Node:
    """The bracketed thing that begins at the next token.

    Raises:
        Unreadable: the bracket is not closed, or closed by one that does not belong to it.
    """
    opening = parser.take().text
    if opening == "{":
        return _group(parser)
    if opening in _ROUND:
        return _round(parser, opening)
    if opening == "\\set":
        return _set(parser)
    if opening in ("|", "||", "\\|", "\\||"):
        return _bars(parser, opening)
    return _named(parser, opening)


def closes_outward(parser: Parser) -> bool:
    """Whether the `[` at hand closes an interval of the notation `]0,1[`."""
    if not parser.bars or parser.bars[-1] not in ("]", "[,", "(,"):
        return False
    follows = parser.peek()
    return parser.bars[-1] == "]" or follows.kind in ("end", "close") or follows.text in ("cup", "cap", "setminus", ",")


def _inside(parser: Parser, mark: str) -> Node | None:
    """What stands between the brackets; `None` for nothing."""
    if parser.next.kind == "close":
        return None
    parser.bars.append(mark)
    node = parser.sequence()
    parser.bars.pop()
    return node


def _group(parser: Parser) -> Node:
    node = _inside(parser, "{")
    if parser.has("cmd", "over", "choose", "atop") and node is not None:
        word = parser.take().text
        below = _inside(parser, "{")
        if below is None:
            raise Unreadable("nothing under the line")
        node = make("mul", node, make("inv", below)) if word == "over" else fun("binom", node, below)
    parser.expect("close", "}")
    if node is None:
        return Node("empty")
    return make("set", *node.args) if node.op == "list" and node.value == "," and not parser.bars else node


def _round(parser: Parser, opening: str) -> Node:
    if parser.has("cmd", "over", "choose"):
        raise Unreadable("nothing over the line")
    items: list[Node] = []
    parser.bars.append(opening)
    node: Node | None = None
    if parser.next.kind != "close":
        items, separated = _items(parser, opening)
        node = items[0] if len(items) == 1 and not separated else None
        if node is not None and parser.has("cmd", "choose"):
            parser.take()
            node = fun("binom", node, parser.expression())
    parser.bars.pop()
    closing = parser.take()
    if closing.text not in _ROUND[opening] and not (closing.text == "[" and opening in "[("):
        raise Unreadable("a bracket is not closed")
    outward = {"]": "(", "[": ")"}
    pair = (outward["]"] if opening == "]" else opening) + (outward["["] if closing.text == "[" else closing.text)
    if len(items) == 2:
        return make("tuple", *items, value=pair)
    if pair not in ("()", "[]"):
        raise Unreadable("a bracket is closed by another one")
    if node is not None:
        return make("list1", node, value=pair) if pair == "[]" and node.op in ("list", "tuple") else node
    return make("tuple", *items, value=pair)


def _items(parser: Parser, opening: str) -> tuple[list[Node], bool]:
    items, separated = [parser.expression()], False
    while parser.has("op", ",", ";"):
        parser.take()
        separated = True
        parser.bars[-1] = opening + ","
        if opening == "]":
            parser.bars[-1] = "]"
        if parser.next.kind == "close":
            break
        items.append(parser.expression())
    return items, separated


def _set(parser: Parser) -> Node:
    node = _inside(parser, "\\set")
    parser.expect("close", "\\set")
    if node is None:
        return make("set")
    if node.op == "list":
        first = node.args[0]
        if first.op == "rel" and "mid" in first.value:
            builder = _builder(first)
            return make("builder", builder.args[0], make("and", builder.args[1], *node.args[1:]))
        return make("set", *node.args)
    if node.op == "rel" and "mid" in node.value:
        return _builder(node)
    if node.op in ("and", "or") and node.args[0].op == "rel" and "mid" in node.args[0].value:
        first = _builder(node.args[0])
        return make("builder", first.args[0], make(node.op, first.args[1], *node.args[1:]))
    return make("set", *(node.args if node.op == "and" else (node,)))


def _builder(node: Node) -> Node:
    """`x ∈ S | x > 2` as one relation chain, cut at its bar."""
    cut = node.value.index("mid")
    left = node.args[0] if cut == 0 else make("rel", *node.args[: cut + 1], value=node.value[:cut])
    right = (
        node.args[cut + 1]
        if cut + 2 == len(node.args)
        else make("rel", *node.args[cut + 1 :], value=node.value[cut + 1 :])
    )
    return make("builder", left, right)


def _bars(parser: Parser, opening: str) -> Node:
    mark = opening.lstrip("\\")
    parser.bars.append(mark)
    node = parser.sequence()
    parser.bars.pop()
    if not (parser.has("op", mark) or parser.has("close", "\\" + mark)):
        raise Unreadable("a bar is not closed")
    parser.take()
    return fun("abs" if mark == "|" else "norm", node)


def _named(parser: Parser, opening: str) -> Node:
    node = _inside(parser, opening)
    if not (parser.has("close", opening)) or node is None:
        raise Unreadable("a bracket is not closed")
    parser.take()
    if opening == "\\<":
        return make("tuple", *node.args, value="<>") if node.op == "list" else make("fun", node, value="mean")
    return fun(opening[1:], node)
