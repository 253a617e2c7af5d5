"""From a program to the verdicts on its tests: how each kind of test is run, and what counts as passed.

- `stdin`: the program is opened once and run on each input; right means status 0 and an output that the checker accepts.
- `function`: the harness `call` is opened once with the solution beside it, and run in a fresh process for each call. The arguments go
  in and a value comes out; the expected value never leaves this process, which compares plain values.
- `assert`: the harness `serve` runs the solution, and `examine`, where no judged program ever runs, the test code; see there.

What the solution did is a verdict. What the task or its special judge did wrong is `TaskError`, and what the sandbox could not
do is `SandboxError`: neither is ever a verdict.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from cascade_sandbox import Dialogue, Input, Limits, Program, Result, Sandbox, Session, UnknownLanguage

from cascade_core.errors import TaskError
from cascade_plugin_code import control
from cascade_plugin_code.exam import Code, Exam
from cascade_plugin_code.harness import examine, loading, program, stand_in
from cascade_plugin_code.harness.typed import Unplain, loads
from cascade_plugin_code.special import SpecialJudge
from cascade_plugin_code.words import MOST_SHOWN, ended, last_line, printable, shown

MOST_TIMEOUTS = 5
"""After so many tests of one program have used up their time, the rest count as not passed and are not run."""
_MOST_VALUE_BYTES = 8 << 20


@dataclass(frozen=True)
class Verdict:
    """On one test; `note` says in a line why it is not passed, `printed` what came out, for people."""

    passed: bool
    note: str = ""
    limit: str = ""
    printed: str = ""
    cpu_seconds: float = 0.0


def verdicts(sandbox: Sandbox, exam: Exam, source: str) -> Generator[Verdict, None, None]:
    """The verdict on each test in order, each run when it is asked for; close the generator when enough is known.

    Raises:
        TaskError: the language is not offered, the special judge failed, or the test code is at fault.
        SandboxError: it could not be run.
    """
    runs = {"stdin": _talks, "function": _calls, "assert": _codes}[exam.kind](sandbox, exam, source)
    timeouts = 0
    with closing(runs):
        for verdict in runs:
            yield verdict
            timeouts += verdict.limit == "timeout"
            if timeouts >= MOST_TIMEOUTS:
                return


def _limited(result: Result, limits: Limits, printed: str = "") -> Verdict:
    """The verdict of a run that did not end well."""
    limit = result.verdict if result.is_limit else ""
    return Verdict(False, ended(result, limits), limit, printed, result.cpu_seconds)


@contextmanager
def _opened(sandbox: Sandbox, opened: Program, limits: Limits) -> Iterator[Session]:
    try:
        session = sandbox.open(opened, limits)
    except UnknownLanguage as cause:
        raise TaskError(
            f"the language {opened.language[:60]!r} is not offered by the sandbox {sandbox.name!r}: {cause}"
        ) from cause
    with session:
        yield session


# --- stdin ----------------------------------------------------------------------------------------------------------
def _talks(sandbox: Sandbox, exam: Exam, source: str) -> Generator[Verdict, None, None]:
    if exam.checker.is_program and exam.checker.language != exam.language:
        # A language is tested in a place when it is first asked for. Asked from within the session below, it could wait for that place.
        sandbox.languages()
    with (
        _opened(sandbox, Program(source, exam.language), exam.limits) as session,
        SpecialJudge(sandbox, exam.checker, exam.limits) as special,
    ):
        for test in exam.talks:
            result = session.run(Input(stdin=test.stdin))
            printed = printable(result.stdout[:2000].decode("utf-8", "replace"), MOST_SHOWN)
            if result.verdict != "ok":
                yield _limited(result, exam.limits, printed)
                continue
            if exam.checker.is_program:
                fault = special.fault(test, result.stdout)
            else:
                fault = exam.checker.fault(result.stdout, test.stdout)
            note = f"wrong answer: {printable(fault)}" if fault else ""
            yield Verdict(not fault, note, "", printed, result.cpu_seconds)


# --- function -------------------------------------------------------------------------------------------------------
def _calls(sandbox: Sandbox, exam: Exam, source: str) -> Generator[Verdict, None, None]:
    limits = replace(exam.limits, output_bytes=min(exam.limits.output_bytes, _MOST_VALUE_BYTES))
    harness = Program(program("call"), "python", _beside(exam, source))
    with _opened(sandbox, harness, limits) as session:
        for test in exam.calls:
            result = session.run(Input(stdin=test.request))
            yield _call_verdict(result, test.expected, exam, limits)


def _beside(exam: Exam, source: str) -> dict[str, bytes]:
    files = {loading.SOLUTION: source.encode("utf-8", "replace")}
    if exam.preamble:
        files[loading.PREAMBLE] = exam.preamble.encode("utf-8", "replace")
    return files


def _call_verdict(result: Result, expected: Any, exam: Exam, limits: Limits) -> Verdict:
    if result.verdict != "ok":
        return _limited(result, limits)
    try:
        outcome = loads(result.stdout)
    except Unplain:
        outcome = None
    if not isinstance(outcome, dict) or len(outcome) != 1:
        return Verdict(False, "ended without a result", cpu_seconds=result.cpu_seconds)
    ((kind, value),) = outcome.items()
    if kind == "value":
        printed = shown(value)
        passed = exam.compare.same(value, expected)
        note = "" if passed else f"wrong answer: returned {printable(printed, 80)}"
        return Verdict(passed, note, "", printed, result.cpu_seconds)
    said = {"raised": "raised ", "unplain": "returned ", "unloadable": "the solution "}.get(str(kind), "said ")
    return Verdict(False, said + printable(str(value)), cpu_seconds=result.cpu_seconds)


# --- assert ---------------------------------------------------------------------------------------------------------
def _codes(sandbox: Sandbox, exam: Exam, source: str) -> Generator[Verdict, None, None]:
    for test in exam.codes:
        yield _code_verdict(sandbox, exam, test, _conversation(sandbox, exam, test, source))


def _conversation(sandbox: Sandbox, exam: Exam, test: Code, source: str) -> Dialogue:
    """The test code's with a solution; they share nothing else."""
    files = {
        stand_in.TEST: test.source.encode("utf-8", "replace"),
        examine.ENTRY_POINT: exam.entry_point.encode(),
        examine.LOOKING: test.looking.encode(),
    }
    solution = Program(program("serve"), "python", _beside(exam, source))
    return sandbox.converse(solution, Program(program("examine"), "python", files), exam.limits)


