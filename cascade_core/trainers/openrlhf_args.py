"""A stage as OpenRLHF's command line: neutral settings become its flags, `trainer_args` are laid over the defaults.

`native` gives the flags that follow from the spec alone, `command` the whole command for a stage whose files have places. In rl
OpenRLHF gets no task: its data set is `rollout.prompts_per_step` slots, read through once per step (`train.num_episodes` =
steps), and the agent puts the tasks of the step into them, with `rollout.top_k`, for which there is no flag. Its own
estimators, penalties, KL in the reward and filters are off: the agent hands over finished advantages, from which `dr_grpo`
takes a mean that is 0. Nothing is started here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_core.errors import SpecError
from cascade_core.pretrained import context
from cascade_core.settings import Optim, Stage
from cascade_core.trainers import openrlhf_rules as rules
from cascade_core.trainers.openrlhf_parser import PROGRAMS, Known, flags
from cascade_core.trainers.openrlhf_sizes import Cluster, Share, placement, rollout_micro, share

SPARE = 3
"""OpenRLHF's `train_sft` leaves a demonstration out, in silence, whose prompt comes within so many tokens of `data.max_len`."""
PROMPT_TOKENS = 2048
"""Room for a prompt beside the response, where neither `data.max_len` nor the model's context says less or more."""

# Advantages are clamped to this range by OpenRLHF after its estimator; its default of 10 would cut some.
_UNCLAMPED = [-1e6, 1e6]


@dataclass(frozen=True)
class Places:
    """The files of one stage: `data` are its slots (rl), demonstrations (sft) or pairs (reward_model), `output` is written at the end."""

    model: Path
    data: Path
    checkpoints: Path
    output: Path
    board: Path
    agent: Path

    @staticmethod
    def of(folder: Path, model: Path, output: Path, agent: Path | None = None) -> Places:
        """The places in a stage's folder; the agent is this installation's, unless another is named."""
        inside = folder / "trainer"
        agent = agent or Path(__file__).with_name("openrlhf_agent.py")
        return Places(model, inside / "data.jsonl", inside / "checkpoints", output, inside / "board", agent)


def native(stage: Stage, cluster: Cluster, known: Known | None = None) -> dict[str, Any]:
    """The flags that follow from the spec: what `cascade plan` shows and the lock pins.

    Raises:
        SpecError: a setting that OpenRLHF has no word for, a flag that cannot be set, sizes that do not fit.
    """
    known = known or flags(stage.kind)
    rules.check(stage, known)
    _check(stage, known)
    each = share(stage, cluster)
    if stage.kind == "rl":
        made = _rl(stage, cluster, each, known)
    else:
        made = {**_one_pass(stage, each), **(_SFT if stage.kind == "sft" else _PAIRS)}
    return {**made, **stage.trainer_args}


