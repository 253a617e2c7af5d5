"""Options of a domain, resource or tracker: the fields of its dataclass, checked and typed before it is built.

The annotation of a field says what is allowed (`Literal["boxed", "stated"]`, `list[int]`, `float | None`); values come
from YAML or JSON, strictly: text is no number. A field with an annotation that cannot be resolved is passed on as it is.
pydantic is imported only when there is an option to check.
"""

from __future__ import annotations

import functools
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from cascade_core.domain import Domain
from cascade_core.errors import SpecError
from cascade_core.nearest import suggestion
from cascade_core.resource import Resource
from cascade_core.tracker import Tracker

Optioned = type[Domain] | type[Resource] | type[Tracker]
Where = tuple[str | int, ...]
Problem = tuple[Where, str]


def check_options(cls: Optioned, options: Mapping[str, Any], kind: str = "domain") -> None:
    """Refuses options that are no field of the class, or have a value that the field's annotation does not allow.

    Raises:
        SpecError: names the option, what was found, and what is allowed or the nearest name.
    """
    for _, what in problems(cls, options, kind):
        raise SpecError(f"{kind} {cls.name!r}: {what}")


def problems(cls: Optioned, options: Mapping[str, Any], kind: str = "domain") -> Iterator[Problem]:
    """What is wrong with the options: (path of keys inside them, sentence)."""
    allowed = {field.name: field for field in _fields(cls)}
    for name, value in options.items():
        if name not in allowed:
            yield (name,), f"unknown option {name!r}{suggestion(name, allowed)}"
        else:
            yield from _converted(cls, name, value)[1]
    for name in required(cls):
        if name not in options:
            yield (), f"option {name!r} must be given: the {kind} has no default for it"


def required(cls: Optioned) -> list[str]:
    """The options that must be given."""
    return [one.name for one in _fields(cls) if one.default is MISSING and one.default_factory is MISSING]


def typed(cls: Optioned, options: Mapping[str, Any], kind: str = "domain") -> dict[str, Any]:
    """The options as their annotations want them: a list as a tuple, text as a `Path`, a mapping as a dataclass.

    Raises:
        SpecError: see `check_options`.
    """
    check_options(cls, options, kind)
    return {name: _converted(cls, name, value)[0] for name, value in options.items()}


def schema(cls: Optioned) -> dict[str, Any]:
    """The JSON Schema of the options: an object that allows the fields and nothing else."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    properties: dict[str, Any] = {}
    for field in _fields(cls):
        adapter = _adapter(cls, field.name)
        try:
            properties[field.name] = adapter.json_schema(mode="validation") if isinstance(adapter, TypeAdapter) else {}
        except PydanticUserError:  # a type that JSON Schema has no word for
            properties[field.name] = {}
        properties[field.name].pop("title", None)
        if field.default is not MISSING and _is_json(field.default):
            properties[field.name]["default"] = field.default
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _fields(cls: Optioned) -> list[Field[Any]]:
    return [field for field in fields(cls) if field.init] if is_dataclass(cls) else []


def _converted(cls: Optioned, name: str, value: Any) -> tuple[Any, list[Problem]]:
    """The value as the field wants it, and what is wrong with it."""
    adapter = _adapter(cls, name)
    if adapter is None:
        return value, []
    from pydantic import ValidationError

    try:
        return adapter.validate_json(json.dumps(value), strict=True, extra="forbid"), []
    except ValidationError as error:
        return value, _said(name, value, error.errors(include_url=False), _nested(_hint(cls, name)))
    except (TypeError, ValueError):  # no JSON value: given by a program, not by a spec
        return value, []
    except Exception as cause:  # noqa: BLE001 - a stranger's own type, made from the value, may fail in any way
        return value, [((name,), f"option {name!r} cannot be read: {type(cause).__name__}: {cause}")]


def _said(name: str, value: Any, items: Sequence[Any], keys: Sequence[str]) -> list[Problem]:
    """pydantic's errors about one option as sentences; the members of a union that all failed are said once."""
    from cascade_core.refusals import sentence, shown

    if len({item["loc"] for item in items}) > 1 and not isinstance(value, dict | list):
        wanted = [sentence(item).removeprefix("must be ").partition(", found")[0] for item in items]
        return [((name,), f"option {name!r} must be {' or '.join(dict.fromkeys(wanted))}, found {shown(value)}")]
    found = []
    for item in items[:3]:
        inside = tuple(_inside(value, item["loc"]))
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in inside)
        near = suggestion(str(item["loc"][-1]), keys) if item["type"] == "unexpected_keyword_argument" else ""
        found.append(((name, *inside), f"option {name + place!r} {sentence(item)}{near}"))
    return found


def _inside(value: Any, loc: Where) -> Iterator[str | int]:
    """The steps of pydantic's `loc` that are keys and positions of the value; the others name members of unions."""
    for step in loc:
        here: Any = step
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        ):
            yield step
            value = value[here]


def _is_json(value: Any) -> bool:
    try:
        return bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return False


def _hint(cls: Optioned, name: str) -> Any:
    """The resolved annotation of a field, `None` where it cannot be resolved."""
    try:
        return typing.get_type_hints(cls, include_extras=True)[name]
    except (NameError, TypeError, AttributeError, SyntaxError, KeyError):
        return None


def _nested(hint: Any) -> list[str]:
    """The fields of the dataclasses inside an annotation."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [field.name for field in fields(hint) if field.init]
    return [name for part in typing.get_args(hint) for name in _nested(part)]


@functools.cache
def _adapter(cls: Optioned, name: str) -> Any:
    """What checks one option; `None` where its annotation cannot be resolved or is nothing that pydantic knows."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    hint = _hint(cls, name)
    if hint is None:
        return None
    try:
        return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))
    except PydanticUserError:
        try:
            return TypeAdapter(hint)
        except PydanticUserError:
            return None
