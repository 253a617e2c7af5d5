"""What the settings of a spec must say together: names that meet, numbers that fit, settings that belong to the stage.

Each function yields (path of keys, what is wrong); `settings.Spec` refuses a spec for which any of them yields. What
one value may be by itself is `settings/`'s; what needs the plugins (options, benchmarks, trainers) is `objections.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cascade_core.nearest import suggestion
from cascade_core.resource import STAGE, stages_in
from cascade_core.rule import CODE_SWITCH
from cascade_core.vllm_sampling import OURS, chosen

if TYPE_CHECKING:
    from cascade_core.settings import Spec, Stage

Where = tuple[str | int, ...]
Problem = tuple[Where, str]

# Settings that a stage of another kind would silently ignore: refused there, default or not.
ONLY: dict[str, tuple[str, ...]] = {
    "rl": ("rollout", "loss", "kl", "entropy", "reward", "code_switch", "overlong", "advantage", "control"),
    "sft and reward_model": ("batch_size",),
    "reward_model": ("model",),
}


def foreign(kind: str) -> set[str]:
    """The settings that belong to stages of other kinds."""
    return {key for kinds, keys in ONLY.items() if kind not in kinds.split(" and ") for key in keys}


def problems(spec: Spec) -> Iterator[Problem]:
    """Everything that does not fit together, in the order of the spec."""
    yield from _names(spec)
    for index, stage in enumerate(spec.stages):
        where = ("stages", index)
        yield from _belongs(stage, where)
        yield from _known_domains(spec, stage, where)
        yield from _optim(stage, where)
        yield from _mode(spec, stage, where)
        if stage.kind == "rl":
            yield from _lengths(spec, stage, where)
            yield from _scorers(spec, stage, where)
    yield from _resources(spec)
    yield from _engine(spec)
    yield from _evaluation(spec)
    yield from _sampler(spec)


def _names(spec: Spec) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, stage in enumerate(spec.stages):
        first = seen.setdefault(stage.name.casefold(), index)
        if first != index:
            yield (
                ("stages", index, "name"),
                f"stage {index + 1} is called {stage.name!r} like stage {first + 1}, and names must be unique",
            )


def _belongs(stage: Stage, where: Where) -> Iterator[Problem]:
    for kinds, keys in ONLY.items():
        for key in keys:
            if stage.kind not in kinds.split(" and ") and key in stage.model_fields_set:
                yield (
                    (*where, key),
                    f"{key!r} is a setting of {kinds} stages, and this stage is of kind {stage.kind!r}",
                )


def _known_domains(spec: Spec, stage: Stage, where: Where) -> Iterator[Problem]:
    for name in stage.domains:
        if name not in spec.domains:
            hint = suggestion(name, spec.domains)
            yield (*where, "domains", name), f"domain {name!r} is not among the spec's domains{hint}"


def _scorers(spec: Spec, stage: Stage, where: Where) -> Iterator[Problem]:
    if stage.reward:
        yield from (((*where, "reward", *inner), what) for inner, what in stage.reward.problems(spec.domains))
    if stage.reward and stage.code_switch and CODE_SWITCH in stage.reward.names:
        yield (*where, "code_switch"), f"judges by {CODE_SWITCH!r}, which 'reward' names too; say it in one of both"


def _mode(spec: Spec, stage: Stage, where: Where) -> Iterator[Problem]:
    if not stage.mode:
        return
    if stage.kind == "sft" and stage.mode == "half":
        what = (
            "cannot be 'half' in an sft stage, whose demonstrations were written in one mode (allowed: think, no_think)"
        )
        yield (*where, "mode"), what
    elif stage.kind not in ("rl", "sft"):
        yield (*where, "mode"), f"'mode' is a setting of rl and sft stages, and this stage is of kind {stage.kind!r}"
    prompts = stage.rollout.prompts_per_step
    if stage.kind == "rl" and stage.mode == "half" and prompts % 2:
        yield (
            (*where, "rollout", "prompts_per_step"),
            f"must be even, so that half of a step's prompts are in each mode (mode: half), found {prompts}",
        )
    if spec.model.init is not None and spec.model.modes == "switch":
        yield (
            (*where, "mode"),
            "cannot reach a model without a chat template, which one made by init is; set model.modes to flags or prefill",
        )


def _optim(stage: Stage, where: Where) -> Iterator[Problem]:
    optim = stage.optim
    if optim.warmup_steps > stage.steps:
        yield (
            (*where, "optim", "warmup_steps"),
            f"must be at most the stage's steps ({stage.steps}), found {optim.warmup_steps}",
        )
    elif optim.decay_steps and optim.schedule != "linear":
        yield (
            (*where, "optim", "decay_steps"),
            f"belongs to schedule 'linear', and the schedule is {optim.schedule!r}",
        )
    elif optim.warmup_steps + optim.decay_steps > stage.steps:
        yield (
            (*where, "optim", "decay_steps"),
            f"warm-up and decay together must be at most the stage's steps ({stage.steps}),"
            f" found {optim.warmup_steps} + {optim.decay_steps}",
        )


def _lengths(spec: Spec, stage: Stage, where: Where) -> Iterator[Problem]:
    limit = stage.rollout.max_response_tokens
    if not isinstance(stage.overlong, str) and stage.overlong.soft.buffer >= limit:
        yield (
            (*where, "overlong", "soft", "buffer"),
            f"must be below rollout.max_response_tokens ({limit}), found {stage.overlong.soft.buffer}",
        )
    yield from _context(spec, limit, (*where, "rollout", "max_response_tokens"))


def _context(spec: Spec, limit: int, where: Where) -> Iterator[Problem]:
    init = spec.model.init
    if init is not None and limit >= init.context:
        yield (
            where,
            f"must be below the model's context ({init.context}), which holds the prompt too, found {limit}",
        )


def _resources(spec: Spec) -> Iterator[Problem]:
    """`stage:NAME` in the options of a resource is a stage's checkpoint, and there must be such a stage."""
    known = [stage.name for stage in spec.stages]
    for need, choice in spec.resources.items():
        if isinstance(choice, str) and choice.startswith(STAGE):
            yield (
                ("resources", need),
                f"{choice!r} is a checkpoint, and nothing that serves it: give it to an option, such as"
                f" {{server: {{model: {choice!r}}}}}",
            )
            continue
        for where, name in stages_in(choice):
            if name not in known:
                yield ("resources", need, *where), f"no stage is called {name!r}{suggestion(name, known)}"


