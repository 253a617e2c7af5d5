"""Values of a task's answer, read strictly: each problem becomes a `TaskError` that names the place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from cascade_core.errors import TaskError
from cascade_core.nearest import suggestion


def mapping(value: Any, where: str, allowed: Iterable[str]) -> Mapping[str, Any]:
    """An object with no other keys than these.

    Raises:
        TaskError: it is none, or has another key.
    """
    if not isinstance(value, Mapping):
        raise TaskError(f"{where} must be an object, found {shown(value)}")
    known = tuple(allowed)
    for key in value:
        if key not in known:
            raise TaskError(f"{where} has an unknown key {str(key)[:60]!r}{suggestion(str(key), known)}")
    return value


def text(value: Any, where: str) -> str:
    """A text.

    Raises:
        TaskError: it is none.
    """
    if not isinstance(value, str):
        raise TaskError(f"{where} must be a text, found {shown(value)}")
    return value


def compiling(source: str, where: str) -> str:
    """Python that compiles. It is not run.

    Raises:
        TaskError: it does not. Told only by what a run of it does, it would count against every answer.
    """
    if fault := _compile_fault(source):
        raise TaskError(f"{where} does not compile: {fault}")
    return source


@lru_cache(maxsize=256)
def _compile_fault(source: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return (str(error).splitlines() or [""])[0][:200] or type(error).__name__
    return ""


def choice(value: Any, where: str, allowed: Iterable[str]) -> str:
    """One of these words.

    Raises:
        TaskError: it is another value.
    """
    known = tuple(allowed)
    if not isinstance(value, str) or value not in known:
        raise TaskError(f"{where} is {shown(value)}{suggestion(str(value)[:60], known)}")
    return value


def number(value: Any, where: str, *, positive: bool) -> float:
    """A finite number, above 0 or at least 0.

    Raises:
        TaskError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TaskError(f"{where} must be a finite number, found {shown(value)}")
    if value < 0 or (positive and value == 0):
        raise TaskError(f"{where} must be {'above' if positive else 'at least'} 0, found {value}")
    return float(value)


def switch(value: Any, where: str) -> bool:
    """True or false.

    Raises:
        TaskError: it is another value.
    """
    if not isinstance(value, bool):
        raise TaskError(f"{where} must be true or false, found {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value for an error message, cut."""
    if value is None:
        return "nothing"
    return f"{value!r:.60}" if isinstance(value, str | int | float) else f"a {type(value).__name__}"
