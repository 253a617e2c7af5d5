"""What `trainer_args` may hold for OpenRLHF: every flag of its program but those that a stage decides or that would change it.

Flags keep OpenRLHF's names without `--`. The refusals are of three kinds: the stage's settings decide it (which one is said), it
would change what a stage means (rewards become advantages in the judge and nowhere else; a step is one update on its own
tasks), or it is the run's own business (paths, logging, evaluation). What a value may be is the program's own parser's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from cascade_core.errors import SpecError
from cascade_core.nearest import near
from cascade_core.settings import Stage
from cascade_core.trainers.openrlhf_parser import Flag, Known

_JUDGE = "rewards become advantages in the judge"
_RATIO = "a stage is strictly on-policy, its ratio is 1"
_STEP = "a step is one update on exactly its own tasks"
_RUN = "the run reports by itself"
_PATHS = "the run's folder decides it"
_ROWS = "a step's tasks come from prompts.jsonl"
_RENDERED = "prompts are rendered by the model's own template"
_WHOLE = "a stage hands on a whole model"
_PAIRWISE = "the loss is Bradley and Terry's"

_OPTIM = {
    "adam.lr": "optim.lr",
    "adam.betas": "optim.betas",
    "adam.weight_decay": "optim.weight_decay",
    "max_norm": "optim.max_grad_norm",
    "lr_scheduler": "optim.schedule",
    "lr_warmup_ratio": "optim.warmup_steps",
    "min_lr_ratio": "optim.schedule",
}
_ROWWISE = {
    **_OPTIM,
    "train.batch_size": "batch_size",
    "train.micro_batch_size": "micro_batch",
    "train.max_epochs": "steps",
    "train.seed": "seed",
    "ckpt.save_steps": "save_every",
}
# What a stage's settings decide; the value says what to set instead.
DECIDED: Mapping[str, Mapping[str, str]] = {
    "rl": {
        **{f"actor.{flag}": setting for flag, setting in _OPTIM.items()},
        "rollout.batch_size": "rollout.prompts_per_step",
        "rollout.vllm_generate_batch_size": "rollout.prompts_per_step",
        "rollout.n_samples_per_prompt": "rollout.samples_per_prompt",
        "rollout.temperature": "rollout.temperature",
        "rollout.top_p": "rollout.top_p",
        "rollout.max_new_tokens": "rollout.max_response_tokens",
        "train.batch_size": "rollout.prompts_per_step",
        "train.micro_batch_size": "micro_batch",
        "train.num_episodes": "steps",
        "train.seed": "seed",
        "actor.loss_agg_mode": "loss",
        "actor.entropy_coef": "entropy",
        "algo.kl.init_coef": "kl",
        "reward.overlong_buffer_len": "overlong",
        "reward.overlong_penalty_factor": "overlong",
        "reward.stop_properly_penalty_coef": "overlong",
        "algo.advantage.estimator": "advantage",
        "algo.advantage.no_std_norm": "advantage.std",
        "ckpt.save_steps": "save_every",
    },
    "sft": _ROWWISE,
    "reward_model": _ROWWISE,
}
# What would change the meaning of a stage, or is the run's own; by flag, then by how a flag begins.
_REFUSED = {
    "train.agent_func_path": "the agent is the run's own",
    "train.max_epochs": _STEP,
    "train.dynamic_batch_enable": "a step's loss is exact with micro-batches of one size",
    "train.max_tokens_per_gpu": "it belongs to dynamic batches, which a step does not use",
    "rollout.max_tokens_per_gpu": "it belongs to dynamic batches, which a step does not use",
    "train.enable_ema": "a stage hands on its last step",
    "train.ema_beta": "a stage hands on its last step",
    "train.colocate_all": "follows from train.async_enable",
    "train.colocate_actor_ref": "follows from train.async_enable",
    "train.colocate_critic_reward": "there is no critic and no reward model",
    "ref.num_nodes": "the reference model is where the trained one is; set actor.num_nodes",
    "ref.num_gpus_per_node": "the reference model is where the trained one is; set actor.num_gpus_per_node",
    "actor.model_name_or_path": "a stage starts from the one before",
    "model.model_name_or_path": "a stage starts from the one before",
    "model.pretrain_mode_enable": "the loss is on the response",
    "actor.optim": "the optimizer is AdamW",
    "optim": "the optimizer is AdamW",
    "actor.policy_loss_type": _RATIO,
    "actor.eps_clip": _RATIO,
    "actor.eps_clip_low_high": _RATIO,
    "actor.dual_clip": _RATIO,
    "ds.param_dtype": "fp16's scaler skips updates, and every batch is one update; it is bf16",
    "ds.load_in_4bit": _WHOLE,
    "data.disable_fast_tokenizer": "",
    "data.max_len": "",
    "local_rank": "the launcher sets it",
    "use_ms": "a stage's model is a folder",
}
# Of one kind of stage; what OpenRLHF reads of sft and reward_model is tokens already.
_REFUSED_IN: Mapping[str, Mapping[str, str]] = {
    "sft": {"data.disable_fast_tokenizer": "demonstrations are tokenized by the run"},
    "reward_model": {
        "data.disable_fast_tokenizer": "pairs are tokenized by the run",
        "model.loss_type": _PAIRWISE,
        "model.margin_loss_enable": _PAIRWISE,
        "ds.value_head_prefix": "the head is called as transformers calls it",
    },
}
_FAMILIES = {
    "critic.": "there is no critic: " + _JUDGE,
    "reward.": _JUDGE,
    "algo.advantage.is_correction_": "",
    "algo.advantage.": _JUDGE,
    "algo.kl.": "the KL term is a part of the loss whose weight is the setting kl",
    "algo.dynamic_filtering": _STEP,
    "actor.muon.": "the optimizer is AdamW",
    "muon.": "the optimizer is AdamW",
    "ds.lora.": _WHOLE,
    "data.image_key": "a task is text",
    "data.max_images": "a task is text",
    "data.apply_chat_template": _RENDERED,
    "data.tokenizer_chat_template": _RENDERED,
    "data.input_template": _RENDERED,
    "data.": _ROWS,
    "eval.": "the run evaluates by itself",
    "ckpt.": _PATHS,
    "logger.": _RUN,
}
# Numbers that have bounds, of which OpenRLHF tells when the GPUs are taken, or never; what sizes are computed from is at least 1.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(
        (
            "actor.num_nodes",
            "actor.num_gpus_per_node",
            "vllm.num_engines",
            "vllm.tensor_parallel_size",
            "ds.ring_attn_size",
            "ds.tensor_parallel_size",
            "rollout.micro_batch_size",
            "data.max_len",
            "train.async_queue_size",
        ),
        (1, math.inf),
    ),
    "ds.zero_stage": (0, 3),
    "vllm.gpu_memory_utilization": (0.01, 1),
}
# Without the correction OpenRLHF logs no `vllm_kl`, by which a weight sync that does nothing is found.
_UNSEEN = [("algo.advantage.is_correction_level", "off"), ("algo.advantage.is_correction_enable", False)]
# Names of other versions, and what does the same.
_RENAMED = {
    "algo.advantage.is_correction_enable": "algo.advantage.is_correction_level: token",
    "algo.advantage.is_correction_type": "algo.advantage.is_correction_level and algo.advantage.is_correction_mode",
    "algo.advantage.is_correction_level": "algo.advantage.is_correction_enable",
    "algo.advantage.is_correction_mode": "algo.advantage.is_correction_type",
    "colocate_all_models": "train.colocate_all",
    "micro_train_batch_size": "train.micro_batch_size",
    "micro_rollout_batch_size": "rollout.micro_batch_size",
    "train_batch_size": "train.batch_size",
    "rollout_batch_size": "rollout.batch_size",
    "learning_rate": "adam.lr",
    "actor_learning_rate": "actor.adam.lr",
    "l2": "adam.weight_decay",
    "init_kl_coef": "algo.kl.init_coef",
    "use_kl_loss": "algo.kl.use_loss",
    "n_samples_per_prompt": "rollout.n_samples_per_prompt",
    "temperature": "rollout.temperature",
    "generate_max_len": "rollout.max_new_tokens",
    "async_train": "train.async_enable",
    "enable_vllm_is_correction": "algo.advantage.is_correction_level: token",
    "vllm_is_truncated_threshold": "algo.advantage.is_correction_threshold",
    "save_path": "ckpt.output_dir",
    "save_hf_ckpt": "ckpt.save_hf",
    "load_checkpoint": "ckpt.load_enable",
    "use_wandb": "logger.wandb.key",
    "advantage_estimator": "algo.advantage.estimator",
    "remote_rm_url": "reward.remote_url",
    "agent_func_path": "train.agent_func_path",
    "attn_implementation": "ds.attn_implementation",
    "flash_attn": "ds.attn_implementation",
    "bf16": "ds.param_dtype",
    "pretrain": "actor.model_name_or_path",
    "deepspeed_enable_sleep": "ds.enable_sleep",
}


def check(stage: Stage, known: Known) -> None:
    """Refuses what `trainer_args` must not hold.

    Raises:
        SpecError: the first flag that is unknown (with the nearest name), decided elsewhere, refused, or of a wrong value.
    """
    for flag, value in stage.trainer_args.items():
        where = f"stage {stage.name!r}: trainer_args.{flag}"
        if flag not in known.flags:
            meant = f"{flag}.{next(iter(value), '')}" if isinstance(value, Mapping) else flag
            hint = nearest(meant, known, stage.kind)
            raise SpecError(f"{where} is no flag of OpenRLHF {known.version}'s {known.program}{hint}")
        setting = DECIDED[stage.kind].get(flag)
        if setting:
            raise SpecError(f"{where} is decided by the stage; set {setting} instead")
        reason = refusal(flag, stage.kind)
        if reason:
            raise SpecError(f"{where} cannot be set: {reason}")
        wrong = misfit(value, known.flags[flag])
        if wrong:
            raise SpecError(f"{where} must be {wrong}, found {value!r:.80}")
        low, high = _BOUNDS.get(flag, (-math.inf, math.inf))
        if flag in _BOUNDS and not low <= value <= high:
            bounds = f"at least {low}" if high == math.inf else f"from {low} to {high}"
            raise SpecError(f"{where} must be {bounds}, found {value}")
        if (flag, value) in _UNSEEN:
            raise SpecError(f"{where} must not be {value}: without it nothing shows whether weights reach the engines")
    args, where = stage.trainer_args, f"stage {stage.name!r}: trainer_args"
    if args.get("train.partial_rollout_enable") and not args.get("train.async_enable"):
        raise SpecError(
            f"{where}.train.partial_rollout_enable needs train.async_enable: only then is anything sampled while weights"
            " change"
        )
    if stage.kind != "rl" and args.get("ds.ring_attn_size", 1) > 1 and not args.get("ds.packing_samples"):
        raise SpecError(
            f"{where}.ds.ring_attn_size above 1 needs ds.packing_samples: true in a stage of kind {stage.kind}"
        )


def refusal(flag: str, kind: str = "rl") -> str:
    """Why a flag cannot be set in a stage of that kind, `""` where it can."""
    reason = _REFUSED_IN.get(kind, {}).get(flag, "")
    if reason or flag in _REFUSED:
        return reason or _REFUSED[flag]
    return next((why for head, why in _FAMILIES.items() if flag.startswith(head)), "")


def nearest(flag: str, known: Known, kind: str) -> str:
    """The flag under its present name, else the one that is spelled most like it: `, did you mean …` where it may be set, else why not."""
    bare = flag.lstrip("-").replace("-", "_")
    for candidate in (bare, *_same(bare, known.flags)):
        if candidate in known.flags:
            return _meant(candidate, kind)
    for renamed in (_RENAMED.get(bare, ""), f"actor.{_RENAMED.get(bare, '')}"):
        name = renamed.partition(":")[0].partition(" ")[0]
        if name in known.flags:
            return f"; OpenRLHF {known.version} calls it {renamed}{_unset(name, kind)}"
    found = near(bare, known.flags)
    return _meant(found, kind) if found else ""


def _meant(flag: str, kind: str) -> str:
    unset = _unset(flag, kind)
    return f"; {flag!r}{unset.removeprefix(', which')}" if unset else f", did you mean {flag!r}"


def _unset(flag: str, kind: str) -> str:
    """`, which …` of a flag that `trainer_args` must not hold: whoever is sent to it would be refused once more."""
    if setting := DECIDED[kind].get(flag):
        return f", which is decided by the stage: set {setting} instead"
    reason = refusal(flag, kind)
    return f", which cannot be set: {reason}" if reason else ""


def _same(bare: str, flags: Iterable[str]) -> list[str]:
    """Flags that are called so when dots are underscores, or within their group, where that is one flag alone."""
    names = list(flags)
    whole = [name for name in names if name.replace(".", "_") == bare.replace(".", "_")]
    inner = [name for name in names if name.replace(".", "_").endswith("_" + bare.replace(".", "_"))]
    return whole or (inner if len(inner) == 1 else [])


def misfit(value: Any, flag: Flag) -> str:
    """What a flag's value must be, where this is not it; `""` where it is."""
    if flag.type == "bool":
        allowed = {flag.stores, flag.default}
        words = " or ".join(str(word).lower() for word in sorted(allowed, key=str))
        return "" if isinstance(value, bool) and value in allowed else words
    if flag.nargs is None:
        return "" if _is(value, flag) else _kind(flag)
    count = f"{flag.nargs} values" if isinstance(flag.nargs, int) else "values"
    items = value if isinstance(value, list) else [None]
    is_counted = len(items) == flag.nargs if isinstance(flag.nargs, int) else flag.nargs == "*" or bool(items)
    return "" if is_counted and all(_is(item, flag) for item in items) else f"a list of {count}, each {_kind(flag)}"


