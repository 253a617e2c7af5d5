"""The domain `math`: problems with one right answer, judged by the verifier of this package.

Problems come from files or hub data sets (`files`), from reasoning-gym (`gym`) or from the arithmetic generator for tiny
models (`arithmetic`). The verdict is that of `verifier.verdict`, on what follows the thought (`Response.answer`). Importing
this module loads no verifier and no data library.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from cascade_core import Benchmark, Demonstration, Domain, Response, Score, Task
from cascade_core.domain import Message
from cascade_core.errors import TaskError, UsageError
from cascade_core.sources import OnBadRow, is_held_out
from cascade_plugin_math import files
from cascade_plugin_math.arithmetic import NAME as ARITHMETIC
from cascade_plugin_math.arithmetic import Arithmetic
from cascade_plugin_math.files import Fields
from cascade_plugin_math.gym import Gym
from cascade_plugin_math.problems import Problem
from cascade_plugin_math.verifier.policy import Policy

INSTRUCTION = "{problem}\n\nReason step by step and put your final answer in \\boxed{}."


@dataclass
class MathDomain(Domain):
    """Mathematics.

    Attributes:
        data: JSONL or Parquet files, or hub data sets (`name@configuration:split`), to train on.
        eval_data: the same to evaluate on: one source, or several by name, each a benchmark of that name. Without it one problem in five
            of `data` is held out.
        prompt_field, answer_field, id_field, response_field: names of the fields of a row; by default the usual ones.
            `response_field` names worked solutions, which become demonstrations.
        on_bad_row: `fail` stops at a row of a file that is broken or has no problem or answer, `skip` leaves it out and logs how many.
        generator: instead of `data`: `{name: arithmetic, …}` or `{name: <generator of reasoning-gym>, …}` with its settings.
        template: how a problem becomes a prompt; `{problem}` stands for it. By default it asks for a box, and the
            arithmetic generator's problems are their own prompts.
        answer: `boxed` judges the last complete box, `stated` also an answer stated in words.
        policy: how to judge, for all tasks that do not say otherwise: see `verifier.policy.Policy`.
        second_opinion: ask math-verify too, and report where it differs (metric `math_verify_differs`).
        eval_limit, eval_samples, eval_sampling: tasks, samples and sampling settings of each benchmark.

    Raises:
        UsageError: an option has an impossible value, or there is no source of problems.
    """

    name: ClassVar[str] = "math"

    data: str | list[str] = ""
    eval_data: str | list[str] | dict[str, str] = ""
    prompt_field: str = ""
    answer_field: str = ""
    id_field: str = ""
    response_field: str = ""
    on_bad_row: OnBadRow = "fail"
    generator: dict[str, Any] = field(default_factory=dict)
    template: str | None = None
    answer: Literal["boxed", "stated"] = "boxed"
    policy: dict[str, Any] = field(default_factory=dict)
    second_opinion: bool = False
    eval_limit: int | None = None
    eval_samples: int = 1
    eval_sampling: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.answer not in ("boxed", "stated"):
            raise UsageError(f"option 'answer' of domain 'math' must be 'boxed' or 'stated', found {self.answer!r}")
        if self.data and self.generator:
            raise UsageError("domain 'math' takes 'data' or a 'generator', found both")
        if self.template is not None and "{problem}" not in self.template:
            raise UsageError(f"option 'template' of domain 'math' must contain {{problem}}, found {self.template!r}")
        if self.eval_samples < 1 or (self.eval_limit is not None and self.eval_limit < 1):
            raise UsageError(
                f"'eval_samples' and 'eval_limit' of domain 'math' must be at least 1, found {self.eval_samples}, {self.eval_limit}"
            )
        try:
            self._policy = Policy().changed(self.policy)
        except TaskError as cause:
            raise UsageError(f"option 'policy' of domain 'math': {cause}") from cause
        self._generator = self._read_generator()
        self._fields = Fields(self.prompt_field, self.answer_field, self.id_field, self.response_field, self.on_bad_row)

    def _read_generator(self) -> Arithmetic | Gym | None:
        if self.data or (self.eval_data and not self.generator):
            return None
        options = dict(self.generator) or {"name": ARITHMETIC}
        if options.get("name") == ARITHMETIC:
            return Arithmetic.read({key: value for key, value in options.items() if key != "name"})
        return Gym(options)

    # --- problems -----------------------------------------------------------------------------------------------
    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """Tasks of `train`, `test`, or of one benchmark by its name.

        Files are gone through in their order; generators train on an endless stream drawn from the seed.
        """
        return (self._task(problem) for problem in self._problems(split, seed))

    def _problems(self, split: str, seed: int) -> Iterator[Problem]:
        named = self._benchmark_sources()
        if split in named:
            return files.problems(named[split], self._fields)
        if split not in ("train", "test"):
            raise UsageError(f"split must be 'train', 'test' or a benchmark of 'eval_data', found {split!r}")
        if split == "test" and named:
            return files.problems([source for sources in named.values() for source in sources], self._fields)
        if self._generator is not None:
            return self._without(self._generator.problems(split, seed), named, split)
        if not self.data:
            raise UsageError("domain 'math' has only 'eval_data': set 'data' or 'generator' to train")
        train = files.problems(_listed(self.data), self._fields)
        if named:
            return self._without(train, named, split)
        return (problem for problem in train if is_held_out(problem.text) == (split == "test"))

    def _without(self, stream: Iterator[Problem], named: Mapping[str, list[str]], split: str) -> Iterator[Problem]:
        """The stream without the problems of any benchmark."""
        sources = [source for group in named.values() for source in group] if split == "train" else []
        held_out = {problem.text for problem in files.problems(sources, self._fields)}
        return (problem for problem in stream if problem.text not in held_out)

    def _benchmark_sources(self) -> dict[str, list[str]]:
        if isinstance(self.eval_data, Mapping):
            return {name: [source] for name, source in self.eval_data.items()}
        return {"test": _listed(self.eval_data)} if self.eval_data else {}

    def _task(self, problem: Problem) -> Task:
        template = self.template or ("{problem}" if isinstance(self._generator, Arithmetic) else INSTRUCTION)
        text = template.replace("{problem}", problem.text)
        prompt: str | list[Message] = text
        if problem.turns:
            prompt = [*problem.turns[:-1], Message(role="user", content=text)]
        meta = dict(problem.meta)
        if text != problem.text:
            meta["problem"] = problem.text
        if problem.response:
            meta["response"] = problem.response
        return Task(problem.id, prompt, problem.answer, source=problem.source, meta=meta)

    # --- verdicts -----------------------------------------------------------------------------------------------
    def open(self, resources: Mapping[str, str]) -> None:
        """Loads the verifier, so that the time this takes is not counted against the first verdict."""
        importlib.import_module("cascade_plugin_math.verifier.verdict")

    def score(self, task: Task, response: Response) -> Score:
        """1 if the answer is the label's, else 0; the metric `boxed` says whether there was a complete box.

        Raises:
            TaskError: the label is missing or cannot be read, or the task's policy is wrong.
        """
        from cascade_plugin_math.verifier.extraction import boxed
        from cascade_plugin_math.verifier.verdict import judge

        label, policy = self._label(task), self._task_policy(task)
        answer = response.answer
        verdict = judge(answer, label, problem=_problem(task), policy=policy, answer=self.answer)
        metrics = {"boxed": float(answer is not None and boxed(answer) is not None)}
        if self.second_opinion and verdict.answer is not None:
            metrics.update(self._second(str(label), verdict.answer, verdict.right))
        return Score(float(verdict.right), note=verdict.note, metrics=metrics)

    def explain(self, task: Task, response: Response) -> Mapping[str, Any]:
        """The rule that decided, what was taken as the answer, and what it and the label were read as.

        Raises:
            TaskError: as `score`.
        """
        from cascade_plugin_math.explain import explained

        label, policy = self._label(task), self._task_policy(task)
        return explained(response.answer, label, problem=_problem(task), policy=policy, mode=self.answer)

    def _second(self, label: str, answer: str, right: bool) -> dict[str, float]:
        from cascade_plugin_math.second_opinion import opinion

        other = opinion(label, answer)
        return {} if other is None else {"math_verify_differs": float(other != right)}

    def _label(self, task: Task) -> Any:
        if isinstance(task.answer, Mapping):
            if "label" not in task.answer:
                raise TaskError(f"task {task.id}: the answer has no 'label', found {', '.join(map(repr, task.answer))}")
            return task.answer["label"]
        return task.answer

    def _task_policy(self, task: Task) -> Policy:
        policy = self._policy
        said = task.meta.get("policy")
        if isinstance(said, Mapping):
            policy = policy.changed(said)
        if isinstance(task.answer, Mapping):
            policy = policy.changed({key: value for key, value in task.answer.items() if key != "label"})
        return policy

    # --- data ---------------------------------------------------------------------------------------------------
    def reference(self, task: Task) -> str | None:
        """The label in a box."""
        label = self._label(task)
        return None if label is None else f"\\boxed{{{_unboxed(str(label))}}}"

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """Worked solutions where the rows have them, else the label in a box; spoilt as the arithmetic generator's settings say."""
        rng = random.Random(f"demonstrations {split} {seed}")
        for task in self.tasks(split, seed):
            response = task.meta.get("response") or self.reference(task)
            if isinstance(self._generator, Arithmetic):
                response = self._generator.spoilt(self._label(task), rng)
            if response is not None:
                yield Demonstration(task, str(response))

    def benchmarks(self) -> Sequence[Benchmark]:
        """One a name of `eval_data`, else the held-out part: `test`."""
        names = self.eval_data if isinstance(self.eval_data, Mapping) else ("test",)
        return tuple(
            Benchmark(
                name, split=name, samples=self.eval_samples, sampling=dict(self.eval_sampling), limit=self.eval_limit
            )
            for name in names
        )


def _problem(task: Task) -> str:
    """The question without the template around it."""
    return str(task.meta.get("problem") or task.question)


def _listed(sources: str | Sequence[str]) -> list[str]:
    return [sources] if isinstance(sources, str) else list(sources)


def _unboxed(label: str) -> str:
    if "\\boxed" not in label:
        return label
    from cascade_plugin_math.verifier.verdict import label_text

    return label_text(label)


__all__ = ["INSTRUCTION", "MathDomain"]
