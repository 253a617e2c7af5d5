"""What can be seen of a spec without training anything: all its mistakes together, each with what mends it.

Asked are the plugins (as `cascade plan` asks them), every stage's trainer for the machine that the spec names, the data (loaded, and the
first prompts of each stage counted in tokens of the model's own tokenizer), the environment for secrets, and the place that the
run is going to have. One mistake hides no other: what a mistake keeps from being looked at is left out, all else is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cascade_core import evaluate, pairs, prompts, provision
from cascade_core.composition import measured, named
from cascade_core.domain import Domain
from cascade_core.errors import CascadeError, PluginError, SpecError
from cascade_core.plugins import Registry
from cascade_core.prepare import has_reward_model
from cascade_core.rehearsal.findings import Mistake
from cascade_core.rows import Row
from cascade_core.secret import secrets
from cascade_core.settings import Evaluation, Spec, Stage
from cascade_core.spec import check as ask
from cascade_core.trainers import trainer_of

LOOKED = 1000
"""Rows of each stage, in the order of training, that are drawn and counted in tokens."""


@dataclass
class Looked:
    """What was found: the domains that could be built, rows of each stage, benchmarks, and all mistakes so far."""

    spec: Spec
    found: Registry
    domains: dict[str, Domain] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    exams: list[evaluate.Exam] = field(default_factory=list)
    pair_exams: list[pairs.PairExam] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, phase: str, cause: object, before: str = "") -> None:
        """One mistake, with `before` before it, or one a line, unless it was told already."""
        lines = str(cause).splitlines() if isinstance(cause, SpecError) else [" ".join(str(cause).split())]
        for line in lines:
            if not any(_bare(line) in known.what for known in self.mistakes):
                self.mistakes.append(Mistake(phase, before + line))

    @property
    def held_out(self) -> frozenset[str]:
        """Prompts that are measured, and so not trained on."""
        return evaluate.held_out([*self.exams, *self.pair_exams])

    def seed(self, stage: Stage) -> int:
        """The seed of a stage."""
        return self.spec.seed if stage.seed is None else stage.seed


def look(spec: Spec, path: Path | None, settings: Iterable[str], found: Registry, place: Path) -> Looked:
    """Everything but the model.

    Args:
        path: the spec file, so that mistakes name its lines; `settings` as after `--set`.
        place: the folder that the run is going to have; it is looked at and left alone.
    """
    seen = Looked(spec, found)
    try:
        seen.domains = ask(spec, path, settings, found)
    except (SpecError, PluginError) as cause:
        seen.add("spec", cause)
        seen.domains = dict(_built(spec, found))
    for stage in spec.stages:
        for refusal in _refused(spec, stage, found):
            seen.add("spec", refusal)
    for lack in _secrets(seen):
        seen.add("place", lack)
    _data(seen)
    if why := unwritable(place):
        seen.add("place", why)
    return seen


def _bare(line: str) -> str:
    """A trainer's refusal without the stage that it begins with, as the spec's own check tells it."""
    return line.partition(": ")[2] if line.startswith("stage ") else line


def _built(spec: Spec, found: Registry) -> Iterator[tuple[str, Domain]]:
    """The domains that can be built, where another cannot."""
    for name, options in named(spec).items():
        with suppress(CascadeError):
            yield name, found.build(found.reference(name, options))


def _refused(spec: Spec, stage: Stage, found: Registry) -> Iterator[SpecError]:
    """Everything that the trainer refuses of a stage on the spec's own machine: a flag that was refused is left out, and it is asked again."""
    try:
        trainer = found.trainer(stage.trainer or spec.trainer)
    except PluginError:
        return
    if stage.kind not in trainer.kinds:
        return
    while True:
        try:
            trainer_of(trainer, spec.engine).settings(stage)
            return
        except SpecError as cause:
            yield cause
            named = [flag for flag in stage.trainer_args if f"trainer_args.{flag}" in str(cause)]
            if not named:
                return
            left = {flag: value for flag, value in stage.trainer_args.items() if flag != max(named, key=len)}
            stage = stage.model_copy(update={"trainer_args": left})


