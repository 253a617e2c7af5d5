"""What a run would do, counted before it is done: stages, tasks drawn, responses, trainer flags, benchmarks.

`plan` asks the domains and trainers what `run` will ask them, and trains, samples and writes nothing. Tasks are loaded
only when `tasks=True`: then the first prompt of each domain is shown and the tasks of each benchmark are counted, up to
`MOST_COUNTED`. This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cascade_core import pairs, waiting
from cascade_core.composition import measured, named, told
from cascade_core.consistency import foreign
from cascade_core.domain import Benchmark, Domain, Task
from cascade_core.errors import CascadeError, PluginBroken, SpecError
from cascade_core.folder import START, StageFolder
from cascade_core.nearest import hint
from cascade_core.plugins import Registry, registry
from cascade_core.pretrained import context
from cascade_core.prompts import check, step_size
from cascade_core.provision import chosen
from cascade_core.settings import Evaluation, Sampling, Spec, Stage
from cascade_core.sources import SUFFIXES
from cascade_core.trainers import Trainer, trainer_of
from cascade_core.vllm_sampling import gpus

# Counting an endless benchmark stops here, and the plan says "at least".
MOST_COUNTED = 10_000


@dataclass(frozen=True)
class DomainPlan:
    """A domain of the spec: who provides it, with which options; `example` is its first prompt, where asked for."""

    name: str
    distribution: str
    version: str
    options: Mapping[str, Any]
    example: str | None


@dataclass(frozen=True)
class ResourcePlan:
    """What will run beside the domains that need it: a class by its `name`, started with the run or, where it is made of a checkpoint,
    `after` the stage in that folder; or an `address`, found running."""

    need: str
    name: str
    distribution: str
    version: str
    options: Mapping[str, Any]
    address: str
    domains: tuple[str, ...]
    after: str = ""


@dataclass(frozen=True)
class StagePlan:
    """One stage: `tasks` are drawn for it in all, `responses` sampled from them; `settings` are the spec's, `flags` the trainer's own.

    `start` is what it starts from: the folder of the stage whose checkpoint it is, a model's folder or hub name, or `model.init`.
    `command` is what a trainer starts that is a program of its own, in the folder that `cascade run` takes by default.
    """

    folder: str
    name: str
    kind: str
    domains: Mapping[str, float]
    steps: int
    tasks: int
    responses: int
    seed: int
    trainer: str
    settings: Mapping[str, Any]
    flags: Mapping[str, Any]
    command: tuple[str, ...] = ()
    composition: str = ""
    start: str = ""


@dataclass(frozen=True)
class BenchmarkPlan:
    """One benchmark: `tasks` (pairs, where it is `of` a reward model) is `None` where they were not counted and nothing limits
    them; `times` is how often it is measured."""

    name: str
    split: str
    tasks: int | None
    is_counted: bool
    samples: int
    sampling: Mapping[str, Any]
    mode: str
    of: str = "policy"
    times: int = 0


@dataclass(frozen=True)
class TrackerPlan:
    """A tracker of the spec: who provides it, with which options; of a secret, where it will be looked up."""

    name: str
    distribution: str
    version: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """A whole run; `evaluations` is how often policies are measured, `sampled` where vLLM samples then, beside a cluster that trains,
    `lacking` what it cannot run without and is not here."""

    name: str
    seed: int
    model: Mapping[str, Any]
    domains: tuple[DomainPlan, ...]
    stages: tuple[StagePlan, ...]
    benchmarks: tuple[BenchmarkPlan, ...]
    scoring: Mapping[str, Any]
    evaluations: int
    resources: tuple[ResourcePlan, ...] = ()
    trackers: tuple[TrackerPlan, ...] = ()
    lacking: tuple[str, ...] = ()
    sampled: str = ""

    @property
    def totals(self) -> dict[str, int | None]:
        """Steps, tasks and responses of all stages, and responses of all evaluations (`None` where unknown)."""
        asked = [one for one in self.benchmarks if one.of == "policy"]
        each = [one.tasks * one.samples * one.times if one.tasks is not None else None for one in asked]
        known = [count for count in each if count is not None]
        return {
            "steps": sum(stage.steps for stage in self.stages),
            "tasks": sum(stage.tasks for stage in self.stages),
            "responses": sum(stage.responses for stage in self.stages),
            "evaluated": sum(known) if len(known) == len(each) else None,
        }

    def json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {**asdict(self), "totals": self.totals}


def plan(spec: Spec, domains: Mapping[str, Domain], found: Registry | None = None, *, tasks: bool = False) -> Plan:
    """What `spec` would do.

    Args:
        domains: as built by `spec.check`.
        tasks: load tasks, for the first prompt of each domain and the count of each benchmark.

    Raises:
        SpecError, PluginError: a trainer that is not there or refuses a stage, a domain that cannot load its tasks or (with
            `tasks`) has none.
    """
    found = found or registry()
    made = Plan(
        name=spec.name,
        seed=spec.seed,
        model=spec.model.model_dump(mode="json", exclude_none=True),
        domains=tuple(
            _domain(name, said, spec.seed, domains[name], found, tasks) for name, said in named(spec).items()
        ),
        stages=tuple(_stage(index, stage, spec, domains, found) for index, stage in enumerate(spec.stages, 1)),
        benchmarks=tuple(
            _benchmark(name, benchmark, domains[name], spec.evaluation, tasks, times)
            for name, after in _measured(spec, domains, found).items()
            for benchmark in domains[name].benchmarks()
            if (times := after.get(benchmark.of, 0)) and _is_wanted(f"{name}/{benchmark.name}", spec.evaluation)
        ),
        scoring=spec.scoring.model_dump(mode="json"),
        evaluations=1 + sum(stage.kind != pairs.OF for stage in spec.stages),
        resources=_resources(spec, domains, found),
        trackers=tuple(_tracker(name, options, found) for name, options in spec.trackers.items()),
        lacking=_lacking(spec, found),
        sampled=gpus.place(spec),
    )
    if tasks:
        _check_tasks(made, spec, domains)
    return made


def _measured(spec: Spec, domains: Mapping[str, Domain], found: Registry) -> dict[str, dict[str, int]]:
    """For each domain that is measured, how often its benchmarks of policies are, and those of reward models."""
    provisions = chosen(domains.values(), spec.resources, found)
    kinds = ["start", *(stage.kind for stage in spec.stages)]
    made: dict[str, dict[str, int]] = {}
    for name in measured(spec, found):
        first = waiting.first_measured(spec, domains[name], provisions)
        times = sum(waiting.is_measured(spec, index, first) for index in range(len(kinds)))
        made[name] = {"policy": times, pairs.OF: kinds.count(pairs.OF)}
    return made


def _check_tasks(made: Plan, spec: Spec, domains: Mapping[str, Domain]) -> None:
    """Nothing to measure with, or nothing to train on, would stop the run."""
    for benchmark in made.benchmarks:
        if not benchmark.tasks:
            raise SpecError(f"benchmark {benchmark.name!r} has no {'pairs' if benchmark.of == pairs.OF else 'tasks'}")
    for stage, planned in zip(spec.stages, made.stages, strict=True):
        check(stage, domains, planned.seed, frozenset())


def _resources(spec: Spec, domains: Mapping[str, Domain], found: Registry) -> tuple[ResourcePlan, ...]:
    return tuple(
        ResourcePlan(
            need=need,
            name=one.name,
            distribution=one.distribution,
            version=one.version,
            options=dict(one.options),
            address=one.address,
            domains=tuple(name for name, domain in domains.items() if need in domain.needs),
            after=_folder(spec, waiting.last_stage(spec, one)),
        )
        for need, one in chosen(domains.values(), spec.resources, found).items()
    )


def _lacking(spec: Spec, found: Registry) -> tuple[str, ...]:
    trainers = [trainer_of(found.trainer(stage.trainer or spec.trainer), spec.engine) for stage in spec.stages]
    told = [*(trainer.lacks() for trainer in trainers), gpus.lacking(spec), *_absent(spec)]
    return tuple(dict.fromkeys(filter(None, told)))


def _absent(spec: Spec) -> Iterator[str]:
    """Files and folders of the spec that are not here: the run may be meant for another machine."""
    path = Path(spec.model.path or ".")
    if not path.is_dir() and path.parent != Path() and path.parent.is_dir():
        near = hint(path.name, [one.name for one in path.parent.iterdir() if one.is_dir()])
        yield f"model.path: no folder is at '{path}'{near}; it is taken as a name on the hub"
    for name, said in named(spec).items():
        for option, value in said.items():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and one.endswith(SUFFIXES) and not Path(one).is_file():
                    yield f"domains.{name}.{option}: no file is at {one!r}"


def _tracker(name: str, options: Mapping[str, Any], found: Registry) -> TrackerPlan:
    _, plugin = found.find("tracker", name)
    return TrackerPlan(name, plugin.distribution, plugin.version, dict(options))


def _is_wanted(name: str, settings: Evaluation) -> bool:
    return settings.benchmarks is None or name in settings.benchmarks


def _domain(name: str, said: Mapping[str, Any], seed: int, domain: Domain, found: Registry, tasks: bool) -> DomainPlan:
    ref = found.reference(name, said)
    example = None
    if tasks:
        first = next(iter(_tasks(name, domain, "train", seed, 1)), None)
        example = first.question if first else ""
    return DomainPlan(name, ref.distribution, ref.version, dict(ref.options), example)


def _stage(index: int, stage: Stage, spec: Spec, domains: Mapping[str, Domain], found: Registry) -> StagePlan:
    trainer = found.trainer(stage.trainer or spec.trainer)
    drawn = stage.steps * step_size(stage)
    engine = trainer_of(trainer, spec.engine)
    return StagePlan(
        folder=_folder(spec, index),
        name=stage.name,
        kind=stage.kind,
        domains=dict(stage.domains),
        steps=stage.steps,
        tasks=drawn,
        responses=drawn * stage.rollout.samples_per_prompt if stage.kind == "rl" else 0,
        seed=spec.seed if stage.seed is None else stage.seed,
        trainer=trainer.name,
        settings=_settings(stage),
        flags=dict(engine.settings(stage)),
        command=_command(index, stage, spec, engine),
        composition=told(stage, domains),
        start=stage.model or _folder(spec, waiting.policy_before(spec, index)) or spec.model.path or "model.init",
    )


def _folder(spec: Spec, index: int) -> str:
    """The name of a stage's folder; `""` of the start."""
    return f"{index:02d}-{spec.stages[index - 1].name}" if index else ""


