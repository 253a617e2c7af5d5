"""What OpenRLHF says: the numbers of its steps, and why it ended, in one line with the setting to change.

Numbers of a step come twice, as a line of its output as soon as the step is done, and in its TensorBoard files, which it writes
late and completely. Reasons are told by what OpenRLHF, Ray, vLLM, DeepSpeed and NCCL print; which of several is told is said in
`causes.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cascade_core.causes import cause, last_error, was_killed

# Anchored to what the logger itself puts before its message: a response that is printed as a sample may hold anything.
_STEP = re.compile(r"^[A-Z]+ [\d-]+ [\d:]+ ppo_trainer(?:_async)?\.py:\d+\] \S* ?Global step (\d+): \{(.*)\}")
_SAMPLE = re.compile(r"^[A-Z]+ [\d-]+ [\d:]+ \w+\.py:\d+\] Sample: ")
_NUMBER = re.compile(r"'([^']+)': (?:np\.float\d+\(|tensor\()?(-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ACTOR = re.compile(r"^(?:\((?:[^()]*pid=[^()]*|raylet|autoscaler[^()]*)\)\s*)+")

NAMES = {
    "policy_loss": "loss",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "lr",
    "entropy_loss": "entropy",
    "kl": "kl",
    "vllm_kl": "vllm_kl",
    "ppo_kl": "ppo_kl",
    "timing/make_experience": "experience_seconds",
    "timing/ppo_train": "update_seconds",
    "timing/broadcast": "sync_seconds",
    "timing/generation": "generate_seconds",
}
"""OpenRLHF's numbers that become ours; the judge's are the service's own."""

HEADS = (
    "vLLM's build for CPUs refuses the model's attention heads ({found}); it wants hidden_size / heads to be 32, 64, 80, 96, 112, 128"
    " or more: change model.init.heads or model.init.hidden_size, or take another model"
)
"""Of an engine on a CPU: what vLLM 0.29.0 has kernels for (`CPUAttentionBackend.get_supported_head_sizes`)."""

REASONS = (
    (r"No module named '?openrlhf", "OpenRLHF is not installed in the environment of {python}; set engine.python"),
    (
        r"No module named '?flash_attn(?!_3)|FlashAttention2 has been toggled on, but|flash.attn.*not installed",
        "flash-attn is missing; install it beside OpenRLHF, or set engine.cpu to try the run without a GPU",
    ),
    (
        r"a prompt of \d+ tokens \(allowed: [^)]*\)",
        "a prompt is too long: {found}; raise trainer_args.data.max_len, or lower rollout.max_response_tokens",
    ),
    (
        r"Free memory on device .* less than desired|No available memory for the cache blocks|larger than the maximum number of tokens that can be stored in KV cache",
        "vLLM has too little memory; change trainer_args.vllm.gpu_memory_utilization, or lower trainer_args.data.max_len",
    ),
    (r"Unsupported CPU attention configuration: head_dim=\d+", HEADS),
    (
        r"OutOfMemoryError: CUDA|CUDA out of memory|torch\.OutOfMemoryError|CUDA error: out of memory",
        "a GPU ran out of memory; lower micro_batch, trainer_args.vllm.gpu_memory_utilization or rollout.max_response_tokens",
    ),
    (
        r"ray\.exceptions\.OutOfMemoryError|killed due to the node running low on memory|DefaultCPUAllocator: can't allocate|MemoryError",
        "the machine ran out of memory; lower rollout.prompts_per_step, micro_batch or engine.gpus",
    ),
    (
        r"(?:\bport:? ?\d+.{0,80})?(?:Address already in use|EADDRINUSE|errno: 98|Errno 98).*",
        "a port is in use: {found}; end what holds it (`ss -ltnp` names it), or set engine.ray to the Ray that runs already,"
        " and give the same command again",
    ),
    (
        r"Watchdog caught collective operation timeout|NCCL(?!_).{0,40}(?<!_)(?:time.?out|timed out)(?!_|\s*=)|ncclInternalError|ncclSystemError|ncclRemoteError",
        "NCCL failed or timed out; look for a lost GPU or network, set NCCL_DEBUG=INFO, or try trainer_args.vllm.sync_backend gloo",
    ),
    (
        r"No available node types can fulfill|cannot be scheduled right now|Insufficient resources|requested resources.{0,40}not available",
        "Ray does not find the GPUs that the stage asks for; lower engine.gpus or engine.nodes, or free them",
    ),
    (
        r"unrecognized arguments: .*|invalid choice: .*|the following arguments are required: .*",
        "this OpenRLHF does not know its command line: {found}; see trainer_args, and the versions that `cascade doctor` names",
    ),
    (
        r"No space left on device|os error 28|OutOfDiskError|Disk quota exceeded",
        "a disk is full; free some where the run's folder is and where Ray writes (/tmp/ray, or RAY_TMPDIR), or raise save_every,"
        " and give the same command again: finished work is kept",
    ),
    (r"too few GPUs: the stage asks for .*", "{found}; lower engine.nodes or engine.gpus, or wait for the machines"),
    (r"no Ray cluster can be asked at .*", "{found}"),
    (
        r"the service of the stage(?: refuses|,).*|the stage has \d+ samples per prompt.*",
        "{found}",
    ),
    (
        r"PytorchStreamReader failed [^.]*|unexpected EOF, expected [^.]*|pickle data was truncated",
        "a checkpoint is damaged ({found}); write the name of the older one beside it into `latest` of trainer/checkpoints"
        " (in _actor for rl), or remove trainer to train the stage from its beginning",
    ),
    (
        r"ImportError: cannot import name .*|ModuleNotFoundError: No module named .*|AttributeError: module '?(?:vllm|ray|deepspeed|transformers).*|VersionConflict.*",
        "the packages beside OpenRLHF do not fit it: {found}; `cascade doctor` says which versions go together",
    ),
)
_SIGKILLED = (137, -9)  # of the program, of its guard
KILLED = (
    "one of its processes died without a word, as one that the kernel ends for want of memory (`dmesg` tells it); lower"
    " rollout.prompts_per_step, micro_batch or engine.gpus if so, or give the same command again"
)
"""Where no process has said why."""
_COMPILED = [(re.compile(pattern, re.IGNORECASE), told) for pattern, told in REASONS]
_CREATION = re.compile(r"error raised in its creation task(?:, ray::(\w+))?")


