"""Answers, as `exam` reads them, of what published tests say: texts in and out, or a call and its value.

Where an expected output has a number with a decimal point, numbers are compared within a tolerance, integers exactly; else
word by word. Time limits of data sets are left out: they are meant for compiled languages, and the domain's own hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading

# What solutions of problems with a starter code take for granted.
PREAMBLE = """\
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush, heappushpop, nlargest, nsmallest
from itertools import accumulate, chain, combinations, permutations, product
from math import ceil, comb, floor, gcd, inf, sqrt
from typing import *
"""
_DECIMAL = re.compile(r"(?<![\w.])[+-]?\d+\.\d+(?:[eE][+-]?\d+)?(?![\w.])")
_INTEGER = re.compile(r"-?\d{1,18}")


def talks(pairs: Iterable[tuple[Any, Any]], checker: Any = None) -> dict[str, Any]:
    """An answer of kind `stdin`; an input or output may be a list of its lines.

    Raises:
        TaskError: one is neither.
    """
    tests = [{"stdin": _lines(given, "input"), "stdout": _lines(wanted, "output")} for given, wanted in pairs]
    if not isinstance(checker, Mapping):
        decimal = any(_DECIMAL.search(test["stdout"]) for test in tests)
        checker = {"type": "float", "ints_exact": True} if decimal else {"type": "tokens"}
    return {"kind": "stdin", "tests": tests, "checker": dict(checker)}


def calls(name: str, pairs: Sequence[tuple[Any, Any]], starter: Any = "") -> dict[str, Any]:
    """An answer of kind `function`: each input is the list of arguments, or text with one JSON value a line.

    Where every output is a list of one, this list is the data set's wrapping, as its own evaluation takes it.

    Raises:
        TaskError: an input or output cannot be read.
    """
    outputs = [wanted for _, wanted in pairs]
    if outputs and all(isinstance(output, list) and len(output) == 1 for output in outputs):
        outputs = [output[0] for output in outputs]
    return called(name, [_arguments(given) for given, _ in pairs], outputs, starter)


def called(name: str, arguments: Sequence[list[Any]], outputs: Sequence[Any], starter: Any = "") -> dict[str, Any]:
    """An answer of kind `function` from plain values."""
    is_method = isinstance(starter, str) and re.search(r"^\s*class\s+Solution\b", starter, re.MULTILINE)
    tests = [
        {"args": [_keyed(value) for value in given], "expected": written(wanted)}
        for given, wanted in zip(arguments, outputs, strict=True)
    ]
    entry_point = f"Solution.{name}" if is_method and "." not in name else name
    return {"kind": "function", "entry_point": entry_point, "tests": tests, "preamble": PREAMBLE}


def lines_of_json(text: str) -> list[Any]:
    """The values of a text with one JSON value a line.

    Raises:
        TaskError: a line is no JSON.
    """
    try:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except ValueError as cause:
        raise TaskError(f"an input must be one JSON value a line: {cause}, found {text[:60]!r}") from cause


def written(value: Any) -> Any:
    """A JSON value as `exam` reads it: an object that looks like one of its marks is written as pairs."""
    if isinstance(value, list):
        return [written(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith("__"):
        return {"__dict__": [[key, written(item)] for key, item in value.items()]}
    return {key: written(item) for key, item in value.items()}


def _keyed(value: Any) -> Any:
    """An argument; keys that are all integers are such, which JSON can only write as texts, as APPS' own evaluation takes it."""
    if isinstance(value, dict) and value and all(_INTEGER.fullmatch(key) for key in value):
        return {"__dict__": [[int(key), written(item)] for key, item in value.items()]}
    return written(value)


def _lines(value: Any, name: str) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return reading.text(value, f"an {name}")


def _arguments(value: Any) -> list[Any]:
    if isinstance(value, str):
        return lines_of_json(value)
    if not isinstance(value, list):
        raise TaskError(f"an input must be the list of a call's arguments, found {reading.shown(value)}")
    return value
