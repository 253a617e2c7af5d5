"""The special judge: a program of the data set that says whether an output is right, where many are.

It is called with three file names, `input`, `output` and `expected`, and says by its exit status: 0 right, 1 wrong. Any other status is a failure of
the judge and no verdict. So is a signal, or a limit that it runs into, unless it comes to an end with the expected output: then it was this output's doing.
The judge is no part of the answer, but it reads what a hostile program printed, so it runs in the sandbox as well, in a place that no judged program ever sees.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType

from cascade_sandbox import Input, Limits, Program, Result, Sandbox, Session, UnknownLanguage

from cascade_core.errors import TaskError
from cascade_plugin_code.checkers import Checker
from cascade_plugin_code.exam import Talk
from cascade_plugin_code.words import ended, first_line

LEAST = Limits(cpu_seconds=10.0)
_WRONG = 1


class SpecialJudge:
    """A special judge for one score; started when it is first asked, and a context manager."""

    def __init__(self, sandbox: Sandbox, checker: Checker, limits: Limits) -> None:
        self._sandbox, self._checker = sandbox, checker
        self._limits = replace(
            limits,
            cpu_seconds=max(limits.cpu_seconds, LEAST.cpu_seconds),
            memory_bytes=max(limits.memory_bytes, LEAST.memory_bytes),
            wall_seconds=None,
        )
        self._session: Session | None = None

    def fault(self, test: Talk, output: bytes) -> str:
        """What is wrong with an output; `""` if nothing is.

        Raises:
            TaskError: the judge failed.
            SandboxError: it could not be run.
        """
        expected = test.stdout.encode("utf-8", "surrogatepass")
        result = self._asked(test, output, expected)
        if result.verdict == "ok":
            return ""
        if _says_wrong(result):
            said = first_line(result.stdout.decode("utf-8", "replace"))
            return f"the special judge says wrong{': ' if said else ''}{said}"
        why = f"the special judge failed: {ended(result, self._limits)}"
        if result.is_limit or result.exit_code < 0:
            control = self._asked(test, expected, expected)
            if control.verdict == "ok" or _says_wrong(control):
                return f"with this output, {why}"
        raise TaskError(why)

    def _asked(self, test: Talk, output: bytes, expected: bytes) -> Result:
        files = {"input": test.stdin, "output": output, "expected": expected}
        return self._opened().run(Input(args=("input", "output", "expected"), files=files))

    def _opened(self) -> Session:
        if self._session is None:
            program = Program(self._checker.source, self._checker.language)
            try:
                self._session = self._sandbox.open(program, self._limits, private=True)
            except UnknownLanguage as cause:
                raise TaskError(f"the special judge's language is not offered: {cause}") from cause
            compiled = self._session.compiled
            if compiled is not None and compiled.verdict != "ok":
                raise TaskError(f"the special judge does not compile: {first_line(compiled.stderr)}")
        return self._session

    def __enter__(self) -> SpecialJudge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()


def _says_wrong(result: Result) -> bool:
    return result.verdict in ("failed", "memory") and result.exit_code == _WRONG
