"""The domain `code`: programs, judged by tests in a sandbox.

The program is the last complete fenced block of the answer (`extraction`). It is right if it passes all tests of its task (arXiv
2512.13607, 4.6), and testing stops at the first that it fails; evaluation runs every test, and reports the share that passed beside
the verdict. How tests are run, and what the program cannot see of them: `judging`. Importing this module starts no sandbox.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, ClassVar, Literal

from cascade_sandbox import Limits, Sandbox, SandboxError

from cascade_core import Benchmark, Demonstration, Domain, Response, Score, Task
from cascade_core.domain import Message
from cascade_core.errors import TaskError, UsageError
from cascade_core.nearest import suggestion
from cascade_core.sources import OnBadRow, is_held_out
from cascade_plugin_code import exam, extraction, files, formats
from cascade_plugin_code.exam import Exam
from cascade_plugin_code.extraction import Extracted
from cascade_plugin_code.languages import run_as
from cascade_plugin_code.measure import Measured
from cascade_plugin_code.problems import Problem
from cascade_plugin_code.prompting import INSTRUCTION, prompt
from cascade_plugin_code.report import Report, explained
from cascade_plugin_code.tiny import SOURCE as GENERATED
from cascade_plugin_code.tiny import Tiny

EVERY_TEST = "every_test"


@dataclass
class CodeDomain(Domain):
    """Programs with tests.

    Attributes:
        data: JSONL or Parquet files, or hub data sets (`name@configuration:split`), to train on.
        eval_data: the same to evaluate on: one source, or several by name, each a benchmark of that name. Without it one problem in five
            of `data` is held out.
        format: of the rows: `own`, `taco`, `apps`, `livecodebench`, `humaneval`, `deepcoder`, or `auto`, which sees it from their fields.
        on_bad_row: `fail` stops at a row of a file that is no problem, `skip` leaves it out and logs how many.
        generator: instead of `data`: `{level: tiny}`, small tasks for a tiny model, see `tiny`.
        template: how a problem becomes a prompt, see `prompting`. By default it says how the program is called, its limits and
            its language; the generator's problems are their own prompts.
        language: that of tasks that do not say one.
        program: `fenced` judges the last complete fenced block, `bare` also an unclosed one and an answer without any.
        scoring: `all-or-nothing` is 1 if every test passes, `fraction` the share of tests that do.
        limits: `seconds` of CPU time, `memory_mb` and `output_mb` of one run, where the task does not say its own.
        eval_limit, eval_samples, eval_sampling: tasks, samples and sampling settings of each benchmark.

    Raises:
        UsageError: an option has an impossible value.
    """

    name: ClassVar[str] = "code"
    lane: ClassVar[str] = "io"
    needs: ClassVar[tuple[str, ...]] = ("sandbox",)

    data: str | list[str] = ""
    eval_data: str | list[str] | dict[str, str] = ""
    format: str = formats.AUTO
    on_bad_row: OnBadRow = "fail"
    generator: dict[str, Any] = field(default_factory=dict)
    template: str | None = None
    language: str = "python"
    program: Literal["fenced", "bare"] = "fenced"
    scoring: Literal["all-or-nothing", "fraction"] = "all-or-nothing"
    limits: dict[str, float] = field(default_factory=dict)
    eval_limit: int | None = None
    eval_samples: int = 1
    eval_sampling: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.program not in ("fenced", "bare") or self.scoring not in exam.SCORINGS:
            raise UsageError(
                "options of domain 'code': 'program' must be 'fenced' or 'bare' and 'scoring' 'all-or-nothing' or 'fraction', "
                f"found {self.program!r} and {self.scoring!r}"
            )
        if self.format not in (known := (formats.AUTO, *formats.FORMATS)):
            raise UsageError(
                f"option 'format' of domain 'code' is {self.format!r}{suggestion(str(self.format), known)}"
            )
        if self.data and self.generator:
            raise UsageError("domain 'code' takes 'data' or a 'generator', found both")
        if self.template is not None and "{problem}" not in self.template:
            raise UsageError(f"option 'template' of domain 'code' must contain {{problem}}, found {self.template!r}")
        if self.eval_samples < 1 or (self.eval_limit is not None and self.eval_limit < 1):
            raise UsageError(
                f"'eval_samples' and 'eval_limit' of domain 'code' must be at least 1, found {self.eval_samples}, {self.eval_limit}"
            )
        try:
            self._limits = exam.limits(self.limits, Limits())
        except TaskError as cause:
            raise UsageError(f"option 'limits' of domain 'code': {cause}") from cause
        try:
            run_as(self.language, "option 'language' of domain 'code'")
        except TaskError as cause:
            raise UsageError(str(cause)) from cause
        self._generator = Tiny.read(self.generator) if self.generator else None
        self._address: str | None = None
        self._sandbox: Sandbox | None = None

    # --- problems -----------------------------------------------------------------------------------------------
    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """Tasks of `train`, `test`, or of one benchmark by its name.

        Files are gone through in their order, the generator's training tasks come in one drawn from the seed.
        """
        return (self._task(problem, split) for problem in self._problems(split, seed))

    def _problems(self, split: str, seed: int) -> Iterator[Problem]:
        named = self._benchmark_sources()
        if split in named:
            return self._read_files(named[split])
        if split not in ("train", "test"):
            raise UsageError(f"split must be 'train', 'test' or a benchmark of 'eval_data', found {split!r}")
        every = [source for sources in named.values() for source in sources]
        if split == "test" and named:
            return self._read_files(every)
        if not self.data and self._generator is None:
            raise UsageError(f"domain 'code' has no problems of the split {split!r}: set 'data' or 'generator'")
        if self._generator is not None:
            problems = self._generator.problems(split, seed)
        else:
            problems = self._read_files(_listed(self.data))
        if named:
            held_out = {problem.text for problem in self._read_files(every)}
            return (problem for problem in problems if problem.text not in held_out)
        return (problem for problem in problems if is_held_out(problem.text) == (split == "test"))

    def _read_files(self, sources: Sequence[str]) -> Iterator[Problem]:
        return files.problems(sources, self.on_bad_row, self.format)

    def _benchmark_sources(self) -> dict[str, list[str]]:
        if isinstance(self.eval_data, Mapping):
            return {name: [source] for name, source in self.eval_data.items()}
        return {"test": _listed(self.eval_data)} if self.eval_data else {}

    def _task(self, problem: Problem, split: str) -> Task:
        template = self.template or ("{problem}" if self._generator else INSTRUCTION)
        text = prompt(template, problem.text, problem.answer, language=self.language, usual=self._limits)
        asked: str | list[Message] = text
        if problem.turns:
            asked = [*problem.turns[:-1], Message(role="user", content=text)]
        meta = {**problem.meta, **({"solution": problem.solution} if problem.solution else {})}
        if split != "train":
            meta[EVERY_TEST] = True
        return Task(problem.id, asked, dict(problem.answer), source=problem.source, meta=meta)

    # --- verdicts -----------------------------------------------------------------------------------------------
    def open(self, resources: Mapping[str, str]) -> None:
        """Notes the address of the sandbox and loads what judges; the connection is made by the first verdict."""
        importlib.import_module("cascade_plugin_code.judging")
        self._address = resources.get("sandbox")

    def close(self) -> None:
        """Lets go of the sandbox, which goes on."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def score(self, task: Task, response: Response) -> Score:
        """1 if the program passes every test, else 0; with `fraction`, the share of tests.

        The metric `program` says whether there was one, `tests_passed` the share of tests, where every test was run.

        Raises:
            TaskError: the task's answer is broken, its special judge failed, or its test code is at fault.
            SandboxError: the program could not be run.
        """
        asked, found = self._read(task, response)
        return self._report(task, asked, found).score(self._scoring(asked))

    def explain(self, task: Task, response: Response) -> Mapping[str, Any]:
        """The program, and of every test the verdict, what went in, what came out and what was expected, shortened.

        Raises:
            TaskError, SandboxError: as `score`.
        """
        asked, found = self._read(task, response)
        return explained(asked, found, self._run(asked, found, every=True), self._scoring(asked))

    def _read(self, task: Task, response: Response) -> tuple[Exam, Extracted]:
        asked = exam.read(task.answer, language=self.language, usual=self._limits)
        return asked, extraction.program(response.answer, asked.language, bare=self.program == "bare")

    def _scoring(self, asked: Exam) -> str:
        return asked.scoring or self.scoring

    def _report(self, task: Task, asked: Exam, found: Extracted) -> Report:
        every = bool(task.meta.get(EVERY_TEST)) or self._scoring(asked) == "fraction"
        return self._run(asked, found, every=every)

    def _run(self, asked: Exam, found: Extracted, *, every: bool) -> Report:
        """The verdicts on all tests, or up to the first that is not passed."""
        from cascade_plugin_code.judging import verdicts

        if found.program is None:
            return Report(asked.count, (), missing=found.reason)
        kept = []
        with closing(verdicts(self._connected(), asked, found.program)) as running:
            for verdict in islice(running, asked.count):
                kept.append(verdict)
                if not (verdict.passed or every):
                    break
        return Report(asked.count, tuple(kept), whole=every)

    def _connected(self) -> Sandbox:
        if self._sandbox is None:
            if self._address is None:
                raise SandboxError("domain 'code' was opened without the resource 'sandbox'")
            from cascade_sandbox.client import connect

            self._sandbox = connect(self._address)
        return self._sandbox

    # --- data ---------------------------------------------------------------------------------------------------
    def reference(self, task: Task) -> str | None:
        """The known solution in a fenced block; with `program: bare` the solution itself."""
        solution = task.meta.get("solution")
        return self._answer(task, solution) if isinstance(solution, str) else None

    def _answer(self, task: Task, solution: str) -> str:
        """An answer that is read back as exactly this program."""
        if self.program == "bare" and not any(extraction.blocks(solution)):
            return solution
        return fenced(solution, str(task.answer.get("language", self.language)))

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """Known solutions; of the generator's, a share of `noise` is spoilt."""
        rng = Random(f"demonstrations {split} {seed}")
        for task in self.tasks(split, seed):
            if self._generator is not None and task.source == GENERATED:
                yield Demonstration(task, self._answer(task, self._generator.demonstrated(task.id, rng)))
            elif (known := self.reference(task)) is not None:
                yield Demonstration(task, known)

    def benchmarks(self) -> Sequence[Benchmark]:
        """One a name of `eval_data`, else the held-out part: `test`; each also reports the share of tests passed."""
        names = self.eval_data if isinstance(self.eval_data, Mapping) else ("test",)
        return tuple(
            Measured(
                name, split=name, samples=self.eval_samples, sampling=dict(self.eval_sampling), limit=self.eval_limit
            )
            for name in names
        )


def fenced(source: str, language: str) -> str:
    """A program as the block that is read back as exactly this program."""
    longest = max((len(run) for run in _runs(source)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{source}\n{marks}"


def _runs(source: str) -> Iterator[str]:
    return (part for line in source.splitlines() for part in [line.strip()] if part and set(part) == {"`"})


def _listed(sources: str | Sequence[str]) -> list[str]:
    return [sources] if isinstance(sources, str) else list(sources)


__all__ = ["INSTRUCTION", "CodeDomain", "fenced"]