def _secrets(seen: Looked) -> Iterator[str]:
    """Secrets of domains, resources and trackers that are not where the spec says."""
    owners: list[tuple[str, Any]] = [(f"domain {name!r}", domain) for name, domain in seen.domains.items()]
    for name, options in seen.spec.trackers.items():
        with suppress(CascadeError):
            owners.append((f"tracker {name!r}", seen.found.build_tracker(name, options)))
    with suppress(CascadeError):
        for one in provision.chosen(seen.domains.values(), seen.spec.resources, seen.found).values():
            with suppress(CascadeError):
                owners += [(f"resource {one.name!r}", provision.build(one, seen.found))] if one.name else []
    for who, owner in owners:
        for secret in secrets(owner):
            try:
                secret.reveal()
            except SpecError as cause:
                what = f"export {secret.env}" if secret.env else f"write it to {secret.file}"
                yield f"{who}: {cause}; {what}, on the machine that runs the spec too"


def _data(seen: Looked) -> None:
    """Loads every benchmark, and the first rows of every stage."""
    for name in measured(seen.spec, seen.found):
        if (domain := seen.domains.get(name)) is None:
            continue
        try:
            seen.exams += evaluate.exams({name: domain}, _own(seen.spec, name, domain))
            if has_reward_model(seen.spec):
                seen.pair_exams += pairs.exams({name: domain}, _own(seen.spec, name, domain))
        except Exception as cause:  # noqa: BLE001 - a stranger's loader
            seen.add("data", _told(cause), f"domain {name!r}: its benchmarks cannot be loaded: ")
    held_out = seen.held_out
    for stage in seen.spec.stages:
        before = len(seen.mistakes)
        for name in [name for name in stage.domains if name in seen.domains]:
            part = stage.model_copy(update={"domains": {name: 1.0}})
            try:
                prompts.check(part, seen.domains, seen.seed(stage), held_out)
            except Exception as cause:  # noqa: BLE001 - a stranger's loader
                seen.add("data", _told(cause), f"domain {name!r}: its tasks to train on cannot be loaded: ")
        if len(seen.mistakes) > before or not stage.domains.keys() <= seen.domains.keys():
            continue  # what stands in the way was told
        try:
            drawn = prompts.draw(stage, seen.domains, seen.seed(stage), held_out)
            seen.rows[stage.name] = list(islice(drawn, LOOKED))
        except Exception as cause:  # noqa: BLE001 - a stranger's loader, which had a first task
            seen.add("data", _told(cause), f"stage {stage.name!r}: its tasks cannot be drawn: ")


def _own(spec: Spec, name: str, domain: Domain) -> Evaluation:
    """The spec's evaluation as far as it is of that domain: names that it does not have were refused with the spec."""
    wanted = spec.evaluation.benchmarks
    offered = {f"{name}/{benchmark.name}" for benchmark in domain.benchmarks()}
    own = None if wanted is None else [one for one in wanted if one in offered]
    return spec.evaluation.model_copy(update={"benchmarks": own})


def _told(cause: Exception) -> str:
    return str(cause) if isinstance(cause, CascadeError) else f"{type(cause).__name__}: {cause}"


def unwritable(place: Path) -> str:
    """Why a folder cannot be made, or written into; `""` if it can."""
    near = place.absolute()
    while not near.exists() and near != near.parent:
        near = near.parent
    if not near.is_dir():
        return f"{place} cannot be made: {near} is a file; name another folder with --run-folder, and with cascade run --folder"
    if not os.access(near, os.W_OK | os.X_OK):
        return (
            f"{place} cannot be written: {near} is not yours to write into; name another folder with --run-folder,"
            " and with cascade run --folder"
        )
    return ""