def _command(index: int, stage: Stage, spec: Spec, trainer: Trainer) -> tuple[str, ...]:
    """What the trainer would start for the stage, in the folder that `cascade run` takes by default."""
    run = Path("runs") / spec.name
    last = waiting.policy_before(spec, index)
    before = StageFolder(run, last, spec.stages[last - 1].name if last else START)
    here, model = StageFolder(run, index, stage.name), before.checkpoint
    longest = spec.model.init.context if spec.model.init else None
    if spec.model.path:  # every stage has the context of the first
        first = Path(spec.model.path)
        model, longest = (model if last else first), context(first)
    if stage.model:
        model = Path(stage.model)
        longest = context(model)
    seed = spec.seed if stage.seed is None else stage.seed
    return tuple(trainer.command(stage, seed, here.path, model, here.checkpoint, longest))


def _settings(stage: Stage) -> dict[str, Any]:
    """What the spec says of the stage, defaults included, without what has a place of its own in the plan."""
    elsewhere = {"name", "kind", "domains", "steps", "seed", "trainer", "trainer_args", "reward", "code_switch"}
    return stage.model_dump(mode="json", exclude=elsewhere | foreign(stage.kind))


def _benchmark(
    name: str, benchmark: Benchmark, domain: Domain, settings: Evaluation, tasks: bool, times: int
) -> BenchmarkPlan:
    is_pairs = benchmark.of == pairs.OF
    limits = [limit for limit in (benchmark.limit, settings.limit) if limit is not None]
    count = min(limits, default=None)
    if tasks:
        count = len(_tasks(name, domain, benchmark.split, 0, min([*limits, MOST_COUNTED]), benchmark.of))
    sampling = Sampling.model_validate({**settings.sampling.model_dump(), **benchmark.sampling})
    return BenchmarkPlan(
        name=f"{name}/{benchmark.name}",
        split=benchmark.split,
        tasks=count,
        is_counted=tasks,
        samples=1 if is_pairs else settings.samples or benchmark.samples,
        sampling={} if is_pairs else sampling.model_dump(mode="json"),
        mode=benchmark.mode,
        of=benchmark.of,
        times=times,
    )


def _tasks(name: str, domain: Domain, split: str, seed: int, most: int, of: str = "policy") -> list[Task]:
    """The first tasks of a split; of a reward model, those of its pairs.

    Raises:
        PluginBroken: the domain cannot load them; says why.
    """
    try:
        if of == pairs.OF:
            return [pair.task for pair in islice(domain.pairs(split, seed), most)]
        found: Iterable[Task] = domain.tasks(split, seed)
        return list(islice(found, most))
    except CascadeError:
        raise
    except Exception as cause:
        what = f"{type(cause).__name__}: {cause}"
        raise PluginBroken(f"domain {name!r} cannot load the tasks of its split {split!r}: {what}") from cause
