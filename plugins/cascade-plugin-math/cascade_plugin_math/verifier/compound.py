"""Quantities in two units: `2 hours 30 minutes`, `5 ft 3 in`, `1 kg and 200 g`."""

from __future__ import annotations

from itertools import groupby

from cascade_plugin_math.verifier import units
from cascade_plugin_math.verifier.node import Node, make, num


def combined(node: Node) -> Node | None:
    """The sum of the parts in the unit of the last one; `None` if the node is no such quantity."""
    parts = [units.split(part) for part in _parts(node)]
    if len(parts) < 2 or any(unit.is_none or unit.things or unit.powers != parts[0][1].powers for _, unit in parts):
        return None
    factors = [unit.factor for _, unit in parts]
    if factors != sorted(factors, reverse=True) or len(set(factors)) != len(factors):
        return None
    scaled = [make("mul", num(unit.factor / factors[-1]), value) for value, unit in parts]
    return make("mul", make("add", *scaled), _unit_of(_parts(node)[-1]))


def _parts(node: Node) -> list[Node]:
    if node.op in ("and", "list"):
        return list(node.args)
    if node.op != "mul":
        return []
    runs = [(words, list(group)) for words, group in groupby(node.args, key=lambda arg: arg.op == "word")]
    pairs = zip(runs[::2], runs[1::2], strict=False)
    if len(runs) % 2 or runs[0][0] or any(len(value[1]) != 1 for value, _ in pairs):
        return []
    return [make("mul", *value[1], *unit[1]) for value, unit in zip(runs[::2], runs[1::2], strict=True)]


def _unit_of(part: Node) -> Node:
    return make("mul", *(arg for arg in part.args if arg.op == "word"))
