"""`--set stages.math.steps=40`: single values of a spec, given on the command line.

The path is keys joined by dots; a stage is named by its `name` (or its number, from 1), and names may hold dots
themselves. The value is YAML, typed as in the file. A mapping that the spec leaves out is made; whether a key exists at
all is checked afterwards with the rest of the spec, and the refusal names `--set`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cascade_core.document import Document, Where, parse
from cascade_core.errors import SpecError
from cascade_core.nearest import suggestion


def apply(document: Document, overrides: Iterable[str], flag: str = "--set") -> None:
    """Puts each `path=value` into the document, in order; `flag` is what they were given after.

    Raises:
        SpecError: no `=`, a value that is no YAML, a path through something that holds no keys, or an unknown stage.
    """
    for override in overrides:
        path, equals, text = override.partition("=")
        name = f"{flag} {override}"
        if not equals or not path or "" in path.split("."):
            raise SpecError(f"{name}: must be path=value")
        value = parse(text, name).data
        where = _resolve(document.data, path.split("."), name)
        _make_room(document, where, name)
        document.put(where, value, name)


def _resolve(data: Any, parts: list[str], name: str) -> Where:
    """The path of keys and positions that dotted `parts` mean."""
    where: list[str | int] = []
    while parts:
        step: str | int
        if isinstance(data, list):
            step, used = _position(data, parts, name)
        else:
            step, used = _key(data, parts)
        where.append(step)
        parts = parts[used:]
        inside = isinstance(data, list) or (isinstance(data, dict) and step in data)
        data = data[step] if inside else None
    return tuple(where)


def _key(data: Any, parts: list[str]) -> tuple[str, int]:
    """The longest run of parts that is a key, or the first part where none is."""
    for used in range(len(parts), 0, -1):
        if isinstance(data, dict) and (key := ".".join(parts[:used])) in data:
            return key, used
    return parts[0], 1


def _position(items: list[Any], parts: list[str], name: str) -> tuple[int, int]:
    """Where in a list: by the `name` of an item, or by its number from 1."""
    names = [
        str(item["name"]) if isinstance(item, dict) and "name" in item else str(i) for i, item in enumerate(items, 1)
    ]
    for used in range(len(parts), 0, -1):
        if (step := ".".join(parts[:used])) in names:
            return names.index(step), used
    if parts[0].isascii() and parts[0].isdigit() and 0 < int(parts[0][:9]) <= len(items):
        return int(parts[0]) - 1, 1
    raise SpecError(f"{name}: nothing there is called {parts[0]!r}{suggestion(parts[0], names)}")


def _make_room(document: Document, where: Where, name: str) -> None:
    """Makes the mappings on the way that the file leaves out."""
    inside = document.data
    for depth, step in enumerate(where):
        if not isinstance(inside, dict | list):
            above = ".".join(map(str, where[:depth])) or "the spec"
            found = "text" if isinstance(inside, str) else type(inside).__name__
            raise SpecError(f"{name}: {above} is {found} and has no key {step!r}; set it as a whole")
        if depth < len(where) - 1 and isinstance(inside, dict) and inside.get(str(step)) is None:
            document.put(where[: depth + 1], {}, name)
        if depth < len(where) - 1:
            inside = inside[step]
