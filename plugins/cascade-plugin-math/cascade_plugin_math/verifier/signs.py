"""Plus-minus: `a ± b` as the values it stands for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from cascade_plugin_math.verifier.node import Node, TooMuch, make, rebuild, walk

MOST = 4
Signs = Callable[[Node], list[Node]]
_SIGNS = ("pm", "mp")


def has_several(node: Node) -> bool:
    """Whether the signs of one value could be read together or apart."""
    return sum(part.op in _SIGNS for part in walk(node)) > 1


def together(node: Node) -> list[Node]:
    """Two values: all upper signs, all lower signs.

    Raises:
        TooMuch: more than `MOST` signs.
    """
    count = _count(node)
    return [_chosen(node, (upper,) * count) for upper in (True, False)] if count else [node]


def apart(node: Node) -> list[Node]:
    """One value for every choice of every sign.

    Raises:
        TooMuch: more than `MOST` signs.
    """
    return [_chosen(node, choice) for choice in product((True, False), repeat=_count(node))]


def _count(node: Node) -> int:
    count = sum(part.op in _SIGNS for part in walk(node))
    if count > MOST:
        raise TooMuch("too many signs")
    return count


def _chosen(node: Node, choice: tuple[bool, ...]) -> Node:
    picks = iter(choice)

    def change(part: Node) -> Node | None:
        if part.op not in _SIGNS:
            return None
        upper = next(picks)
        return part.args[0] if (part.op == "pm") == upper else make("neg", part.args[0])

    return rebuild(node, change)