def _code_verdict(sandbox: Sandbox, exam: Exam, test: Code, dialogue: Dialogue) -> Verdict:
    """The test side's verdict; a limit of the solution is told as such.

    Raises:
        TaskError: the test code is at fault, or the examination does not come to its end whatever the solution is.
    """
    solution, tests = dialogue.left, dialogue.right
    status = _status(tests)
    if status == examine.PASSED:
        return Verdict(True, cpu_seconds=solution.cpu_seconds)
    if solution.is_limit and not tests.is_limit:
        return _limited(solution, exam.limits)
    why = last_line(tests.stderr)
    if status == examine.FAILED:
        if why.startswith(stand_in.SOLUTION_ENDED):
            why = f"{why} ({ended(solution, exam.limits)})"
        return Verdict(False, why or "failed", cpu_seconds=solution.cpu_seconds)
    if status == examine.BROKEN:
        raise TaskError(f"the test code is at fault: {why}")
    why = f"did not come to its end: {ended(tests, exam.limits)}"
    controlled = Code(control.tests(test.source, exam.entry_point))
    controls = (control.solution(test.source, exam.entry_point, answer) for answer in control.ANSWERS)
    if not any(_status(_conversation(sandbox, exam, controlled, nothing).right) for nothing in controls):
        raise TaskError(f"the test code {why}")
    if solution.is_limit:
        return _limited(solution, exam.limits)
    limit = tests.verdict if tests.is_limit else ""
    return Verdict(False, f"with what the solution gave it, the test code {why}", limit, "", solution.cpu_seconds)


def _status(tests: Result) -> int:
    """What the examination ended with, 0 if it did not come to that.

    Words on standard error can make "memory" of "failed"; the status is the examination's own.
    """
    known = (examine.PASSED, examine.FAILED, examine.BROKEN)
    return tests.exit_code if tests.verdict in ("failed", "memory") and tests.exit_code in known else 0
