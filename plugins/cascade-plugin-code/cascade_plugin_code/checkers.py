"""Checkers: whether what a program printed is the expected output.

Outputs are compared as bytes; the expected text is UTF-8. White space is that of ASCII, so a no-break space is text.

- `tokens`: the same words in the same order, whatever stands between them. Case matters, `05` and `5.0` are not `5`.
- `lines`: the same lines, blanks at the end of a line and empty lines at the end left out; CRLF ends a line.
- `float`: as `tokens`, but where a number is expected, a decimal number within `abs` or `rel` of it; with `ints_exact` an expected
  integer is exact. NaN is expected NaN, an infinity the same infinity. Hexadecimal and `1_0` are no numbers.
- `unordered-tokens`, `unordered-lines`: the same multiset of them; empty lines are left out.
- `program`: a special judge, see `special`.

A number is compared in decimal, so what is equal only as a double differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_code import reading
from cascade_plugin_code.languages import run_as

TYPES = ("tokens", "lines", "float", "unordered-tokens", "unordered-lines", "program")
TOLERANCE = 1e-6
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?\Z")
_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
_SPECIAL = {b"nan": "nan", b"inf": "inf", b"infinity": "inf"}
_CONTEXT = Context(prec=60, Emax=10**12, Emin=-(10**12), traps=[InvalidOperation])


@dataclass(frozen=True)
class Checker:
    """A checker and its settings; `source` and `language` are those of a special judge."""

    type: str = "tokens"
    abs: float = TOLERANCE
    rel: float = TOLERANCE
    ints_exact: bool = False
    ignore_case: bool = False
    language: str = "python"
    source: str = ""

    @property
    def is_program(self) -> bool:
        """Whether a special judge decides."""
        return self.type == "program"

    def fault(self, output: bytes, expected: str) -> str:
        """What is wrong with an output, in words for people; `""` if nothing is.

        Not for a special judge.
        """
        wanted = expected.encode("utf-8", "surrogatepass")
        if self.ignore_case:
            output, wanted = _lowered(output), _lowered(wanted)
        return _RULES[self.type](self, output, wanted)


def read(value: Any) -> Checker:
    """The checker of a task's answer.

    Raises:
        TaskError: an unknown type or setting, or a setting that the type does not have.
    """
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping):
        raise TaskError(f"'checker' must be an object, found {reading.shown(value)}")
    kind = reading.choice(value.get("type"), "'checker.type'", TYPES)
    given = reading.mapping(value, "'checker'", ("type", *_settings(kind)))
    if kind == "program":
        source = reading.text(given.get("source"), "'checker.source'")
        if not source.strip():
            raise TaskError("'checker.source' is empty")
        where = "'checker.language'"
        language = run_as(reading.text(given.get("language", "python"), where), where)
        if language == "python":
            reading.compiling(source, "'checker.source'")
        return Checker(kind, source=source, language=language)
    other = 0.0 if "abs" in given or "rel" in given else TOLERANCE
    return Checker(
        kind,
        abs=reading.number(given.get("abs", other), "'checker.abs'", positive=False),
        rel=reading.number(given.get("rel", other), "'checker.rel'", positive=False),
        ints_exact=reading.switch(given.get("ints_exact", False), "'checker.ints_exact'"),
        ignore_case=reading.switch(given.get("ignore_case", False), "'checker.ignore_case'"),
    )


def _settings(kind: str) -> tuple[str, ...]:
    if kind == "program":
        return ("language", "source", "verdict")
    return ("abs", "rel", "ints_exact", "ignore_case") if kind == "float" else ("ignore_case",)


def _lowered(text: bytes) -> bytes:
    return text.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")


def _lines(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in text.replace(b"\r\n", b"\n").split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _tokens_fault(checker: Checker, output: bytes, wanted: bytes) -> str:
    return _first_difference(output.split(), wanted.split(), "token", lambda found, right: found == right)


def _lines_fault(checker: Checker, output: bytes, wanted: bytes) -> str:
    return _first_difference(_lines(output), _lines(wanted), "line", lambda found, right: found == right)


def _float_fault(checker: Checker, output: bytes, wanted: bytes) -> str:
    return _first_difference(
        output.split(), wanted.split(), "token", lambda found, right: found == right or _is_near(checker, found, right)
    )


def _unordered_tokens_fault(checker: Checker, output: bytes, wanted: bytes) -> str:
    return _multiset_difference(output.split(), wanted.split(), "token")


def _unordered_lines_fault(checker: Checker, output: bytes, wanted: bytes) -> str:
    return _multiset_difference(
        [line for line in _lines(output) if line], [line for line in _lines(wanted) if line], "line"
    )


_RULES: Mapping[str, Callable[[Checker, bytes, bytes], str]] = {
    "tokens": _tokens_fault,
    "lines": _lines_fault,
    "float": _float_fault,
    "unordered-tokens": _unordered_tokens_fault,
    "unordered-lines": _unordered_lines_fault,
}


def _first_difference(
    found: Sequence[bytes], right: Sequence[bytes], name: str, same: Callable[[bytes, bytes], bool]
) -> str:
    if found == right:  # at the speed of C, for large outputs
        return ""
    for number, (one, other) in enumerate(zip(found, right, strict=False), 1):
        if not same(one, other):
            return f"{name} {number} is {_shown(one)}, expected {_shown(other)}"
    if len(found) != len(right):
        return f"{len(found)} {name}s, expected {len(right)}"
    return ""


def _multiset_difference(found: Sequence[bytes], right: Sequence[bytes], name: str) -> str:
    one, other = Counter(found), Counter(right)
    if one == other:
        return ""
    extra, missing = list(one - other), list(other - one)
    return f"{name} {_shown(extra[0])} is not expected" if extra else f"{name} {_shown(missing[0])} is missing"


def _shown(piece: bytes) -> str:
    return repr(piece[:40].decode("utf-8", "replace"))


def _is_near(checker: Checker, found: bytes, right: bytes) -> bool:
    expected = _special(right)
    if expected:
        return _special(found) == expected
    if not _NUMBER.match(right) or not _NUMBER.match(found):
        return False
    try:
        want, have = _CONTEXT.create_decimal(right.decode()), _CONTEXT.create_decimal(found.decode())
        if checker.ints_exact and _INTEGER.match(right):
            return Decimal(right.decode()) == Decimal(found.decode())
        allowed = max(Decimal(repr(checker.abs)), _CONTEXT.multiply(Decimal(repr(checker.rel)), _CONTEXT.abs(want)))
        return _CONTEXT.abs(_CONTEXT.subtract(have, want)) <= allowed
    except InvalidOperation:
        return False


def _special(token: bytes) -> str:
    """`nan`, `inf` or `-inf`; `""` for anything else."""
    sign, word = (token[:1], token[1:]) if token[:1] in (b"+", b"-") else (b"", token)
    name = _SPECIAL.get(word.lower(), "")
    return f"-{name}" if name == "inf" and sign == b"-" else name