def _is(value: Any, flag: Flag) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if flag.choices:
        return value in flag.choices
    if flag.type == "str":  # what begins with a hyphen would be read as the next flag
        return isinstance(value, str) and not value.startswith("-") and "\0" not in value
    return isinstance(value, int) or (flag.type == "float" and isinstance(value, float) and math.isfinite(value))


def _kind(flag: Flag) -> str:
    if flag.choices:
        return "one of " + ", ".join(flag.choices)
    return {"int": "a whole number", "float": "a number", "str": "text that does not begin with '-'"}[flag.type]


def words(flags: Mapping[str, Any], known: Known) -> list[str]:
    """Flags as words of a command line; what is `None`, or false of a flag that stands alone, is left out.

    Raises:
        SpecError: a flag that this version of OpenRLHF does not have.
    """
    made: list[str] = []
    for name, value in flags.items():
        if value is None:
            continue
        flag = known.flags.get(name)
        if flag is None:
            raise SpecError(f"OpenRLHF {known.version}'s {known.program} has no flag {name!r}")
        if flag.type == "bool":
            made += [f"--{name}"] if value is flag.stores else []
        else:
            made += [f"--{name}", *map(_word, value if isinstance(value, list | tuple) else [value])]
    return made


def _word(value: Any) -> str:
    """A value as one word. argparse takes `-1e-05` for a flag, but not `-0.00001`."""
    if isinstance(value, float) and value < 0 and "e" in repr(value):
        return format(Decimal(repr(value)), "f")
    return repr(value) if isinstance(value, float) else str(value)