def command(
    stage: Stage,
    seed: int,
    cluster: Cluster,
    places: Places,
    *,
    longest: int | None = None,
    resume: bool = False,
    known: Known | None = None,
    python: str = "python",
    adapt: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> list[str]:
    """The whole command of a stage.

    Args:
        longest: the model's context in tokens; by default what its `config.json` says.
        resume: go on from the newest checkpoint in `places.checkpoints`; without one OpenRLHF would start anew in silence.
        python: the interpreter that has OpenRLHF.
        adapt: what is done to the finished flags, for a machine that cannot have some of them.

    Raises:
        SpecError: as `native`; responses that do not fit the model's context; a path that OpenRLHF would split.
    """
    if set(str(places.data)) & set(",@"):
        raise SpecError(f"{places.data}: OpenRLHF splits paths at ',' and '@'; name another --folder")
    known = known or flags(stage.kind)
    made = {**native(stage, cluster, known), **_located(stage, seed, places, resume)}
    if stage.kind == "rl":
        made["train.agent_func_path"] = places.agent
    made["data.max_len"] = room(stage, longest or context(places.model))
    made = dict(adapt(made)) if adapt else made
    program = f"openrlhf.cli.{PROGRAMS[stage.kind]}"
    if stage.kind == "rl":
        start = [python, "-m", program]
    else:
        # Not DeepSpeed's own launcher: that one takes a fixed port, and other machines from a file in /job.
        start = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={cluster.gpus_per_node}"]
        start += ["--module", program]
    return [*_submit(stage, cluster), *start, *rules.words(made, known)]


def _submit(stage: Stage, cluster: Cluster) -> list[str]:
    """The words before a command that an existing Ray runs; other kinds have no actors, so that their job takes the GPUs."""
    if not cluster.address:
        return []
    gpus = ["--entrypoint-num-gpus", str(cluster.gpus_per_node)] if stage.kind != "rl" else []
    return ["ray", "job", "submit", "--address", cluster.address, *gpus, "--"]


def submitted(words: Sequence[str]) -> list[str]:
    """What a cluster runs of a command: all of it, without the words that submit it."""
    return list(words[words.index("--") + 1 :] if list(words[:3]) == ["ray", "job", "submit"] else words)


def program_seed(seed: int) -> int:
    """A stage's seed as `train.seed`: several parts of OpenRLHF add their rank to it and want 32 bits."""
    return seed % 2**31


def room(stage: Stage, longest: int | None) -> int:
    """`data.max_len`: tokens of a prompt and its response together.

    Raises:
        SpecError: the response alone fills it.
    """
    where, response = f"stage {stage.name!r}", stage.rollout.max_response_tokens if stage.kind == "rl" else 0
    wanted = stage.trainer_args.get("data.max_len")
    if longest is not None and (wanted or response + 1) > longest:
        what = f"trainer_args.data.max_len {wanted}" if wanted else f"rollout.max_response_tokens {response}"
        raise SpecError(f"{where}: {what} and a prompt exceed the model's context of {longest} tokens")
    if wanted is not None and wanted <= response:
        raise SpecError(
            f"{where}: trainer_args.data.max_len {wanted} leaves no room for a prompt beside"
            f" rollout.max_response_tokens {response}"
        )
    if wanted is not None:
        return int(wanted)
    if stage.kind != "rl":  # padded to the longest of a batch, so that a large number costs nothing
        return (longest or PROMPT_TOKENS) + SPARE
    return min(response + PROMPT_TOKENS, longest) if longest else response + PROMPT_TOKENS


def measured(places: Places) -> Path:
    """The pairs that `train_rm` measures after its last update: it fails where there are none."""
    return places.data.with_name("measured.jsonl")


def _check(stage: Stage, known: Known) -> None:
    where, optim = f"stage {stage.name!r}", stage.optim
    if optim.decay_steps not in (0, stage.steps - optim.warmup_steps):
        raise SpecError(
            f"{where}: optim.decay_steps must be 0 or all {stage.steps - optim.warmup_steps} steps after warm-up for trainer"
            f" 'openrlhf', found {optim.decay_steps}"
        )
    if stage.kind != "rl":
        return
    if stage.loss == "token-group":
        raise SpecError(f"{where}: loss must be token or sequence for trainer 'openrlhf', found token-group")
    if stage.loss == "sequence" and "actor.loss_agg_mode" not in known.flags:
        raise SpecError(f"{where}: loss sequence needs OpenRLHF 0.11.2, and this is {known.version}; set token")
    if stage.loss == "sequence" and stage.overlong == "mask":
        raise SpecError(
            f"{where}: loss sequence with overlong mask would shrink the gradient by the share of masked responses;"
            " set loss token, or overlong zero"
        )


def _located(stage: Stage, seed: int, places: Places, resume: bool) -> dict[str, Any]:
    model = "actor.model_name_or_path" if stage.kind == "rl" else "model.model_name_or_path"
    data = "data.prompt_dataset" if stage.kind == "rl" else "data.dataset"
    more = {"eval.dataset": measured(places)} if stage.kind == "reward_model" else {}
    return {
        model: places.model,
        data: places.data,
        "train.seed": program_seed(seed),
        "ckpt.path": places.checkpoints,
        "ckpt.output_dir": places.output,
        "ckpt.load_enable": resume,
        "logger.tensorboard_dir": places.board,
        "logger.wandb.run_name": "stage",  # TensorBoard's folder, otherwise called by the clock
        **more,
    }


def _optim(stage: Stage, prefix: str) -> dict[str, Any]:
    """AdamW and its schedule; under a warm-up of w OpenRLHF's first update has rate 0, the k-th (k-1)/w."""
    optim: Optim = stage.optim
    constant = "constant_with_warmup" if optim.warmup_steps else "constant"
    # OpenRLHF rounds steps × ratio up: half a step less gives the same whole number whatever the rounding of the product.
    ratio = (optim.warmup_steps - 0.5) / stage.steps if optim.warmup_steps else 0.0
    found = {
        "optim": "adam",
        "adam.lr": optim.lr,
        "adam.betas": list(optim.betas),
        "adam.weight_decay": optim.weight_decay,
        "lr_scheduler": constant if optim.schedule == "constant" else optim.schedule,
        "lr_warmup_ratio": ratio,
        "max_norm": optim.max_grad_norm,
    }
    return {f"{prefix}{key}": value for key, value in found.items()}


def _common(stage: Stage) -> dict[str, Any]:
    return {
        "ckpt.save_steps": stage.save_every or -1,
        "ckpt.max_num": 2,
        "ds.param_dtype": "bf16",
        "logger.logging_steps": 1,
    }


_SFT = {
    "data.input_key": "prompt",
    "data.output_key": "response",
    "data.input_template": "",  # rendered already; the default would put "User:" before it
}
_PAIRS = {
    "data.chosen_key": "chosen",  # whole texts: there is no key of a prompt
    "data.rejected_key": "rejected",
    "model.loss_type": "sigmoid",
    "model.compute_fp32_loss_enable": True,
    "ds.value_head_prefix": "score",  # as transformers calls it
}


def _one_pass(stage: Stage, each: Share) -> dict[str, Any]:
    """A stage that takes rows of a file, once through."""
    return {
        "train.batch_size": stage.batch_size,
        "train.micro_batch_size": each.micro,
        "train.max_epochs": 1,
        **_optim(stage, ""),
        "model.gradient_checkpointing_enable": True,
        "data.max_samples": stage.steps * stage.batch_size,  # whose default would cut a long stage
        **_common(stage),
    }


def _rl(stage: Stage, cluster: Cluster, each: Share, known: Known) -> dict[str, Any]:
    rollout = stage.rollout
    responses = rollout.prompts_per_step * rollout.samples_per_prompt
    is_async = stage.trainer_args.get("train.async_enable") is True
    return {
        **placement(stage, cluster),
        # Training and sampling take turns on the same GPUs: each leaves their memory to the other.
        "vllm.enable_sleep": not is_async,
        "ds.enable_sleep": not is_async,
        "vllm.gpu_memory_utilization": 0.9 if is_async else 0.6,
        "rollout.batch_size": rollout.prompts_per_step,
        "rollout.n_samples_per_prompt": rollout.samples_per_prompt,
        "rollout.micro_batch_size": rollout_micro(stage, each),
        "rollout.temperature": rollout.temperature,
        "rollout.top_p": rollout.top_p,
        "rollout.max_new_tokens": rollout.max_response_tokens,
        "train.batch_size": responses,
        "train.micro_batch_size": each.micro,
        "train.num_episodes": stage.steps,
        "train.max_epochs": 1,
        **_optim(stage, "actor."),
        **_objective(stage, known),
        "actor.gradient_checkpointing_enable": True,
        "data.input_key": "prompt",
        "data.label_key": "label",
        "ckpt.best_metric_key": "none",
        **_common(stage),
    }


def _objective(stage: Stage, known: Known) -> dict[str, Any]:
    """The loss: finished advantages, the KL term and the entropy as neutral settings mean them."""
    made: dict[str, Any] = {
        "algo.advantage.estimator": "dr_grpo",
        "algo.advantage.gamma": 1.0,
        "reward.clip_range": _UNCLAMPED,
        "algo.kl.init_coef": stage.kl,
        **_correction(stage, known),
    }
    if stage.kl:  # GRPO's own term (arXiv 2402.03300, equation 4): k3, in the loss, without a gradient of the ratio
        made |= {"algo.kl.use_loss": True, "algo.kl.estimator": "k3"}
    if "actor.loss_agg_mode" in known.flags:  # 0.11.1 knows the mean over tokens only
        made["actor.loss_agg_mode"] = "token-mean" if stage.loss == "token" else "seq-mean-token-mean"
    return made | ({"actor.entropy_coef": stage.entropy} if stage.entropy else {})


def _correction(stage: Stage, known: Known) -> dict[str, Any]:
    """Truncated importance sampling between the engines' and the trainer's probabilities; it also makes OpenRLHF log `vllm_kl`.

    A spec that sets one of its flags gets OpenRLHF's own defaults for the others: not every combination is allowed.
    """
    head = "algo.advantage.is_correction_"
    is_new = f"{head}level" in known.flags
    made: dict[str, Any] = {f"{head}level": "token"} if is_new else {f"{head}enable": True}
    if any(flag.startswith(head) for flag in stage.trainer_args):
        return made
    made |= {f"{head}mode": "clip"} if is_new else {f"{head}type": "tis"}
    return {**made, f"{head}threshold": [0.0, 2.0]}
