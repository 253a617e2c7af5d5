"""What pydantic found wrong, in our own words: where, what was found, what is allowed, the nearest name.

A refusal is (path of keys, whether the key itself is meant, sentence). The words are made from pydantic's error types,
which are stable; its sentences are not used. This module knows settings, no file: `spec.py` adds the places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from cascade_core.nearest import hint, suggestion

Where = tuple[str | int, ...]

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "mapping": "a mapping",
    "dataclass": "a mapping",
    "set": "a list",
    "frozen_set": "a list",
    "path": "a path",
    "none_required": "null",
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True)
class Refusal:
    """One thing that is wrong with a value of a mapping, `is_key` where it is the key."""

    where: Where
    what: str
    is_key: bool = False


def refusals(error: ValidationError, data: Any, model: type[BaseModel]) -> Iterator[Refusal]:
    """Everything that `error` says about `data`, which was to become a `model`."""
    for item in error.errors(include_url=False):
        if item["type"] == "inconsistent":
            for where, what in item["ctx"]["problems"]:
                yield Refusal(tuple(where), what)
            continue
        where, is_key = _where(item["loc"], data)
        if item["type"] == "extra_forbidden":
            key = str(item["loc"][-1])
            yield Refusal(where, f"unknown key {key!r}{_meant(key, model, where[:-1])}", is_key=True)
        elif item["type"] == "missing":
            yield Refusal(where, f"{str(item['loc'][-1])!r} is missing")
        elif item["type"] == "model_type":
            yield Refusal(where, f"{sentence(item)} (its keys: {', '.join(_fields(model, where))})", is_key)
        else:
            yield Refusal(where, sentence(item), is_key)


def _meant(key: str, model: type[BaseModel], where: Where) -> str:
    """What an unknown key may be: one of a mapping further in or further out, or a name that is near; and what is allowed at `where`."""
    allowed = _fields(model, where)
    inner = [name for name in allowed if key in _fields(model, (*where, name))]
    if inner:
        return f"; it belongs in {' or '.join(map(repr, inner))} (allowed: {', '.join(allowed)})"
    outer = [
        depth for depth, step in enumerate(where) if isinstance(step, str) and key in _fields(model, where[:depth])
    ]
    if outer:
        step = where[outer[-1]]
        return f"; it belongs beside {step!r}, not in it (allowed: {', '.join(allowed)})"
    return suggestion(key, allowed)


def sentence(item: Mapping[str, Any]) -> str:
    """One pydantic error as a sentence that says what must be there and what was found."""
    kind, context, found = item["type"], item.get("ctx", {}), item.get("input")
    if kind in _BOUNDS:
        word, name = _BOUNDS[kind]
        return (
            f"must be {word} {context[name]:g}, found {shown(found)}"
            if context[name] < 1e6
            else _big(word, context[name], found)
        )
    if kind == "literal_error":
        words = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        near = hint(found, words) if isinstance(found, str) else ""
        return f"must be {context['expected']}, found {shown(found)}{near}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return f"must be letters, digits, '_', '.' and '-', beginning with a letter or digit, found {shown(found)}"
    if kind in ("string_too_long", "string_too_short", "too_short", "too_long"):
        return _length(kind, context, found)
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return "is an unknown key"
    if kind == "finite_number":
        return f"must be a finite number, found {shown(found)}"
    if kind == "int_from_float":
        return f"must be a whole number, found {shown(found)}"
    expected = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_exact"))
    if expected:
        return f"must be {expected}, found {shown(found)}{_advice(expected, found)}"
    text = str(item["msg"])
    return text[:1].lower() + text[1:]


def shown(value: Any) -> str:
    """A found value as one short piece of text, its kind named where the value alone would mislead."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"text {value[:60]!r}" + ("…" if len(value) > 60 else "")
    if isinstance(value, Mapping):
        keys = ", ".join(str(key) for key in list(value)[:4])
        return f"a mapping ({keys}{', …' if len(value) > 4 else ''})" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return repr(value)[:60]


def _big(word: str, bound: float, found: Any) -> str:
    return f"must be {word} {bound}, found {shown(found)}"


def _length(kind: str, context: Mapping[str, Any], found: Any) -> str:
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters, found {len(found)}"
    least = "min_length" in context and kind == "too_short"
    bound = f"at least {context['min_length']}" if least else f"at most {context['max_length']}"
    return f"must hold {bound}, found {context.get('actual_length', shown(found))}"


def _advice(expected: str, found: Any) -> str:
    """The usual reason for a wrong kind of value."""
    if isinstance(found, str):
        if expected in ("a number", "a whole number") and _is_number(found):
            return "; leave out the quotes"
        if expected == "true or false" and found.lower() in ("yes", "no", "on", "off", "y", "n"):
            return "; YAML 1.2 knows true and false only"
    return (
        "; put it in quotes"
        if expected == "text" and found is not None and not isinstance(found, list | Mapping)
        else ""
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _where(loc: tuple[int | str, ...], data: Any) -> tuple[Where, bool]:
    """The path of keys in `data` that an error's `loc` means: tags of unions are no keys, `[key]` means the key."""
    where: list[str | int] = []
    for step in loc:
        inside = isinstance(data, Mapping) and step in data
        if inside or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            where.append(step)
            data = data[step]
    return tuple(where), bool(loc) and loc[-1] == "[key]"


def _fields(model: Any, where: Where) -> list[str]:
    """The keys that are allowed at `where`, in the order of the settings."""
    for step in where:
        owner = _settings(model)
        if owner is not None and isinstance(step, str) and step in owner.model_fields:
            model = owner.model_fields[step].annotation
    owner = _settings(model)
    return list(owner.model_fields) if owner else []


def _settings(annotation: Any) -> type[BaseModel] | None:
    """The settings class inside an annotation such as `list[Stage]` or `InitModel | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _settings(part))), None)
