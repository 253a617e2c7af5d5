"""The side of the tests: runs test code against stand-ins that forward each call, and alone says what came of it.

The test code runs as `__main__`. With an entry point, this name and `candidate` are stand-ins for that function, and nothing else of
the solution can be reached. Without one, every name that the test code uses, does not define and the solution has is a
stand-in, or the plain value that the solution has under it; the standard library's modules are the real ones. The same
names can be imported from a module `solution`. A result that is no value of `travel` is a `Remote`: its
methods can be called, it can be read and gone through, and it is equal to nothing but itself, whatever its own methods
would say.

The verdict is the exit status, `PASSED`, `FAILED` or `BROKEN` (the test code is at fault), and the last line of standard error
says why. A solution that ended, once, has failed, even where the test code catches everything. Test code that passes without
having asked the solution for anything is broken: nothing was checked. So that tests that are only defined are run,
`check(candidate)`, test cases of unittest and functions `test_…` are called where nothing else has called the solution.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from cascade_plugin_code.harness.channel import Channel
from cascade_plugin_code.harness.loading import beside, private_streams
from cascade_plugin_code.harness.stand_in import TEST, Died, Solution

PASSED, FAILED, BROKEN = 40, 41, 42
ENTRY_POINT, LOOKING = "entry_point.txt", "looking.txt"
ALL = "all"


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _failures_of_unittest() -> list[str]:
    """Will hold what test cases of unittest fail with, also where the test code looks at no result: `unittest.main(exit=False)`."""
    import unittest  # here, since it takes as long to import as Python to start

    failures: list[str] = []

    def watch(name: str) -> None:
        original = getattr(unittest.TestResult, name)

        def noted(result: Any, test: Any, *more: Any) -> None:
            error = more[-1] if more else (None, AssertionError("unexpected success"), None)
            if error is not None:  # a subtest that passed
                failures.append(_reason(error[1]))
            original(result, test, *more)

        setattr(unittest.TestResult, name, noted)

    for name in ("addFailure", "addError", "addSubTest", "addUnexpectedSuccess"):
        watch(name)
    return failures


class Examination:
    """One run of the test code."""

    def __init__(self, solution: Solution, source: bytes, entry_point: str) -> None:
        self._solution, self._entry_point = solution, entry_point
        self._code = compile(source, TEST, "exec", dont_inherit=True)
        self._module = types.ModuleType("__main__")

    def run(self) -> tuple[int, str]:
        """The status and the reason."""
        sys.modules["__main__"], sys.modules["solution"] = self._module, self._stand_in_module()
        sys.argv = [TEST]
        named = set(_names_in(self._code))
        self._solution.names_stop = "StopIteration" in named
        failures = _failures_of_unittest() if "unittest" in named else []
        status, note = self._ended(self._test)
        if status == PASSED and not self._solution.asked:
            status, note = self._ended(self._what_is_defined)
        if self._solution.died:
            return FAILED, self._solution.died
        if self._solution.broken:
            return BROKEN, self._solution.broken
        if status == PASSED and failures:
            return FAILED, failures[0]
        if status == PASSED and not self._solution.asked:
            return BROKEN, "the test code never asks the solution for anything"
        return status, note

    def _test(self) -> None:
        vars(self._module).update(self._filled())
        self._solution.asked = 0
        exec(self._code, vars(self._module))

    def _filled(self) -> dict[str, Any]:
        """The names that the test code uses and the solution has."""
        if self._entry_point:
            candidate = self._stand_in(self._entry_point)
            filled: dict[str, Any] = {"candidate": candidate, self._entry_point: candidate}
            head, _, tail = self._entry_point.partition(".")
            return {**filled, head: self._solution.function(head)} if tail else filled
        filled = {}
        for name in set(_names_in(self._code)):
            kind = self._solution.names.get(name)
            if kind is None or hasattr(builtins, name):
                continue
            if name in sys.stdlib_module_names:
                filled[name] = __import__(name)
            else:
                filled[name] = self._stand_in(name)
        return filled

    def _stand_in(self, name: str) -> Any:
        kind = self._solution.names.get(name)
        if kind == "class" or (kind == "value" and name != self._entry_point):
            asked = self._solution.asked
            value = self._solution.get(name)
            self._solution.asked = asked  # to have it is not to ask the solution for anything
            return value
        own = None if name == self._entry_point else self._solution.exception(name)
        return own or self._solution.function(name)

    def _stand_in_module(self) -> types.ModuleType:
        """The module `solution`; what is imported from it is asked for then."""
        module = types.ModuleType("solution")
        names = [name for name in self._solution.names if self._entry_point in ("", name)]

        def ask(name: str) -> Any:
            if name not in names:
                raise AttributeError(name)
            return self._stand_in(name)

        vars(module).update(__getattr__=ask, __all__=names)
        return module

    def _what_is_defined(self) -> None:
        namespace = vars(self._module)
        check, candidate = namespace.get("check"), namespace.get("candidate")
        if callable(check) and candidate is not None:
            check(candidate)
            return
        import unittest  # here, since it takes as long to import as Python to start

        suite = unittest.defaultTestLoader.loadTestsFromModule(self._module)
        if suite.countTestCases():
            result = unittest.TestResult()
            suite.run(result)
            for _, text in (*result.failures, *result.errors):
                raise AssertionError(text.strip().splitlines()[-1])
            return
        for name, function in list(namespace.items()):
            if name.startswith("test") and isinstance(function, types.FunctionType):
                function()

    def _ended(self, run: Callable[[], Any]) -> tuple[int, str]:
        try:
            run()
        except SystemExit as end:
            right = end.code is None or end.code is False or end.code == 0
            return (PASSED, "") if right else (FAILED, f"the test code ended with status {_shown(end.code)}"[:200])
        except BaseException as error:  # noqa: BLE001 - whatever ends the test code is a verdict
            if isinstance(error, ImportError) and error.name != "solution" and error not in self._solution.raised:
                return BROKEN, f"the test code cannot import: {error}"
            return FAILED, _reason(error)
        return PASSED, ""


def _shown(value: Any) -> str:
    """A value as a text; it may be the solution's, which may answer anything to that, or end."""
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - whatever is wrong with the message, the verdict stands
        return "what cannot be shown"


def _reason(error: BaseException) -> str:
    line, frame = 0, error.__traceback__
    while frame is not None:
        line = frame.tb_lineno if frame.tb_frame.f_code.co_filename == TEST else line
        frame = frame.tb_next
    where = f"line {line} of the tests: " if line else ""
    text = _shown(error).splitlines() or [""]
    return f"{where}{type(error).__name__}{': ' if text[0] else ''}{text[0][:300]}"


def _examined(channel: Channel, source: bytes, entry_point: str, looking: str) -> tuple[int, str]:
    try:
        solution = Solution(channel, None if looking == ALL else frozenset(map(int, looking.split())))
    except Died as death:
        return FAILED, str(death)
    try:
        examination = Examination(solution, source, entry_point)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return BROKEN, f"the test code does not compile: {error}"
    try:
        return examination.run()
    except Died as death:
        return FAILED, str(death)


def main() -> None:
    """Examines the solution, says the verdict and ends."""
    channel = Channel(*private_streams())
    status, note = _examined(channel, beside(TEST), beside(ENTRY_POINT).decode(), beside(LOOKING).decode())
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(2, ("\n" + " ".join(note.split()) + "\n").encode("utf-8", "backslashreplace"))
    os._exit(status)


if __name__ == "__main__":
    main()