def _engine(spec: Spec) -> Iterator[Problem]:
    engine = spec.engine
    if engine.nodes > 1 and engine.ray is None and not engine.cpu:
        yield (
            ("engine", "nodes"),
            f"{engine.nodes} machines need engine.ray, the address of the Ray that joins them; without it one is started on this machine",
        )
    if engine.host is not None and engine.ray is None:
        yield ("engine", "host"), "belongs to engine.ray; a stage on this machine is reached at 127.0.0.1"


def _sampler(spec: Spec) -> Iterator[Problem]:
    settings = spec.evaluation
    found = chosen(spec)
    if found is None:
        for key in ("tensor_parallel_size", "vllm_args"):
            if key in settings.model_fields_set:
                yield (
                    ("evaluation", key),
                    "is a setting of the sampler vllm, and the sampler is transformers; set evaluation.sampler",
                )
        return
    for name, why in OURS.items():
        if name in settings.vllm_args:
            yield ("evaluation", "vllm_args", name), f"{name!r} cannot be set: {why}"
    gpus = spec.engine.gpus
    if found.ray and not spec.engine.ray:
        yield (
            ("evaluation", "tensor_parallel_size"),
            f"must be at most engine.gpus ({gpus}) without a Ray cluster (engine.ray), found {found.tensor_parallel_size}",
        )


def _evaluation(spec: Spec) -> Iterator[Problem]:
    sampling = spec.evaluation.sampling
    if "max_response_tokens" in sampling.model_fields_set:  # left alone, each benchmark may say its own
        yield from _context(spec, sampling.max_response_tokens, ("evaluation", "sampling", "max_response_tokens"))
    for index, name in enumerate(spec.evaluation.benchmarks or ()):
        domain, slash, benchmark = name.partition("/")
        if not (domain and slash and benchmark):
            yield ("evaluation", "benchmarks", index), f"must be 'domain/benchmark', found {name!r}"
        elif domain not in spec.domains:
            hint = suggestion(domain, spec.domains)
            yield (
                ("evaluation", "benchmarks", index),
                f"domain {domain!r} is not among the spec's domains{hint}",
            )
        elif name in (spec.evaluation.benchmarks or ())[:index]:
            yield ("evaluation", "benchmarks", index), f"benchmark {name!r} is listed twice"
