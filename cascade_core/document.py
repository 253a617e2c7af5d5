"""A YAML file as plain JSON values that remembers where each of them stood.

YAML 1.2: `on` and `yes` are text, `1e-4` is a number, a date is text. What JSON has no word for (tags, binary, sets, keys
that are no text, infinity) is refused, and so are a key given twice, a second document, an alias that contains itself,
and an alias that multiplies (`MOST_VALUES`). Nothing is constructed from a tag. What the values mean is `spec.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from cascade_core.errors import SpecError

Where = tuple[str | int, ...]

MOST_BYTES = 1 << 18
MOST_VALUES = 100_000
MOST_DEPTH = 50

_TAG = "tag:yaml.org,2002:"
_ALLOWED = "only mappings, lists, text, numbers, true, false and null are"
_TEXT = {_TAG + name for name in ("str", "timestamp", "value")}


@dataclass
class Document:
    """The values of a file, and the places (`file:line:column`) of keys and values by their path of keys."""

    name: str
    data: Any = None
    keys: dict[Where, str] = field(default_factory=dict)
    values: dict[Where, str] = field(default_factory=dict)

    def where(self, path: Where, *, key: bool = False) -> str:
        """Where the value at `path` (or its key) stands; the nearest thing around it where the file has no such value."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, self.name)

    def put(self, path: Where, value: Any, place: str) -> None:
        """Replaces what is known of `path` and everything under it by `value`, which stands at `place`."""
        for known in (self.keys, self.values):
            for old in [old for old in known if old[: len(path)] == path]:
                del known[old]
        self.keys[path] = self.values[path] = place
        if not path:
            self.data = value
            return
        inside = self.data
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = value


def read(path: Path) -> Document:
    """The YAML document in a file.

    Raises:
        SpecError: it cannot be read, or is no single YAML 1.2 document of JSON values; names file, line and column.
    """
    try:
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise SpecError(f"{path}: a spec of at most {MOST_BYTES} bytes is read, found {path.stat().st_size}")
        raw = path.read_bytes()
    except OSError as cause:
        raise SpecError(f"{path}: cannot be read: {(cause.strerror or str(cause)).lower()}") from cause
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = raw[: cause.start].count(b"\n") + 1
        raise SpecError(
            f"{path}:{line}: not UTF-8 text: byte 0x{raw[cause.start]:02x} at offset {cause.start}"
        ) from cause
    return parse(text, str(path))


def parse(text: str, name: str) -> Document:
    """The YAML document in a text; `name` stands for the file in every place and message.

    Raises:
        SpecError: see `read`.
    """
    document = Document(name)
    try:
        root = YAML(typ="safe", pure=True).compose(text)
        if root is not None:
            document.data = _Reader(document).value(root, ())
    except MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        what = " ".join(part for part in (cause.context, cause.problem) if part)
        raise SpecError(f"{place}: not YAML: {' '.join(what.split())}") from cause
    except YAMLError as cause:
        raise SpecError(f"{name}: not YAML: {' '.join(str(cause).split())[:200]}") from cause
    except RecursionError as cause:
        raise SpecError(f"{name}: nested deeper than {MOST_DEPTH} levels") from cause
    return document


