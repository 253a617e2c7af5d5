"""The domain `if`: instruction following. Tasks are prompts with verifiable instructions; rules decide, no model does.

Tasks come from files or hub data sets in the public formats of IFEval, IFBench and IF-RLVR (`data.py`), or from the generator
(`generator.py`); the verdict is that of `verdict.py`. Options are the fields of `IFDomain`. Importing this module loads
no verifier and no data library.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from cascade_core import Benchmark, Demonstration, Domain, Response, Score, Task
from cascade_core.errors import ContractError, UsageError
from cascade_core.sources import OnBadRow
from cascade_plugin_if import generator
from cascade_plugin_if.generator import Settings

GENERATED_TEST_TASKS = 400
"""How many held-out tasks of the generator a benchmark takes unless told otherwise."""


@dataclass
class IFDomain(Domain):
    """Instruction following.

    Attributes:
        data: a JSONL or Parquet file, or the name of a hub data set, in the format of IFEval or of IF-RLVR; `""` uses the
            generator. What IFBench evaluates with is refused.
        eval_data: the same for the benchmark `ifeval`; without it one prompt in five of `data` is held out.
        ifbench_data: a file or hub data set (`allenai/IFBench_test`) in the same format for the benchmark `ifbench`; its prompts
            are never trained on.
        on_bad_row: `fail` stops at a row of a file that is broken or has no prompt or instructions, `skip` leaves it out and logs how many.
        generator: settings of the generator, see `generator.Settings`: `level`, `constraints`, `families`, `size`.
        noise: share of the demonstrations that break one of their instructions. A setting for teaching examples: it
            leaves room for what reinforcement learning then gains. Real data has no use for it.
        eval_limit: how many tasks the benchmark takes; by default all from files, and 400 of the generator.
        eval_samples: how many answers a task is given in evaluation.

    Raises:
        UsageError: an option has an impossible value.
    """

    name: ClassVar[str] = "if"

    data: str = ""
    eval_data: str = ""
    ifbench_data: str = ""
    on_bad_row: OnBadRow = "fail"
    generator: Settings = field(default_factory=Settings)
    noise: float = 0.0
    eval_limit: int | None = None
    eval_samples: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.noise <= 1.0:
            raise UsageError(f"option 'noise' of domain 'if' must lie in [0, 1], found {self.noise!r}")
        if self.eval_samples < 1 or (self.eval_limit is not None and self.eval_limit < 1):
            raise UsageError(
                "options 'eval_limit' and 'eval_samples' of domain 'if' must be at least 1, "
                f"found {self.eval_limit!r} and {self.eval_samples!r}"
            )
        if isinstance(self.generator, Mapping):
            self.generator = Settings.read(self.generator)

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """Tasks of the split: of the files in their order, of the generator in an order drawn from the seed."""
        files = {"train": self.data, "test": self.eval_data or self.data, "ifbench": self.ifbench_data}
        if split not in files or (split == "ifbench" and not self.ifbench_data):
            allowed = "'train', 'test' or 'ifbench'" if self.ifbench_data else "'train' or 'test'"
            raise UsageError(f"split must be {allowed}, found {split!r}")
        if not files[split]:
            return generator.tasks(self.generator, split, seed if split == "train" else 0)
        from cascade_plugin_if import data

        return data.tasks(self.data, self.eval_data, split, self.on_bad_row, self.ifbench_data)

    def open(self, resources: Mapping[str, str]) -> None:
        """Loads the verifier, so that the time this takes is not counted against the first verdict."""
        importlib.import_module("cascade_plugin_if.verdict")

    def score(self, task: Task, response: Response) -> Score:
        """1 if every instruction is followed as a reader would count; the metrics are IFEval's four figures.

        Raises:
            TaskError: an instruction is unknown, or an argument is missing or impossible.
            ContractError: the response is no text.
        """
        from cascade_plugin_if.verdict import calls, judge

        asked = calls(task.answer)
        if not isinstance(response.text, str):
            raise ContractError(f"a response must be text, found {response.text!r}")
        answer = response.answer
        if answer is None:
            return judge(asked, "").score("no answer: the thought is not finished")
        return judge(asked, answer).score()

    def explain(self, task: Task, response: Response) -> Mapping[str, Any]:
        """Each instruction with its arguments, followed strictly and loosely or not, and what the checks looked at.

        Raises:
            TaskError: as `score`.
        """
        from cascade_plugin_if.explain import explained
        from cascade_plugin_if.verdict import calls

        return explained(calls(task.answer), response.answer)

    def reference(self, task: Task) -> str | None:
        """The generator's own answer, which follows every instruction; none for tasks from files."""
        reference = task.answer.get("reference") if isinstance(task.answer, Mapping) else None
        return reference if isinstance(reference, str) else None

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """References as SFT data; a share of `noise` breaks one of its instructions."""
        rng = Random(f"noise-{split}-{seed}")
        for task in self.tasks(split, seed):
            reference = self.reference(task)
            if reference is not None:
                spoil = rng.random() < self.noise
                yield Demonstration(task, self._spoilt(task, reference, rng) if spoil else reference)

    def _spoilt(self, task: Task, reference: str, rng: Random) -> str:
        return generator.spoilt(task, reference, rng)

    def benchmarks(self) -> Sequence[Benchmark]:
        """The held-out tasks, `ifeval` where `eval_data` names its file and else `test`; and `ifbench` where there is its file."""
        from cascade_plugin_if.figures import IFEvalBenchmark

        name = "ifeval" if self.eval_data else "test"
        limit = None if self.data or self.eval_data else GENERATED_TEST_TASKS
        held_out = IFEvalBenchmark(name, samples=self.eval_samples, limit=self.eval_limit or limit)
        if not self.ifbench_data:
            return (held_out,)
        return (held_out, IFEvalBenchmark("ifbench", "ifbench", self.eval_samples, limit=self.eval_limit))
