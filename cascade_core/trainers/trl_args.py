"""A stage's neutral settings as TRL's own flags, and the flags that a spec passes through (`trainer_args`).

Flags keep TRL's names. Those that the settings of a stage already decide, or that would change what a stage means, are
refused with what to set instead; all others pass, their names and types checked against the source of the installed
TRL and transformers. That source is parsed, never imported: planning a run loads no torch.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cascade_core.errors import SpecError
from cascade_core.nearest import hint
from cascade_core.settings import Soft, Stage

_CONFIGS = {
    "sft": "trainer/sft_config.py",
    "rl": "trainer/grpo_config.py",
    "reward_model": "trainer/reward_config.py",
}
_NAMES = {"sft": "SFTConfig", "rl": "GRPOConfig", "reward_model": "RewardConfig"}
_CLASSES = ("TrainingArguments", "_BaseConfig", *_NAMES.values())

# What a stage's settings decide; the value says what to set instead.
_DECIDED = {
    "learning_rate": "optim.lr",
    "adam_beta1": "optim.betas",
    "adam_beta2": "optim.betas",
    "weight_decay": "optim.weight_decay",
    "max_grad_norm": "optim.max_grad_norm",
    "warmup_steps": "optim.warmup_steps",
    "warmup_ratio": "optim.warmup_steps",
    "lr_scheduler_type": "optim.schedule",
    "lr_scheduler_kwargs": "optim.decay_steps",
    "max_steps": "steps",
    "num_train_epochs": "steps",
    "seed": "seed",
    "data_seed": "seed",
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "micro_batch",
    "auto_find_batch_size": "micro_batch",
    "generation_batch_size": "rollout.prompts_per_step",
    "num_generations": "rollout.samples_per_prompt",
    "max_completion_length": "rollout.max_response_tokens",
    "temperature": "rollout.temperature",
    "top_p": "rollout.top_p",
    "top_k": "rollout.top_k",
    "beta": "kl",
    "loss_type": "loss",
    "entropy_coef": "entropy",
    "mask_truncated_completions": "overlong",
    "scale_rewards": "advantage.std",
}
# What would change the meaning of a stage, or works on what this trainer does itself; the value says why.
_REFUSED = {
    "output_dir": "the stage's folder is the run's",
    "num_iterations": "a stage is strictly on-policy, one update per rollout batch",
    "steps_per_generation": "a stage is strictly on-policy, one update per rollout batch",
    "importance_sampling_level": "a stage is strictly on-policy, its ratio is 1",
    "off_policy_mask_threshold": "a stage is strictly on-policy, its ratio is 1",
    "top_entropy_quantile": "it would change the loss",
    "use_adaptive_entropy": "it would change the loss",
    "label_smoothing_factor": "it would change the loss",
    "neftune_noise_alpha": "it would change the loss",
    "center_rewards_coefficient": "it would change the loss",
    "reward_weights": "rewards become advantages in the judge",
    "multi_objective_aggregation": "rewards become advantages in the judge",
    "disable_dropout": "a stage trains without dropout",
    "shuffle_dataset": "rows are taken in the order of prompts.jsonl",
    "train_sampling_strategy": "rows are taken in the order of prompts.jsonl",
    "dataloader_drop_last": "rows are taken in the order of prompts.jsonl",
    "ignore_data_skip": "rows are taken in the order of prompts.jsonl",
    "packing": "a step is batch_size demonstrations",
    "max_length": "what does not fit the model's context is refused, never cut",
    "completion_only_loss": "the loss is on the response",
    "assistant_only_loss": "the loss is on the response",
    "chat_template_path": "prompts are rendered by the model's own template",
    "chat_template_kwargs": "prompts are rendered by the model's own template",
    "eos_token": "the tokenizer's own end token is used",
    "pad_token": "the tokenizer's own padding token is used",
    "generation_kwargs": "sampling is what rollout says",
    "repetition_penalty": "sampling is what rollout says",
    "min_p": "sampling is what rollout says",
    "cache_implementation": "sampling is what rollout says",
    "fp16": "its scaler skips updates, and every batch is one update; use bf16",
    "trust_remote_code": "nothing from a model's folder is executed",
    "remove_unused_columns": "the judge needs whole rows",
    "resume_from_checkpoint": "the run resumes by itself",
    "restore_callback_states_from_checkpoint": "the run resumes by itself",
    "load_best_model_at_end": "a stage hands on its last step",
    "disable_tqdm": "the run reports by itself",
    "report_to": "the run reports by itself",
    "run_name": "the run reports by itself",
    "log_level": "the run reports by itself",
    "deepspeed": "this trainer is one process on one device",
    "fsdp": "this trainer is one process on one device",
    "fsdp_config": "this trainer is one process on one device",
    "parallelism_config": "this trainer is one process on one device",
    "push_to_hub": "a run uploads nothing",
}
_REFUSED_FAMILIES = {
    "save_": "checkpoints are set by save_every",
    "logging_": "the run reports by itself",
    "log_completions": "every rollout is stored by the run",
    "eval_": "the run evaluates by itself",
    "do_": "the run evaluates by itself",
    "hub_": "a run uploads nothing",
}


def native(stage: Stage) -> dict[str, Any]:
    """The flags of TRL's `GRPOConfig` (rl), `SFTConfig` (sft) or `RewardConfig` (reward_model) that the stage is trained with.

    Raises:
        SpecError: a setting or flag that this trainer cannot honour.
    """
    _check_stage(stage)
    flags = {**_common(stage), **{"rl": _rl, "sft": _sft, "reward_model": _pairs}[stage.kind](stage)}
    _check_flags(stage)
    return {**flags, **stage.trainer_args}


def _check_stage(stage: Stage) -> None:
    where, optim, rollout = f"stage {stage.name!r}", stage.optim, stage.rollout
    if stage.entropy > 0:
        raise SpecError(f"{where}: trainer 'trl' supports no entropy bonus, found entropy {stage.entropy}; set it to 0")
    if optim.decay_steps and optim.schedule != "linear":
        raise SpecError(f"{where}: optim.decay_steps needs schedule linear, found {optim.schedule}")
    if optim.decay_steps and optim.warmup_steps + optim.decay_steps > stage.steps:
        raise SpecError(f"{where}: warmup_steps and decay_steps exceed the stage's {stage.steps} steps")
    if stage.kind == "rl" and rollout.temperature == 0:
        raise SpecError(f"{where}: rollout.temperature must be above 0, without chance all samples of a task are equal")
    if isinstance(stage.overlong, Soft) and stage.overlong.soft.buffer > rollout.max_response_tokens:
        raise SpecError(f"{where}: overlong.soft.buffer exceeds rollout.max_response_tokens")
    if stage.micro_batch and _responses(stage) % stage.micro_batch:
        raise SpecError(
            f"{where}: micro_batch {stage.micro_batch} must divide the {_responses(stage)} responses of a step"
        )


def _responses(stage: Stage) -> int:
    """Responses that one update is made of."""
    rollout = stage.rollout
    return rollout.prompts_per_step * rollout.samples_per_prompt if stage.kind == "rl" else stage.batch_size


def _common(stage: Stage) -> dict[str, Any]:
    optim = stage.optim
    micro = stage.micro_batch or _responses(stage)
    constant = "constant_with_warmup" if optim.warmup_steps else "constant"
    return {
        "learning_rate": optim.lr,
        "adam_beta1": optim.betas[0],
        "adam_beta2": optim.betas[1],
        "weight_decay": optim.weight_decay,
        "max_grad_norm": optim.max_grad_norm,
        "warmup_steps": optim.warmup_steps,
        "lr_scheduler_type": constant if optim.schedule == "constant" else optim.schedule,
        "lr_scheduler_kwargs": {"decay_steps": optim.decay_steps} if optim.decay_steps else {},
        "max_steps": stage.steps,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": _responses(stage) // micro,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
    }


def _rl(stage: Stage) -> dict[str, Any]:
    rollout = stage.rollout
    return {
        "shuffle_dataset": False,
        "num_generations": rollout.samples_per_prompt,
        "max_completion_length": rollout.max_response_tokens,
        "temperature": rollout.temperature,
        "top_p": rollout.top_p,
        "top_k": rollout.top_k,
        "steps_per_generation": _responses(stage) // (stage.micro_batch or _responses(stage)),
        "num_iterations": 1,
        "beta": stage.kl,
        # TRL's default adds the gradient of the ratio to the KL term; GRPO's own (arXiv 2402.03300, equation 4) has none.
        "use_bias_correction_kl": False,
        # The denominators of all three losses are in the token weights (trl_rl.py), so TRL has only to add up.
        "loss_type": "dapo",
        "scale_rewards": "none",
        "mask_truncated_completions": False,
        "disable_dropout": True,
    }


def _sft(stage: Stage) -> dict[str, Any]:
    if stage.loss != "token":
        raise SpecError(f"stage {stage.name!r}: sft knows only loss token, found {stage.loss}")
    kept: dict[str, Any] = {"shuffle_dataset": False, "train_sampling_strategy": "sequential", "max_length": None}
    return {**kept, "packing": False, "loss_type": "nll"}


def _pairs(stage: Stage) -> dict[str, Any]:
    return {"train_sampling_strategy": "sequential", "max_length": None, "disable_dropout": True}


def _check_flags(stage: Stage) -> None:
    known = fields(stage.kind)
    for flag, value in stage.trainer_args.items():
        where = f"stage {stage.name!r}: trainer_args.{flag}"
        if flag in _DECIDED and flag in known:
            raise SpecError(f"{where} is decided by the stage; set {_DECIDED[flag]} instead")
        reason = _REFUSED.get(flag) or next(
            (why for head, why in _REFUSED_FAMILIES.items() if flag.startswith(head)), ""
        )
        if reason and flag in known:
            raise SpecError(f"{where} cannot be set: {reason}")
        if flag not in known:
            raise SpecError(f"{where} is no flag of the installed TRL's {_NAMES[stage.kind]}{hint(flag, known)}")
        if not _fits(value, known[flag]):
            raise SpecError(f"{where} must be of type {known[flag]}, found {value!r}")


@functools.cache
def fields(kind: str) -> Mapping[str, str]:
    """The flags of the installed TRL for that kind of stage, with their types as written there.

    Raises:
        SpecError: TRL or transformers is not installed.
    """
    sources = [_package("transformers") / "training_args.py", _package("trl") / "trainer/base_config.py"]
    found: dict[str, str] = {}
    for source in [*sources, _package("trl") / _CONFIGS[kind]]:
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in _CLASSES:
                found |= {
                    item.target.id: ast.unparse(item.annotation)
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }
    return found


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SpecError(f"trainer 'trl' needs {name}, which is not installed; try: pip install 'cascade-rl[trl]'")
    return Path(spec.submodule_search_locations[0])


def _fits(value: Any, annotation: str) -> bool:
    """Whether a JSON value can be of the annotated type; names that are no plain type are enumerations of words."""
    names = set(re.findall(r"\w+", annotation))
    plain = {"int", "float", "str", "bool", "dict", "list", "None"}
    accepted: dict[type, set[str]] = {
        bool: {"bool"},
        int: {"int", "float"},
        float: {"float"},
        dict: {"dict"},
        list: {"list"},
    }
    if value is None:
        return "None" in names or "Optional" in names
    if isinstance(value, str):
        return "str" in names or bool(names - plain)
    return bool(accepted.get(type(value), set()) & names)
