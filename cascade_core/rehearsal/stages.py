"""A few steps of every stage, for real: the run's own trainer, judge, scoring processes and files, a tiny model, one after the other.

A stage starts from the one before, as in a run; where that one failed, from the last that did not, so that later mistakes are
found too. Whatever a stage raises is a mistake, and so are samples that could not be judged, more than the run allows. Afterwards a few
tasks of each benchmark are answered and summed up.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cascade_core import evaluate, pairs, vllm_sampling
from cascade_core import rows as rowfile
from cascade_core.errors import CascadeError, TrainerError
from cascade_core.evaluate import Exam
from cascade_core.events import Events
from cascade_core.judge import Judge
from cascade_core.prompts import draw
from cascade_core.rehearsal import tiny
from cascade_core.rehearsal.bench import Bench
from cascade_core.rehearsal.findings import BenchmarkTried, Lengths, StageTried
from cascade_core.rehearsal.shrink import RESPONSE
from cascade_core.settings import Model, Stage
from cascade_core.trainers import Job, trainer_of

_TASKS, _SAMPLES = 4, 2
_COUNTED = ("scored", "limit", "failed")
_LOOKED_AT = ("scored", "limit", "failed", "total", "truncated")

Say = Callable[[str], None]


class Stages:
    """The stages of a rehearsal in `folder`, of the small spec of `bench`; `notes` say what was left out."""

    def __init__(self, bench: Bench, model: Path, folder: Path, say: Say) -> None:
        self.bench, self.seen, self.spec, self.folder, self.say = bench, bench.seen, bench.spec, folder, say
        self.model = model
        self.made: dict[str, Path] = {}
        self.notes: list[str] = []
        self.pairs: list[BenchmarkTried] = []
        self.events = Events(folder / "events.jsonl")

    def train(self, lengths: Mapping[str, Lengths]) -> Iterator[StageTried]:
        """Tries every stage; mistakes go to `seen`."""
        for index, stage in enumerate(self.spec.stages, 1):
            trainer = stage.trainer or self.spec.trainer
            if lacking := self.bench.waited.lacking(stage):
                self.notes.append(f"stage {stage.name!r} was not tried: {lacking}, and there is none")
                continue
            self.say(f"stage {stage.name}: trying {stage.steps} steps with {trainer}")
            folder, begin = self.folder / "stages" / f"{index:02d}-{stage.name}", time.monotonic()
            try:
                self._train(stage, folder)
            except Exception as cause:  # noqa: BLE001 - whatever a stranger's trainer raises; the next stage is tried
                what = str(cause) if isinstance(cause, CascadeError) else f"{type(cause).__name__}: {cause}"
                self.seen.add("stages", what if stage.name in what else f"stage {stage.name!r}: {what}")
            tried = self._tried(stage, folder, trainer, time.monotonic() - begin, lengths.get(stage.name))
            self.say(str(tried))
            self.bench.provide(self.made, self.say)
            yield tried

    def _train(self, stage: Stage, folder: Path) -> None:
        seed = self.seen.seed(stage)
        rowfile.write(folder / "prompts.jsonl", draw(stage, self.seen.domains, seed, self.seen.held_out))
        judge = Judge(self.bench.scorer, stage, seed, folder, 1.0) if stage.kind == "rl" else None
        output = folder / "checkpoint"
        rows, modes = folder / "prompts.jsonl", self.spec.model.modes
        job = Job(stage, seed, folder, self._start(stage, seed, folder), output, rows, self.events, judge, modes)
        trainer_of(self.seen.found.trainer(stage.trainer or self.spec.trainer), self.spec.engine).train(job)
        if not output.is_dir():
            raise TrainerError(f"stage {stage.name!r}: its trainer ended without writing a model; see {folder}")
        self.made[stage.name] = output
        if stage.kind == "reward_model":  # the policy goes past it
            self._read_pairs(stage, output)
        else:
            self.model = output

    def _start(self, stage: Stage, seed: int, folder: Path) -> Path:
        """What a stage starts from: the policy so far, or, of a stage with a model of its own, that one made tiny."""
        if stage.model is None:
            return self.model
        self.notes += tiny.make(Model(path=stage.model), seed, folder / "model")
        return folder / "model"

    def _read_pairs(self, stage: Stage, model: Path) -> None:
        """A few pairs of each benchmark of reward models, read by the one that was just trained; mistakes go to `seen`."""
        from cascade_core.reward_model import RewardReader

        for exam in self.seen.pair_exams:
            few = replace(exam, tasks=exam.tasks[:_TASKS])
            path = self.folder / "eval" / f"{stage.name}-{exam.name}.jsonl"
            try:
                pairs.take(few, RewardReader(model, _TASKS), path, max_error_rate=1.0)
                told = pairs.report(few, path, None)
            except Exception as cause:  # noqa: BLE001 - a stranger's benchmark
                self._wrong(exam.name, cause)
                continue
            counted = (told["scored"], told["failed"], tuple(told["estimates"]))
            self.pairs.append(BenchmarkTried(exam.name, len(few.tasks), *counted))
            self.say(str(self.pairs[-1]))

    def _wrong(self, exam: str, cause: Exception) -> None:
        what = str(cause) if isinstance(cause, CascadeError) else f"{type(cause).__name__}: {cause}"
        self.seen.add("stages", what if not exam or exam in what else f"benchmark {exam!r}: {what}")

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
        late = self.bench.waited.domains
        exams = [_few(exam) for exam in self.seen.exams if exam.name.partition("/")[0] not in late]
        try:
            with self._sampler(exams) as sampler:
                yield from self._measured(exams, sampler)
        except Exception as cause:  # noqa: BLE001 - of a sampler that could not be started
            self._wrong("", cause)

    @contextmanager
    def _sampler(self, exams: Sequence[Exam]) -> Iterator[evaluate.Sampler | evaluate.Streamer]:
        """Whoever samples in the small spec: transformers, or vLLM, which gets all exams together."""
        vllm, modes = vllm_sampling.chosen(self.spec), self.spec.model.modes
        if vllm is None or not exams:
            from cascade_core.sampling import LocalSampler

            yield LocalSampler(self.model, _TASKS * _SAMPLES, modes)
            return
        from cascade_core.vllm_sampling.sampler import VllmSampler

        self.say("benchmarks: starting vLLM")
        place, log = self.folder / "eval" / "sampling", self.folder / "eval" / "vllm.log"
        with VllmSampler(vllm, self.model, place, log, exams, self.spec.evaluation.seed, modes) as sampler:
            for exam in exams:
                sampler.ask(exam, exam.keys)
            sampler.finish()
            yield sampler

    def _measured(
        self, exams: Sequence[Exam], sampler: evaluate.Sampler | evaluate.Streamer
    ) -> Iterator[BenchmarkTried]:
        for exam in exams:
            try:
                tried = self._measure(exam, sampler)
            except Exception as cause:  # noqa: BLE001 - a stranger's benchmark
                self._wrong(exam.name, cause)
                if isinstance(cause, TrainerError) and isinstance(sampler, evaluate.Streamer):
                    return  # vLLM has ended: the others would say the same
                continue
            self.say(str(tried))
            yield tried

    def _measure(self, exam: Exam, sampler: evaluate.Sampler | evaluate.Streamer) -> BenchmarkTried:
        path = self.folder / "eval" / f"{exam.name}.jsonl"
        evaluate.take(exam, sampler, self.bench.scorer, path, seed=self.spec.evaluation.seed, max_error_rate=1.0)
        told = evaluate.report(exam, path, None)
        json.dumps(told, allow_nan=False)
        return BenchmarkTried(exam.name, len(exam.tasks), told["scored"], told["failed"], tuple(told["estimates"]))


def _few(exam: Exam) -> Exam:
    sampling = exam.sampling.model_copy(
        update={"max_response_tokens": min(exam.sampling.max_response_tokens, RESPONSE)}
    )
    return replace(exam, tasks=exam.tasks[:_TASKS], samples=min(exam.samples, _SAMPLES), sampling=sampling)
