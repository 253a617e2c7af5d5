"""Stage after stage, each from the checkpoint of the one before; every benchmark after every stage; resumable.

`run` does what the spec says and nothing that is done: a stage with `metrics.json` is finished. Killed at any moment and
given again, a run ends with the same files, clocks aside: at most one evaluation, or the steps since the last checkpoint
inside the stage, are done again. This module decides what comes next; drawing, training, judging and measuring are
elsewhere, and which model a stage starts from is `lineage.py`'s.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any

from cascade_core import evaluate, lock, pairs, provision, rows, waiting
from cascade_core.errors import RunChanged, ScoringError, TrainerError
from cascade_core.events import Events
from cascade_core.folder import (
    START,
    StageFolder,
    check_checkpoint,
    disk_errors,
    file_hash,
    fingerprint,
    load_json,
    locked,
    model_fingerprint,
    need_space,
)
from cascade_core.judge import Judge
from cascade_core.lineage import Lineage
from cascade_core.measurement import SAMPLING, measured
from cascade_core.prepare import Prepared, prepare
from cascade_core.prompts import draw
from cascade_core.scoring import Scorer
from cascade_core.settings import Spec, Stage
from cascade_core.spec import dump
from cascade_core.tracking import Tracking
from cascade_core.trainers import Job, Trainer, trainer_of
from cascade_core.warning import warned

Say = Callable[[str], None]


def run(spec: Spec, folder: Path, *, say: Say = print) -> Path:
    """Runs the whole cascade in `folder`, or goes on with it; returns the path of the report.

    Args:
        say: where one line per finished piece of work goes.

    Raises:
        CascadeError: of the kind that fits; finished work stays, and the same command goes on from it.
    """
    prepared = prepare(spec)
    with locked(folder), disk_errors(folder):
        _open(folder, prepared)
        with ExitStack() as stack:
            resources = provision.Running()
            if not all(stage.is_finished for stage in _stages(spec, folder)):
                now = [one for one in prepared.resources.values() if not waiting.stages_of(one)]
                resources = stack.enter_context(provision.running(now))
                lock.pin_started(folder / "lock.json", resources.decisive)
            try:
                return _Run(prepared, folder, stack, say, resources).all()
            except ScoringError as cause:  # too many samples could not be judged: for want of a resource?
                resources.check(cause)
                raise


def _stages(spec: Spec, folder: Path) -> list[StageFolder]:
    return [StageFolder(folder, i, name) for i, name in enumerate([START, *(s.name for s in spec.stages)])]


def _open(folder: Path, prepared: Prepared) -> None:
    """Writes `lock.json` and `spec.yaml`, or compares with what the run was begun with, where anything was made."""
    path = folder / "lock.json"
    is_begun = any(file.is_file() for file in (folder / "stages").rglob("*"))
    if path.exists() and is_begun:
        lock.compare(path, load_json(path), prepared.lock)
        return
    if is_begun:
        raise RunChanged(
            f"{folder} has stages and no lock.json: it is no run folder, or its lock was removed; name another --folder"
        )
    # Nothing was made yet: whoever mends a spec that did not get so far need not look for another folder.
    (folder / "events.jsonl").unlink(missing_ok=True)
    # Without trackers: they are no part of what is done, and may be others, or none, whenever the command is given.
    rows.write_text(folder / "spec.yaml", dump(prepared.spec, without=("trackers",)))
    rows.write_json(path, prepared.lock)


class _Run:
    """One run that is under way."""

    def __init__(
        self, prepared: Prepared, folder: Path, stack: ExitStack, say: Say, resources: provision.Running
    ) -> None:
        self.prepared, self.folder, self.stack, self.say = prepared, folder, stack, say
        self.resources, self.spec = resources, prepared.spec
        self.scorer = self._scorer()
        self.events = Events(folder / "events.jsonl")
        self.stages = _stages(prepared.spec, folder)
        self.lineage = Lineage(self.spec, self.stages)
        self.held_out = evaluate.held_out([*prepared.exams, *prepared.pair_exams])

    def _scorer(self) -> Scorer:
        return self.stack.enter_context(Scorer(self.prepared.refs, self.spec.scoring, self.resources.addresses))

    def all(self) -> Path:
        self._rewind()
        self.events.emit_once("run_start", "", name=self.spec.name)
        if self.resources.facts:
            self.events.emit_once("resources", "", **self.resources.facts)
        tracking = Tracking(self.prepared.trackers, self.spec, self.folder, self.say)
        with tracking.told(self.events):
            return self._all(tracking)

    def _all(self, tracking: Tracking) -> Path:
        from cascade_core import report

        for index, stage in enumerate(self.stages):
            if stage.is_finished:
                self.say(f"{stage.id}: finished before")
                continue
            self._stage(index, stage)
            report.write(self.folder)
            tracking.tell()
        self.events.emit_once("run_end", "")
        return report.write(self.folder)

    def _rewind(self) -> None:
        """Forgets the events of work that is going to be done again, or whose end a kill kept from being written down."""
        finished = [stage.id for stage in takewhile(lambda stage: stage.is_finished, self.stages)]
        under_way = next(iter(self.stages[len(finished) :]), None)
        done = self._steps_done(len(finished), under_way) if under_way else 0

        def is_kept(event: Mapping[str, Any]) -> bool:
            kind, stage = event["kind"], event["stage"]
            if under_way is None or stage in finished:
                return True
            if stage != under_way.id:
                return not stage and kind in ("run_start", "resources")
            if kind == "step":
                return bool(event["step"] < done)
            return bool(kind in ("stage_start", "data") or (kind == "checkpoint" and event["step"] <= done))

        self.events.rewind(is_kept)

    def _steps_done(self, index: int, stage: StageFolder) -> int:
        if index == 0:
            return 0
        setting = self.spec.stages[index - 1]
        return setting.steps if stage.checkpoint.exists() else self._trainer(setting).resume_step(stage.path)

    def _trainer(self, stage: Stage) -> Trainer:
        return trainer_of(self.prepared.trainers[stage.name], self.spec.engine)

    def _stage(self, index: int, stage: StageFolder) -> None:
        setting = self.spec.stages[index - 1] if index else None
        seconds: dict[str, float] = {}
        self._provide(index - 1, stage)
        self.resources.check()
        stage.path.mkdir(parents=True, exist_ok=True)
        self.events.emit_once("stage_start", stage.id, stage_kind=setting.kind if setting else START, index=index)
        if setting is None:
            model = self.lineage.start()
        else:
            seconds["data_seconds"] = self._data(stage, setting)
            seconds["train_seconds"] = self._train(index, stage, setting)
            model = stage.checkpoint
        benchmarks, seconds["eval_seconds"] = self._evaluate(index, stage, model)
        self._warn(index, stage, benchmarks)
        for made_on_the_way in ("trainer", SAMPLING):
            shutil.rmtree(stage.path / made_on_the_way, ignore_errors=True)
        self.events.emit_once("stage_end", stage.id)
        made = fingerprint(model) if model == stage.checkpoint else model_fingerprint(model)
        rows.write_json(stage.metrics, self._metrics(index, stage, setting, benchmarks, seconds, made))

    def _provide(self, done: int, stage: StageFolder) -> None:
        """Starts what is made of checkpoints up to that of stage `done`, and is not running yet; whoever judges gets its address."""
        waited = {need: waiting.last_stage(self.spec, one) for need, one in self.prepared.resources.items()}
        ready = {need: n for need, n in waited.items() if 0 < n <= done and need not in self.resources.addresses}
        for need in ready:
            one = self.prepared.resources[need]
            made = [other for other in self.stages[1 : done + 1] if other.name in waiting.stages_of(one)]
            self.say(f"{stage.id}: starting what provides {need}")
            # Of the stage that is under way the checkpoint was made just now, and nothing is recorded yet to check it by.
            folders = {other.name: other.checkpoint if other is stage else check_checkpoint(other) for other in made}
            self.resources.start(waiting.located(one, folders))
        if ready:
            self.scorer.close()
            self.scorer = self._scorer()
        for last in sorted(set(ready.values())):  # told once, in the stage that made it, also when a run goes on
            facts = {need: self.resources.facts[need] for need, n in ready.items() if n == last}
            self.events.emit_once("resources", self.stages[last].id, **facts)

    def _data(self, stage: StageFolder, setting: Stage) -> float:
        """Draws the stage's tasks, or makes sure that those on disk are the ones that were drawn."""
        begin = time.monotonic()
        if stage.record.exists() and stage.prompts.exists():
            record = load_json(stage.record)
            if file_hash(stage.prompts) != record["data"]:
                raise RunChanged(
                    f"{stage.prompts} is not what was drawn for this stage; remove {stage.path} to draw and train it again"
                )
        else:
            left_out: Counter[str] = Counter()
            drawn = draw(setting, self.prepared.domains, self._seed(setting), self.held_out, left_out)
            rows.write(stage.prompts, drawn)
            record = {
                "stage": stage.id,
                "settings": setting.model_dump(mode="json"),
                "seed": self._seed(setting),
                "flags": dict(self.prepared.lock["trainer_flags"][setting.name]),
                "data": file_hash(stage.prompts),
                **({"left_out": dict(left_out)} if left_out else {}),
            }
            rows.write_json(stage.record, record)
        told = {"left_out": sum(record["left_out"].values())} if record.get("left_out") else {}
        if told:
            why = ", ".join(f"{count} because {reason}" for reason, count in sorted(record["left_out"].items()))
            self.say(f"{stage.id}: pairs left out: {why}")
        self.events.emit_once("data", stage.id, tasks=sum(1 for _ in rows.read(stage.prompts)), **told)
        return time.monotonic() - begin

    def _seed(self, setting: Stage) -> int:
        return self.spec.seed if setting.seed is None else setting.seed

    def _train(self, index: int, stage: StageFolder, setting: Stage) -> float:
        """Trains the stage where that is left to do; the seconds that its steps took, whichever process did them."""
        if not stage.checkpoint.exists():
            model = self.lineage.before(index)
            need_space(self.folder, model)
            judge = None
            if setting.kind == "rl":
                judge = Judge(self.scorer, setting, self._seed(setting), stage.path, self.spec.scoring.max_error_rate)
            trainer = self._trainer(setting)
            done = trainer.resume_step(stage.path)
            self.say(f"{stage.id}: training, {setting.steps} steps" + (f", from step {done}" if done else ""))
            trainer.train(
                Job(
                    setting,
                    self._seed(setting),
                    stage.path,
                    model,
                    stage.checkpoint,
                    stage.prompts,
                    self.events,
                    judge,
                    self.spec.model.modes,
                )
            )
            if not stage.checkpoint.is_dir():
                raise TrainerError(f"trainer {trainer.name!r} ended without writing {stage.checkpoint}")
        numbers = (number for step in self.events.steps(stage.id) for number in step.items())
        return float(sum(value for key, value in numbers if key.endswith("_seconds")))

    def _evaluate(self, index: int, stage: StageFolder, model: Path) -> tuple[dict[str, Any], float]:
        """Measures what the stage made; a reward model first by itself, then, once it serves, the policy that it stands beside."""
        begin = time.monotonic()
        results: dict[str, Any] = {}

        def before(name: str) -> Path | None:
            files = (earlier.eval_file(name) for earlier in reversed(self.stages[:index]))
            return next((file for file in files if file.exists()), None)

        def measure(model: Path, exams: Sequence[evaluate.Exam | pairs.PairExam]) -> None:
            for name, result in measured(self.spec, stage, model, exams, self.scorer, before):
                results[name] = result
                self._say_result(stage, name, result)

        is_policy = not index or self.spec.stages[index - 1].kind != pairs.OF
        if not is_policy:
            measure(model, self.prepared.pair_exams)
        if exams := self.prepared.exams_after(index):
            self._provide(index, stage)
            measure(model if is_policy else self.lineage.policy(index), exams)
        return results, time.monotonic() - begin

    def _say_result(self, stage: StageFolder, name: str, result: Mapping[str, Any]) -> None:
        metric = result["primary"]
        value, stderr = (result["estimates"][metric][key] for key in ("value", "stderr"))
        counts = {key: result[key] for key in ("scored", "limit", "failed", "total")}
        self.events.emit("eval", stage.id, benchmark=name, metric=metric, value=value, stderr=stderr, **counts)
        moved = ""
        if change := result.get("change"):
            between = f"[{change['low']:+.3f}, {change['high']:+.3f}]"
            moved = f", {change['difference']:+.3f} {between} since the stage before"
        told = " ".join(f"{key} {count}" for key, count in counts.items())
        self.say(f"{stage.id}: {name} {metric} {value:.3f} ± {stderr:.3f}{moved} ({told})")

    def _warn(self, index: int, stage: StageFolder, benchmarks: Mapping[str, Any]) -> None:
        """Tells what domains want a person to look at."""
        steps = self.events.steps(stage.id)
        before: dict[str, Any] = {}  # not every stage measures all
        for earlier in self.stages[:index]:
            before |= earlier.read_metrics()["benchmarks"]
        for domain, line in warned(self.prepared.domains, steps, benchmarks, before):
            self.events.emit("warning", stage.id, domain=domain, text=line)
            self.say(f"{stage.id}: warning, {domain}: {line}")

    def _metrics(
        self,
        index: int,
        stage: StageFolder,
        setting: Stage | None,
        benchmarks: Mapping[str, Any],
        seconds: Mapping[str, float],
        checkpoint: str,
    ) -> dict[str, Any]:
        return {
            "stage": stage.id,
            "name": setting.name if setting else START,
            "kind": setting.kind if setting else START,
            "index": index,
            "domains": dict(setting.domains) if setting else {},
            "steps": setting.steps if setting else 0,
            "checkpoint": checkpoint,
            "benchmarks": dict(benchmarks),
            "seconds": {key: round(value, 3) for key, value in seconds.items()},
        }
