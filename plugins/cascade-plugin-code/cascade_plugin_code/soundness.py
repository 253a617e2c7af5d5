"""Problems whose known solutions pass their own tests: every one is run once, and the sound problems are written to one file.

A problem with wrong tests, or one that these tests cannot judge, teaches a model something else than it says. Loading is done many times in a
run and in processes that have no sandbox, so the check is a step of its own, and what it writes is what is trained on. A problem is
sound if one of its solutions passes every test; one without a known solution is kept and counted apart.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cascade_sandbox import Limits, Sandbox

from cascade_core.errors import TaskError
from cascade_core.rows import dump
from cascade_plugin_code import exam
from cascade_plugin_code.judging import verdicts
from cascade_plugin_code.problems import Problem

State = Literal["sound", "unknown", "unsound"]


@dataclass(frozen=True)
class Checked:
    """A problem: sound by the solution that it now has, unknown without any, or unsound, with what its first solution did."""

    problem: Problem
    state: State
    note: str = ""


@dataclass
class Counts:
    """How many problems are what; `unsound` are `(id, note)`."""

    sound: int = 0
    unknown: int = 0
    unsound: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All of them."""
        return self.sound + self.unknown + len(self.unsound)


def check(problem: Problem, sandbox: Sandbox, *, language: str = "python", usual: Limits | None = None) -> Checked:
    """Runs the known solutions of a problem until one passes.

    Raises:
        SandboxError: they could not be run.
    """
    known = [source for source in (problem.solution, *problem.others) if source]
    if not known:
        return Checked(problem, "unknown")
    asked = exam.read(problem.answer, language=language, usual=usual)
    notes = []
    for source in known:
        note = _fault(sandbox, asked, source)
        if not note:
            return Checked(Problem(**{**problem.__dict__, "solution": source, "others": ()}), "sound")
        notes.append(note)
    return Checked(problem, "unsound", notes[0])


def _fault(sandbox: Sandbox, asked: exam.Exam, source: str) -> str:
    """Why a solution does not pass; `""` if it does."""
    passed = 0
    try:
        with closing(verdicts(sandbox, asked, source)) as running:
            for number, verdict in enumerate(running, 1):
                if not verdict.passed:
                    return f"test {number} of {asked.count}: {verdict.note}"
                passed += 1
    except TaskError as cause:
        return str(cause)
    return "" if passed == asked.count else f"{passed} of {asked.count} tests were run"


def checked(
    problems: Iterable[Problem],
    sandbox: Sandbox,
    workers: int,
    *,
    language: str = "python",
    usual: Limits | None = None,
) -> Iterator[Checked]:
    """Every problem checked, in order, so many at once; a few are read ahead.

    Raises:
        SandboxError: one could not be run.
    """
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[Checked]] = deque()
        try:
            for problem in problems:
                ahead.append(pool.submit(check, problem, sandbox, language=language, usual=usual))
                if len(ahead) >= 4 * workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for waiting in ahead:
                waiting.cancel()


def write(path: Path, found: Iterable[Checked]) -> Counts:
    """Writes what is not unsound as rows of this package's own format, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    counts = Counts()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as out:
            for one in found:
                if one.state == "unsound":
                    counts.unsound.append((one.problem.id, one.note))
                    continue
                counts.sound += one.state == "sound"
                counts.unknown += one.state == "unknown"
                out.write(dump(row(one.problem)) + "\n")
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return counts


def row(problem: Problem) -> dict[str, Any]:
    """A problem as a row of this package's own format; the answer is JSON text, so that a table of such rows has one type a column."""
    found: dict[str, Any] = {
        "id": problem.id,
        "prompt": [dict(turn) for turn in problem.turns] if problem.turns else problem.text,
        "answer": json.dumps(problem.answer),
        "source": problem.source,
    }
    if problem.turns:
        found["prompt"][-1]["content"] = problem.text
    return {**found, "solution": problem.solution} if problem.solution else found
