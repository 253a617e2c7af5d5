"""A spec made small enough to be tried on a CPU in minutes: fewer steps, smaller batches, shorter responses, no GPU.

Everything that is made smaller, and every flag of the trainer that a CPU cannot have, is told as a `Replaced` with its reason. All
else is the spec's own: domains and their options, data, seeds, losses, flags. A rehearsal has no trackers: it is nobody's run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cascade_core.plugins import Registry
from cascade_core.rehearsal import REPLACEMENTS
from cascade_core.rehearsal.findings import Replaced
from cascade_core.rehearsal.measuring import on_cpu
from cascade_core.settings import Soft, Spec, Stage
from cascade_core.trainers import trainer_of

PROMPTS, SAMPLES, RESPONSE, BATCH, STALL = 4, 4, 32, 8, 900.0

_MINUTES = "to be tried in minutes"
_FOLLOWS, _DIVIDES = "there are fewer steps", "must divide the smaller step"
_ONE = "one process samples, one trains, in turn"
# Flags that hold no word of their own in `REPLACEMENTS`: sizes of a cluster, and what needs one.
_CLUSTER = {
    "actor.num_nodes": "one machine",
    "actor.num_gpus_per_node": "one training process",
    "vllm.num_engines": _ONE,
    "rollout.micro_batch_size": _DIVIDES,
    "ref.num_nodes": "one machine",
    "ref.num_gpus_per_node": "one process",
    "train.async_enable": _ONE,
    "train.async_queue_size": _ONE,
    "train.partial_rollout_enable": _ONE,
}
_REASONS = {**{one.flag: one.reason for one in REPLACEMENTS}, **_CLUSTER}
_TRL = ("bf16", "bf16_full_eval", "tf32", "use_vllm", "torch_compile", "use_liger_kernel")
# Which flags of a trainer cannot stay as they are; of other trainers nothing is known.
_GPU = {"openrlhf": tuple(_REASONS), "trl": _TRL}


def shrunk(spec: Spec, model: Path, python: str | None, steps: int, found: Registry) -> tuple[Spec, list[Replaced]]:
    """The spec of a rehearsal.

    Args:
        model: the tiny model.
        python: the interpreter that has OpenRLHF and vLLM, where a stage needs it or evaluation samples with it.
        steps: of each stage, at most.

    Raises:
        SpecError: a trainer refuses the smaller stage.
    """
    made = [_Smaller(stage, steps, stage.trainer or spec.trainer) for stage in spec.stages]
    data = spec.model_dump(mode="json", exclude_unset=True)
    data |= {
        "model": {"path": str(model), "modes": spec.model.modes},
        "trackers": {},
        "stages": [one.data for one in made],
    }
    data["engine"] = {"cpu": True, "stall_seconds": min(spec.engine.stall_seconds, STALL)}
    data["engine"] |= {"python": python} if python else {}
    data["scoring"], replaced = _scoring(spec)
    data["resources"], own = _on_cpu(data.get("resources", {}), ("resources",))
    data["evaluation"], measured = on_cpu(spec, python)
    small = Spec.model_validate(data)
    replaced += [*own, *measured, *(one for stage in made for one in stage.replaced)]
    for before, after in zip(spec.stages, small.stages, strict=True):
        trainer = found.trainer(before.trainer or spec.trainer)
        flags = trainer_of(trainer, spec.engine).settings(before)
        replaced += _flags(before.name, trainer.name, flags, trainer_of(trainer, small.engine).settings(after))
    return small, replaced


def _scoring(spec: Spec) -> tuple[dict[str, Any], list[Replaced]]:
    """The spec's limits, with no more processes than this machine has cores, and none elsewhere."""
    given = spec.scoring.model_dump(mode="json", exclude_unset=True)
    replaced = []
    cores = os.cpu_count() or 1
    for name, most in (("workers", cores), ("concurrency", 2 * cores)):
        before = given.get(name, 0)
        if not (isinstance(before, int) and before <= most):
            given[name] = most
            reason = f"this machine has {cores} cores" if isinstance(before, int) else "this machine judges, no cluster"
            replaced.append(Replaced("", f"scoring.{name}", before, most, reason))
    return given, replaced


