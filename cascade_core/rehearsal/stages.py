"""A few steps of every stage, for real: the run's own trainer, judge, scoring processes and files, a tiny model, one after the other.

A stage starts from the one before, as in a run; where that one failed, from the last that did not, so that later mistakes are
found too. Whatever a stage raises is a mistake, and so are samples that could not be judged, more than the run allows. Afterwards a few
tasks of each benchmark are answered and summed up.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from cascade_core import evaluate
from cascade_core import rows as rowfile
from cascade_core.errors import CascadeError, TrainerError
from cascade_core.evaluate import Exam
from cascade_core.events import Events
from cascade_core.judge import Judge
from cascade_core.prompts import draw
from cascade_core.rehearsal.checks import Looked
from cascade_core.rehearsal.findings import BenchmarkTried, Lengths, StageTried
from cascade_core.rehearsal.shrink import RESPONSE
from cascade_core.scoring import Scorer
from cascade_core.settings import Spec, Stage
from cascade_core.trainers import Job, trainer_of

_TASKS, _SAMPLES = 4, 2
_COUNTED = ("scored", "limit", "failed")
_LOOKED_AT = ("scored", "limit", "failed", "total", "truncated")

Say = Callable[[str], None]


class Stages:
    """The stages of a rehearsal in `folder`; `spec` is the small one."""

    def __init__(self, seen: Looked, spec: Spec, model: Path, folder: Path, scorer: Scorer, say: Say) -> None:
        self.seen, self.spec, self.folder, self.scorer, self.say = seen, spec, folder, scorer, say
        self.model = model
        self.events = Events(folder / "events.jsonl")

    def train(self, lengths: Mapping[str, Lengths]) -> Iterator[StageTried]:
        """Tries every stage; mistakes go to `seen`."""
        for index, stage in enumerate(self.spec.stages, 1):
            begin = time.monotonic()
            trainer = stage.trainer or self.spec.trainer
            self.say(f"stage {stage.name}: trying {stage.steps} steps with {trainer}")
            folder = self.folder / "stages" / f"{index:02d}-{stage.name}"
            try:
                self._train(stage, folder)
            except Exception as cause:  # noqa: BLE001 - whatever a stranger's trainer raises; the next stage is tried
                what = str(cause) if isinstance(cause, CascadeError) else f"{type(cause).__name__}: {cause}"
                self.seen.add("stages", what if stage.name in what else f"stage {stage.name!r}: {what}")
            tried = self._tried(stage, folder, trainer, time.monotonic() - begin, lengths.get(stage.name))
            self.say(str(tried))
            yield tried

    def _train(self, stage: Stage, folder: Path) -> None:
        seed = self.seen.seed(stage)
        held_out = evaluate.held_out(self.seen.exams)
        rowfile.write(folder / "prompts.jsonl", draw(stage, self.seen.domains, seed, held_out))
        judge = Judge(self.scorer, stage, seed, folder, 1.0) if stage.kind == "rl" else None
        output = folder / "checkpoint"
        rows, modes = folder / "prompts.jsonl", self.spec.model.modes
        job = Job(stage, seed, folder, self.model, output, rows, self.events, judge, modes)
        trainer_of(self.seen.found.trainer(stage.trainer or self.spec.trainer), self.spec.engine).train(job)
        if not output.is_dir():
            raise TrainerError(f"stage {stage.name!r}: its trainer ended without writing a model; see {folder}")
        if stage.kind != "reward_model":  # the policy goes past it
            self.model = output

    def _tried(self, stage: Stage, folder: Path, trainer: str, seconds: float, lengths: Lengths | None) -> StageTried:
        events = self.events.read() if (self.folder / "events.jsonl").exists() else []
        steps = [one for one in events if one["kind"] == "step" and one["stage"] == folder.name]
        samples = {name: int(sum(step.get(name, 0) for step in steps)) for name in _LOOKED_AT}
        self._failures(stage, folder)
        done = len({step["step"] for step in steps})
        return StageTried(
            stage.name, stage.kind, trainer, stage.steps, done, seconds, lengths, samples if stage.kind == "rl" else {}
        )

    def _failures(self, stage: Stage, folder: Path) -> None:
        """Samples of the stage that could not be judged, where they are more than the run allows."""
        files = sorted((folder / "rollouts").glob("step-*.jsonl"))
        rows = [row for file in files for row in rowfile.read(file)]
        errors = Counter(str(row["score"]["error"]) for row in rows if row["score"].get("error"))
        if errors.total() > self.spec.scoring.max_error_rate * len(rows):
            error, count = errors.most_common(1)[0]
            self.seen.add(
                "stages",
                f"stage {stage.name!r}: {errors.total()} of {len(rows)} samples could not be judged, {count} of them because of:"
                f" {error}; mend the domain, the samples are in {folder / 'rollouts'}",
            )

    def measure(self) -> Iterator[BenchmarkTried]:
        """Answers a few tasks of each benchmark with the last model and sums them up; mistakes go to `seen`."""
        from cascade_core.sampling import LocalSampler

        sampler = None
        for exam in self.seen.exams:
            try:
                sampler = sampler or LocalSampler(self.model, _TASKS * _SAMPLES, self.spec.model.modes)
                tried = self._measure(_few(exam), sampler)
            except Exception as cause:  # noqa: BLE001 - a stranger's benchmark
                what = str(cause) if isinstance(cause, CascadeError) else f"{type(cause).__name__}: {cause}"
                self.seen.add("stages", what if exam.name in what else f"benchmark {exam.name!r}: {what}")
                continue
            self.say(str(tried))
            yield tried

    def _measure(self, exam: Exam, sampler: evaluate.Sampler) -> BenchmarkTried:
        path = self.folder / "eval" / f"{exam.name}.jsonl"
        evaluate.take(exam, sampler, self.scorer, path, seed=self.spec.evaluation.seed, max_error_rate=1.0)
        told = evaluate.report(exam, path, None)
        json.dumps(told, allow_nan=False)
        return BenchmarkTried(exam.name, len(exam.tasks), told["scored"], told["failed"], tuple(told["estimates"]))


def _few(exam: Exam) -> Exam:
    sampling = exam.sampling.model_copy(
        update={"max_response_tokens": min(exam.sampling.max_response_tokens, RESPONSE)}
    )
    return replace(exam, tasks=exam.tasks[:_TASKS], samples=min(exam.samples, _SAMPLES), sampling=sampling)
