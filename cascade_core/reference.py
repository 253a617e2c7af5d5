"""The settings of a spec as Markdown tables, made from the JSON Schema: one table per mapping, in the order of the settings.

`docs/spec.md` holds what `markdown` returns, and a test keeps the two in step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cascade_core.spec import schema

Node = Mapping[str, Any]


def markdown() -> str:
    """All settings: for each the key, what may stand there, the default, and what it means."""
    whole = schema()
    definitions = whole["$defs"]
    blocks = ["\n".join(_table("The spec", whole))]
    blocks += ["\n".join(_table(_title(name), definitions[name])) for name in _used(whole, definitions)]
    return "\n\n".join(blocks) + "\n"


def _used(node: Any, definitions: Node) -> list[str]:
    """The names of the mappings that `node` refers to, and they refer to, each once, nearest first."""
    names: list[str] = []
    waiting = [node]
    while waiting:
        for name in _references({key: value for key, value in waiting.pop(0).items() if key != "$defs"}):
            if name not in names:
                names.append(name)
                waiting.append(definitions[name])
    return names


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        for key, value in node.items():
            if key != "default":
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _table(title: str, node: Node) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    if title != "The spec":
        yield " ".join(node.get("description", "").split())
        yield ""
    yield "| key | what may stand there | default | meaning |"
    yield "|---|---|---|---|"
    for key, field in node["properties"].items():
        required = key in node.get("required", ())
        default = "must be given" if required else _default(field)
        yield f"| `{key}` | {_allowed(field)} | {default} | {field.get('description', '')} |".replace("  ", " ")


def _default(field: Node) -> str:
    value = field.get("default")
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "its own defaults" if value else "empty"
    return "empty" if value == [] else f"`{json.dumps(value).strip(chr(34))}`"


def _allowed(node: Node) -> str:
    """What a schema allows, in words."""
    if "$ref" in node:
        name = _title(node["$ref"].rpartition("/")[2])
        return f"[{name}](#{name.lower().replace(' ', '-')})"
    for choice in ("anyOf", "oneOf"):
        if choice in node:
            parts = [_allowed(part) for part in node[choice] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(parts))
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    kind = node.get("type")
    if kind in ("integer", "number"):
        return {"integer": "whole number", "number": "number"}[kind] + _bounds(node)
    if kind == "array":
        return f"list of {_allowed(node.get('items', {}))}"
    if kind == "object":
        inner = node.get("additionalProperties")
        return f"mapping of names to {_allowed(inner)}" if isinstance(inner, Mapping) else "mapping"
    return {"string": "text", "boolean": "`true`, `false`"}.get(str(kind), "any value")


def _bounds(node: Node) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    told = [
        f"{sign} {node[name]:g}" if node[name] < 1e6 else f"{sign} 2³²" for name, sign in signs.items() if name in node
    ]
    return f" {', '.join(told)}" if told else ""


def _title(name: str) -> str:
    """`InitModel` as `init model`."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