def _on_cpu(options: Any, where: tuple[str, ...]) -> tuple[Any, list[Replaced]]:
    """The options of resources, with no GPU named as their `device`."""
    if not isinstance(options, Mapping):
        return options, []
    made, replaced = {}, []
    for name, value in options.items():
        inside = (*where, str(name))
        if name == "device" and isinstance(value, str) and value.startswith("cuda"):
            made[name] = "cpu"
            replaced.append(Replaced("", ".".join(inside), value, "cpu", "no GPU is used"))
            continue
        made[name], more = _on_cpu(value, inside)
        replaced += more
    return made, replaced


def _flags(stage: str, trainer: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Replaced]:
    """Flags that the trainer's own words tell differently, of those that a CPU cannot have."""
    found = []
    for flag in _GPU.get(trainer, ()):
        old, new = before.get(flag), after.get(flag)
        if old != new and not (old in (None, False) and new in (None, False)) and flag in before:
            found.append(Replaced(stage, flag, old, new, _REASONS.get(flag, "needs a GPU")))
    return found


class _Smaller:
    """One stage on its way: `data` as a spec has it, `replaced` so far."""

    def __init__(self, stage: Stage, steps: int, trainer: str) -> None:
        self.stage, self.trainer = stage, trainer
        self.data: dict[str, Any] = stage.model_dump(mode="json", exclude_unset=True)
        self.replaced: list[Replaced] = []
        self._time(min(stage.steps, steps))
        self._size()
        args = self.data.get("trainer_args", {})
        self.data["trainer_args"] = {flag: value for flag, value in args.items() if flag not in _GPU.get(trainer, ())}

    def _put(self, setting: str, before: Any, after: Any, reason: str) -> None:
        if before == after:
            return
        *outer, last = setting.split(".")
        inside = self.data
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = after
        self.replaced.append(Replaced(self.stage.name, setting, before, after, reason))

    def _time(self, steps: int) -> None:
        optim = self.stage.optim
        self._put("steps", self.stage.steps, steps, _MINUTES)
        self._put("save_every", self.stage.save_every, min(self.stage.save_every, steps), _FOLLOWS)
        warmup = min(optim.warmup_steps, steps)
        self._put("optim.warmup_steps", optim.warmup_steps, warmup, _FOLLOWS)
        is_all = optim.decay_steps == self.stage.steps - optim.warmup_steps
        decay = steps - warmup if is_all else min(optim.decay_steps, steps - warmup)
        self._put("optim.decay_steps", optim.decay_steps, decay if optim.decay_steps else 0, _FOLLOWS)

    def _size(self) -> None:
        stage, rollout = self.stage, self.stage.rollout
        if stage.kind != "rl":
            size = min(stage.batch_size, max(BATCH, len(stage.domains)))
            self._put("batch_size", stage.batch_size, size, _MINUTES)
        else:
            prompts = min(rollout.prompts_per_step, max(PROMPTS, len(stage.domains)))
            prompts += prompts % 2 if stage.mode == "half" else 0
            samples, response = min(rollout.samples_per_prompt, SAMPLES), min(rollout.max_response_tokens, RESPONSE)
            self._put("rollout.prompts_per_step", rollout.prompts_per_step, prompts, _MINUTES)
            self._put("rollout.samples_per_prompt", rollout.samples_per_prompt, samples, _MINUTES)
            self._put("rollout.max_response_tokens", rollout.max_response_tokens, response, _MINUTES)
            if isinstance(stage.overlong, Soft):
                buffer = stage.overlong.soft.buffer
                self._put(
                    "overlong.soft.buffer", buffer, min(buffer, response - 1), "must be below the shorter response"
                )
            size = prompts * samples
        if stage.micro_batch is not None:
            fits = max(each for each in range(1, size + 1) if size % each == 0 and each <= stage.micro_batch)
            self._put("micro_batch", stage.micro_batch, fits, _DIVIDES)