class _Reader:
    """Turns nodes into values; every alias becomes a copy of its own, with the place of its anchor."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0
        self.open: list[int] = []

    def value(self, node: Node, path: Where) -> Any:
        place = self.place(node)
        if isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index:
            place = self.document.keys.get(path, place)  # nothing stands there: its mark is at what comes next
        self.tally(place)
        if id(node) in self.open:
            raise SpecError(f"{place}: an alias contains itself")
        if len(self.open) >= MOST_DEPTH:
            raise SpecError(f"{place}: nested deeper than {MOST_DEPTH} levels")
        self.document.values.setdefault(path, place)
        if isinstance(node, ScalarNode):
            return self.scalar(node, place)
        self.open.append(id(node))
        try:
            if isinstance(node, SequenceNode) and _tag(node) == _TAG + "seq":
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            if isinstance(node, MappingNode) and _tag(node) == _TAG + "map":
                return {key: self.value(item, (*path, key)) for key, item in self.pairs(node, path)}
        finally:
            self.open.pop()
        raise SpecError(f"{place}: tag {_shown(_tag(node))} is not allowed: {_ALLOWED}")

    def pairs(self, node: MappingNode, path: Where) -> Iterator[tuple[str, Node]]:
        """Keys and values of a mapping: its own ones first, then those that `<<` merges in."""
        own: dict[str, str] = {}
        merged: list[Node] = []
        for key_node, item in node.value:
            place = self.place(key_node)
            self.tally(place)
            if _tag(key_node) == _TAG + "merge":
                merged += item.value if isinstance(item, SequenceNode) else [item]
                continue
            key = self.scalar(key_node, place) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                found = f"found {key_node.value}" if isinstance(key_node, ScalarNode) else "found a collection"
                raise SpecError(f"{place}: a key must be text, {found}; put it in quotes")
            if key in own:
                raise SpecError(f"{place}: key {key!r} is given twice, first at {own[key]}")
            own[key] = place
            self.document.keys.setdefault((*path, key), place)
            yield key, item
        yield from self.merge(merged, path, set(own))

    def merge(self, nodes: list[Node], path: Where, taken: set[str]) -> Iterator[tuple[str, Node]]:
        """What `<<: *anchor` brings: earlier mappings win over later ones, the mapping's own keys over all."""
        for node in nodes:
            place = self.place(node)
            if not isinstance(node, MappingNode):
                raise SpecError(f"{place}: '<<' merges a mapping or a list of mappings, and this is neither")
            if id(node) in self.open:
                raise SpecError(f"{place}: an alias contains itself")
            self.open.append(id(node))
            try:
                for key, item in self.pairs(node, path):
                    if key not in taken:
                        taken.add(key)
                        yield key, item
            finally:
                self.open.pop()

    def scalar(self, node: ScalarNode, place: str) -> Any:
        text, tag = node.value, _tag(node)
        if tag in _TEXT:
            try:  # JSON writes a character beyond the first plane as two escapes: here they become one again
                return text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError as cause:
                what = "text with half of a surrogate pair, which no UTF-8 file can hold"
                raise SpecError(f"{place}: {what}") from cause
        make = _SCALARS.get(tag)
        if make is None:
            raise SpecError(f"{place}: tag {_shown(tag)} is not allowed: {_ALLOWED}")
        try:
            value = make(text)
        except (KeyError, ValueError) as cause:
            raise SpecError(f"{place}: {text[:40]!r} is no {tag.removeprefix(_TAG)} that can be read") from cause
        if isinstance(value, float) and not math.isfinite(value):
            raise SpecError(f"{place}: a number must be finite, found {text[:40]}")
        return value

    def tally(self, place: str) -> None:
        """Counts one more value, and bounds them."""
        self.count += 1
        if self.count > MOST_VALUES:
            raise SpecError(f"{place}: more than {MOST_VALUES} values, aliases counted as often as they are used")

    def place(self, node: Node) -> str:
        return f"{self.document.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def _tag(node: Node) -> str:
    return node.tag or ""


def _integer(text: str) -> int:
    """A YAML 1.2 integer: decimal (leading zeros allowed), 0o, 0x, and 0b."""
    digits = text.replace("_", "").lower()
    sign, digits = (digits[0], digits[1:]) if digits[:1] in ("+", "-") else ("", digits)
    base = {"0o": 8, "0x": 16, "0b": 2}.get(digits[:2], 10)
    return int(sign + (digits if base == 10 else digits[2:]), base)


def _number(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_SCALARS: dict[str, Callable[[str], Any]] = {
    _TAG + "null": lambda text: None,
    _TAG + "bool": lambda text: {"true": True, "false": False}[text.lower()],
    _TAG + "int": _integer,
    _TAG + "float": _number,
}


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
