"""Fields of published rows: JSON in texts, known solutions, starter code, and what says that a problem has no judge here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_core.errors import TaskError
from cascade_core.sources import digest
from cascade_plugin_code import reading
from cascade_plugin_code.problems import Omitted

MOST_SOLUTIONS = 5
INTERACTIVE = Omitted("interactive")
SPECIAL = Omitted("many right answers and no special judge")
_INTERACTIVE = re.compile(r"\bthis is an? interactive (?:problem|task)\b", re.IGNORECASE)
_ANY = re.compile(
    r"\b(?:print|output|return|find|report|choose)\s+any(?:\s+one)?(?:\s+of\s+(?:them|these|those)\b|\s*[.;,)]"
    r"|\s+(?:valid|correct|possible|suitable|such)\b)"
    r"|\bif\s+there\s+(?:are|is|exist|exists)\s+(?:multiple|several|many|more\s+than\s+one)\b[^.]{0,120}\bany\b"
    r"|\bany\s+(?:valid|correct)\s+(?:answer|solution|output)s?\s+(?:is|are|will\s+be)\s+accepted\b",
    re.IGNORECASE,
)


def decoded(value: Any, name: str) -> Any:
    """A value that may be JSON text.

    Raises:
        TaskError: it is a text, and no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as cause:
        raise TaskError(f"{name!r} cannot be decoded: {cause}") from cause


def statement(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of the fields that holds text.

    Raises:
        TaskError: none does.
    """
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
    raise TaskError(f"no statement: {' or '.join(map(repr, names))} must be a text")


def identity(row: Mapping[str, Any], names: Sequence[str], text: str) -> str:
    """The first of the fields that is there; a digest of the statement where none is."""
    return next((str(row[name]) for name in names if row.get(name) not in (None, "")), digest(text))


def solutions(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The first few known programs; a list, JSON text of one, or one text."""
    value = row.get("solutions") or row.get("solution") or ()
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    found = [one for one in value if isinstance(one, str) and one.strip()] if isinstance(value, list | tuple) else []
    return tuple(_unfenced(one) for one in found[:MOST_SOLUTIONS])


def _unfenced(solution: str) -> str:
    """A solution without the fence that some data sets put around it."""
    from cascade_plugin_code.extraction import blocks

    found = [block.text for block in blocks(solution) if block.closed]
    return found[-1] if found and solution.lstrip().startswith("```") else solution


def with_starter(text: str, row: Mapping[str, Any]) -> str:
    """The statement, with the code to start from below it."""
    starter = row.get("starter_code")
    if not isinstance(starter, str) or not starter.strip():
        return text
    return f"{text.rstrip()}\n\nStart from this code:\n\n```python\n{starter.strip()}\n```"


def omitted(row: Mapping[str, Any], text: str) -> Omitted | None:
    """Why a problem cannot be judged by its tests: it talks with a judge, or has many right answers and no judge for them."""
    tags = _tags(row)
    if (
        row.get("interaction_format")
        or row.get("interactive") is True
        or "interactive" in tags
        or _INTERACTIVE.search(text)
    ):
        return INTERACTIVE
    if isinstance(row.get("checker"), Mapping):
        return None
    foreign = any(row.get(name) for name in ("checker", "generated_checker", "special_judge", "spj"))
    return SPECIAL if foreign or tags & {"*special", "special"} or _ANY.search(text) else None


def _tags(row: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for name in ("tags", "raw_tags"):
        value = row.get(name)
        if isinstance(value, str):
            found.update(re.findall(r"[*\w][\w ]*", value.lower()))
        elif isinstance(value, list | tuple):
            found.update(str(tag).strip().lower() for tag in value)
    return found


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """Inputs with their outputs, from `{"inputs": […], "outputs": […]}`.

    Raises:
        TaskError: one is missing or no list, or they are not equally many.
    """
    if not isinstance(value, Mapping):
        raise TaskError(f"the tests must be an object with 'inputs' and 'outputs', found {reading.shown(value)}")
    inputs, outputs = value.get("inputs"), value.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise TaskError("'inputs' and 'outputs' of the tests must be lists")
    if len(inputs) != len(outputs):
        raise TaskError(f"the tests have {len(inputs)} inputs and {len(outputs)} outputs")
    if not inputs:
        raise TaskError("there are no tests, so nothing would be checked")
    return list(zip(inputs, outputs, strict=True))
