"""`Exam`: what the answer of a task says about its tests, read once and strictly.

`Task.answer` is one JSON object::

    {"kind": "stdin",    "tests": [{"stdin": "2 3\\n", "stdout": "5\\n"}, …], "checker": {"type": "tokens"}}
    {"kind": "function", "tests": [{"args": [2, 3], "expected": 5}, …], "entry_point": "add", "compare": {"type": "equal"}}
    {"kind": "assert",   "test_code": "assert add(2, 3) == 5", "entry_point": "add"}

Every kind takes `language`, `scoring` and `limits`: `seconds` of CPU time, `memory_mb` and `output_mb` of one run. `tests` may be JSON
text, `test_code` a list of texts, each a test. A call may have `kwargs`. `function` and `assert` are for Python, and take a
`preamble`: code that the solution may rely on, such as imports; `assert` takes `arguments`: `auto`, `copied` or `shared`, see `testcode`. Where JSON has no such value, an argument or expected value
is `{"__float__": "nan"}`, `{"__int__": "123"}`, `{"__tuple__": […]}`, `{"__set__": […]}`, `{"__frozenset__": […]}`,
`{"__bytes__": "00ff"}`, `{"__complex__": [re, im]}` or `{"__dict__": [[key, value], …]}`.

Whatever is missing, unknown or of a wrong type is an error of the task: no solution may pass because nothing was checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cascade_sandbox import Limits

from cascade_core.errors import TaskError
from cascade_plugin_code import checkers, comparison, reading, testcode
from cascade_plugin_code.checkers import Checker
from cascade_plugin_code.comparison import Comparison, value_of
from cascade_plugin_code.harness import examine
from cascade_plugin_code.harness.typed import Unplain, dumps
from cascade_plugin_code.languages import run_as
from cascade_plugin_code.words import shown


class Unjudged(TaskError):
    """The text of the tests says that no answer could be judged by them."""


KINDS = ("stdin", "function", "assert")
SCORINGS = ("all-or-nothing", "fraction")
_COMMON = ("kind", "language", "limits", "scoring")
_KEYS = {
    "stdin": ("tests", "checker"),
    "function": ("tests", "entry_point", "compare", "preamble"),
    "assert": ("test_code", "entry_point", "preamble", "arguments"),
}
ARGUMENTS = ("auto", "copied", "shared")
_LIMITS = ("seconds", "memory_mb", "output_mb")
_MEGABYTE = 1 << 20
_MOST_SECONDS, _MOST_MEGABYTES = 600.0, 1 << 16


@dataclass(frozen=True)
class Talk:
    """A test of kind `stdin`."""

    stdin: bytes
    stdout: str


@dataclass(frozen=True)
class Call:
    """A test of kind `function`: the request as the harness reads it, the expected value, and the call for people."""

    request: bytes
    expected: Any
    written: str = ""


@dataclass(frozen=True)
class Code:
    """A test of kind `assert`, and the lines whose calls change their arguments, as `examine` reads them."""

    source: str
    looking: str = ""


@dataclass(frozen=True)
class Exam:
    """The tests of one task, those of its kind, and how they are judged; `scoring` is `""` where that is left to the domain."""

    kind: str
    language: str
    limits: Limits
    talks: tuple[Talk, ...] = ()
    calls: tuple[Call, ...] = ()
    codes: tuple[Code, ...] = ()
    checker: Checker = field(default_factory=Checker)
    compare: Comparison = field(default_factory=Comparison)
    entry_point: str = ""
    preamble: str = ""
    scoring: str = ""

    @property
    def count(self) -> int:
        """How many tests there are."""
        return len(self.talks) + len(self.calls) + len(self.codes)


def read(answer: Any, *, language: str = "python", usual: Limits | None = None) -> Exam:
    """The exam of a task's answer.

    Args:
        language, usual: the language and the limits where the answer does not say.

    Raises:
        TaskError: it has no tests, or anything in it is missing, unknown or of a wrong type.
    """
    if not isinstance(answer, Mapping):
        raise TaskError(f"the answer must be an object with 'kind' and its tests, found {reading.shown(answer)}")
    kind = reading.choice(answer.get("kind"), "'kind'", KINDS)
    given = reading.mapping(answer, "the answer", (*_COMMON, *_KEYS[kind]))
    spoken = run_as(reading.text(given.get("language", language), "'language'"), "'language'")
    if kind != "stdin" and spoken != "python":
        raise TaskError(f"tests of kind {kind!r} are for Python, found the language {spoken[:60]!r}")
    entry_point = _entry_point(given.get("entry_point", ""), needed=kind == "function")
    scoring = given.get("scoring", "")
    return Exam(
        kind,
        spoken,
        limits(given.get("limits", {}), usual or Limits()),
        talks=_talks(given) if kind == "stdin" else (),
        calls=_calls(given, entry_point) if kind == "function" else (),
        codes=_codes(given, entry_point) if kind == "assert" else (),
        checker=checkers.read(given.get("checker", {"type": "tokens"})),
        compare=comparison.read(given.get("compare", {})),
        entry_point=entry_point,
        preamble=reading.compiling(reading.text(given.get("preamble", ""), "'preamble'"), "'preamble'"),
        scoring=reading.choice(scoring, "'scoring'", SCORINGS) if scoring else "",
    )


def _entry_point(value: Any, *, needed: bool) -> str:
    name = reading.text(value, "'entry_point'")
    if (name or needed) and not (len(name) <= 200 and all(part.isidentifier() for part in name.split(".", 1))):
        raise TaskError(f"'entry_point' must be a name such as 'f' or 'Solution.f', found {name[:60]!r}")
    return name


def limits(value: Any, usual: Limits) -> Limits:
    """The limits of one run; `usual` where the object does not say.

    Raises:
        TaskError: an unknown limit, or an impossible one.
    """
    given = reading.mapping(value, "'limits'", _LIMITS)
    found = {name: reading.number(given[name], f"'limits.{name}'", positive=True) for name in given}
    if (
        found.get("seconds", 1.0) > _MOST_SECONDS
        or max(found.get("memory_mb", 1), found.get("output_mb", 1)) > _MOST_MEGABYTES
    ):
        raise TaskError(
            f"'limits' allow at most {_MOST_SECONDS:.0f} seconds and {_MOST_MEGABYTES} megabytes, found {dict(given)}"
        )
    if "seconds" in found:
        usual = replace(usual, cpu_seconds=found["seconds"], wall_seconds=None)
    if "memory_mb" in found:
        usual = replace(usual, memory_bytes=max(1, int(found["memory_mb"] * _MEGABYTE)))
    if "output_mb" in found:
        usual = replace(usual, output_bytes=max(1, int(found["output_mb"] * _MEGABYTE)))
    return usual


def _listed(given: Mapping[str, Any]) -> list[Any]:
    """The tests, which may be JSON text."""
    tests = given.get("tests")
    if isinstance(tests, str):
        try:
            tests = json.loads(tests)
        except (ValueError, RecursionError) as cause:
            raise TaskError(f"'tests' cannot be decoded: {cause}") from cause
    if not isinstance(tests, list | tuple):
        raise TaskError(f"'tests' must be a list, found {reading.shown(tests)}")
    if not tests:
        raise TaskError("there are no tests, so nothing would be checked")
    return list(tests)


def _talks(given: Mapping[str, Any]) -> tuple[Talk, ...]:
    talks = []
    for number, test in enumerate(_listed(given), 1):
        where = f"test {number}"
        one = reading.mapping(test, where, ("stdin", "stdout"))
        for name in ("stdin", "stdout"):
            if name not in one:
                raise TaskError(f"{where} has no {name!r}, found {', '.join(map(repr, one)) or 'nothing'}")
        stdin = reading.text(one["stdin"], f"'stdin' of {where}").encode("utf-8", "surrogatepass")
        talks.append(Talk(stdin, reading.text(one["stdout"], f"'stdout' of {where}")))
    return tuple(talks)


def _calls(given: Mapping[str, Any], entry_point: str) -> tuple[Call, ...]:
    calls = []
    for number, test in enumerate(_listed(given), 1):
        where = f"test {number}"
        one = reading.mapping(test, where, ("args", "kwargs", "expected"))
        if "expected" not in one or not ("args" in one or "kwargs" in one):
            raise TaskError(f"{where} must have 'args' and 'expected', found {', '.join(map(repr, one)) or 'nothing'}")
        args, kwargs = one.get("args", []), one.get("kwargs", {})
        if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
            raise TaskError(f"{where}: 'args' must be a list and 'kwargs' an object")
        request = {
            "entry_point": entry_point,
            "args": [value_of(arg, where) for arg in args],
            "kwargs": {str(name): value_of(arg, where) for name, arg in kwargs.items()},
        }
        expected = value_of(one["expected"], where)
        try:
            dumps(expected)
            calls.append(Call(dumps(request), expected, f"{entry_point}{shown((*request['args'], *kwargs.items()))}"))
        except Unplain as cause:
            raise TaskError(f"{where}: {cause}") from cause
    return tuple(calls)


def _codes(given: Mapping[str, Any], entry_point: str) -> tuple[Code, ...]:
    written = given.get("test_code")
    arguments = reading.choice(given.get("arguments", "auto"), "'arguments'", ARGUMENTS)
    codes = []
    for source in list(written) if isinstance(written, list | tuple) else [written]:
        found = testcode.read(reading.text(source, "'test_code'"), entry_point)
        if found.unjudged:
            raise Unjudged(f"no answer could be judged: {found.unjudged}")
        lines = " ".join(map(str, sorted(found.looking)))
        codes.append(Code(source, {"auto": lines, "copied": "", "shared": examine.ALL}[arguments]))
    if not codes or not all(code.source.strip() for code in codes):
        raise TaskError("'test_code' is empty, so nothing would be checked")
    return tuple(codes)
