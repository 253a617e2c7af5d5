"""A spec looked at from all sides before anything starts: domains built, trainers asked for their flags, benchmarks loaded.

Whatever would stop a run later is said here. Nothing is written, and no model is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_core import composition, evaluate, lock, pairs, prompts, provision, waiting
from cascade_core.conversation import converses
from cascade_core.domain import Domain, DomainRef
from cascade_core.errors import SpecError, TrainerError
from cascade_core.plugins import Registry, registry
from cascade_core.settings import Spec, Stage, is_path
from cascade_core.tracker import Tracker
from cascade_core.tracking import check_secrets
from cascade_core.trainers import Trainer, trainer_of


@dataclass(frozen=True)
class Prepared:
    """A spec that was looked at from all sides before anything starts."""

    spec: Spec
    domains: Mapping[str, Domain]
    refs: Mapping[str, DomainRef]
    trainers: Mapping[str, type[Trainer]]
    trackers: Mapping[str, Tracker]
    exams: tuple[evaluate.Exam, ...]
    pair_exams: tuple[pairs.PairExam, ...]
    lock: Mapping[str, Any]
    resources: Mapping[str, provision.Provision]

    def exams_after(self, index: int) -> Sequence[evaluate.Exam]:
        """What is measured of the policy after stage `index` (0 is the starting model): the benchmarks of all domains whose resources
        run by then; after a reward model, which leaves the policy as it was, of those alone that waited for it."""
        first = {
            name: waiting.first_measured(self.spec, domain, self.resources) for name, domain in self.domains.items()
        }
        found = ((exam, first[exam.name.partition("/")[0]]) for exam in self.exams)
        return [exam for exam, since in found if waiting.is_measured(self.spec, index, since)]


def prepare(spec: Spec, found: Registry | None = None) -> Prepared:
    """Builds the domains, asks the trainers for their flags and the trackers for their secrets, loads the benchmarks' tasks,
    and the first task of every stage.

    Raises:
        SpecError, PluginError: whatever would stop the run later is said now.
        TrainerError: a trainer does not find what it drives.
    """
    found = found or registry()
    refs = {name: found.reference(name, options) for name, options in composition.named(spec).items()}
    domains = {name: found.build(ref) for name, ref in refs.items()}
    resources = provision.chosen(domains.values(), spec.resources, found)
    trainers = {stage.name: found.trainer(stage.trainer or spec.trainer) for stage in spec.stages}
    for stage in spec.stages:
        kinds = trainers[stage.name].kinds
        if stage.kind not in kinds:
            raise SpecError(
                f"stage {stage.name!r} is of kind {stage.kind!r}, and trainer {trainers[stage.name].name!r} knows {', '.join(kinds)}"
            )
        _check_conversations(stage, trainers[stage.name], domains)
    engines = {stage.name: trainer_of(trainers[stage.name], spec.engine) for stage in spec.stages}
    flags = {stage.name: engines[stage.name].settings(stage) for stage in spec.stages}
    packages = _packages(engines)
    for _, _, why in waiting.too_early(spec, domains, resources):
        raise SpecError(why)
    trackers = {name: found.build_tracker(name, options) for name, options in spec.trackers.items()}
    check_secrets(trackers)
    own = {name: domains[name] for name in composition.measured(spec, found)}
    exams = tuple(evaluate.exams(own, spec.evaluation))
    of_pairs = tuple(pairs.exams(own, spec.evaluation)) if has_reward_model(spec) else ()
    held_out = evaluate.held_out([*exams, *of_pairs])
    for stage in spec.stages:
        prompts.check(stage, domains, spec.seed if stage.seed is None else stage.seed, held_out)
    pinned = lock.lock(spec, found, flags, [*exams, *of_pairs], resources.values(), packages)
    return Prepared(spec, domains, refs, trainers, trackers, exams, of_pairs, pinned, resources)


def has_reward_model(spec: Spec) -> bool:
    """Whether a stage trains a reward model, so that pairs are measured."""
    return any(stage.kind == "reward_model" for stage in spec.stages)


def _packages(trainers: Mapping[str, Trainer]) -> dict[str, str]:
    """The versions of what trainers drive in environments of their own.

    Raises:
        TrainerError: one of them lacks something.
    """
    found: dict[str, str] = {}
    for name, trainer in {trainer.name: trainer for trainer in trainers.values()}.items():
        if lacking := trainer.lacks():
            raise TrainerError(f"trainer {name!r}: {lacking}")
        found |= trainer.packages()
    return found


def _check_conversations(stage: Stage, trainer: type[Trainer], domains: Mapping[str, Domain]) -> None:
    """A single turn of a conversation would be trained as if it were all of it."""
    held = [name for name in stage.domains if name in domains and converses(domains[name])]
    if stage.kind == "rl" and held and not trainer.converses:
        raise SpecError(
            f"stage {stage.name!r}: domain {held[0]!r} holds conversations (Domain.reply), and trainer {trainer.name!r} samples one"
            " turn; trainer openrlhf leads conversations"
        )


def local_model(name: str) -> Path:
    """A model folder: the path itself, or a hub name's copy in the hub's cache.

    Raises:
        SpecError: it is neither; says what was tried.
    """
    path = Path(name)
    if path.is_dir():
        return path
    if is_path(name):
        raise SpecError(
            f"model {name!r} is no folder that exists; give a Hugging Face folder or a hub name like owner/model"
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name))
    except (OSError, ValueError) as cause:
        raise SpecError(
            f"model {name!r} is neither a local folder nor could it be had from the hub: {str(cause).splitlines()[0]}"
        ) from cause