def plain(line: str) -> str:
    """A line without colours and without the name of the process that Ray puts before it."""
    return _ACTOR.sub("", _COLOUR.sub("", line.rstrip()))


def is_fatal(line: str) -> bool:
    """Whether Ray says that one of the job's actors could not be made: OpenRLHF waits for it for ever."""
    return plain(line).startswith("Exception raised in creation task: ")


def step_numbers(line: str) -> tuple[int, dict[str, float]] | None:
    """Step (from 0) and numbers that a line tells, under our names; `None` where it tells none."""
    found = _STEP.match(plain(line))
    if found is None or int(found[1]) < 1:
        return None
    return int(found[1]) - 1, named({name: float(value) for name, value in _NUMBER.findall(found[2])})


def named(numbers: Mapping[str, float]) -> dict[str, float]:
    """Numbers of OpenRLHF under our names; what is no number is left out."""
    return {ours: numbers[name] for name, ours in NAMES.items() if name in numbers and math.isfinite(numbers[name])}


def board(folder: Path) -> dict[int, dict[str, float]]:
    """Numbers of all steps that the TensorBoard files under a folder hold; of a step done twice, the later ones."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: dict[int, dict[str, float]] = {}
    for inner in sorted({path.parent for path in folder.rglob("events.out.tfevents.*")}):
        events = EventAccumulator(str(inner), size_guidance={"scalars": 0}).Reload()
        for tag in events.Tags()["scalars"]:
            for event in events.Scalars(tag):
                found.setdefault(event.step - 1, {})[tag.removeprefix("train/")] = float(event.value)
    return {step: named(numbers) for step, numbers in found.items() if step >= 0}


def reason(lines: list[str], python: str, status: int = 0) -> str:
    """Why a job ended or stands still, by what it printed and the status that it ended with; `""` where nothing in it says so."""
    cleaned = [text for text in map(plain, lines) if not _SAMPLE.match(text)]
    found = cause(cleaned, python, _COMPILED, lambda firm: _unbuilt(firm) or (KILLED if was_killed(firm) else ""))
    return found or (KILLED if status in _SIGKILLED else "")


def _unbuilt(lines: Sequence[str]) -> str:
    """Which actor could not be made, and by what, wherever that stands: an engine that fails only points at its cause."""
    found = next(filter(None, map(_CREATION.search, lines)), None)
    if found is None:
        return ""
    why = last_error(lines)
    return f"OpenRLHF's {found[1] or 'actor'} could not be built" + (f": {why}" if why else "")
