"""Samples with vLLM, in a process of its own, in the environment that has it (`engine.python`): the GPUs are free afterwards.

`sampler.py` is what evaluation sees, `session.py` the process and how it is talked to, `launch.py` where it runs, `program.py` what runs in
it, `reasons.py` why it ended, `arguments.py` what vLLM's own arguments may be. Prompts, templates, end tokens and decoding are those of `sampling.py`: only the tokens between come from vLLM.
This module says whether a spec wants it, and how; it loads nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cascade_core.settings import Engine, Spec

OURS: Mapping[str, str] = {
    "model": "every stage's own is measured",
    "tokenizer": "it is the model's own",
    "tensor_parallel_size": "set evaluation.tensor_parallel_size instead",
    "distributed_executor_backend": "it follows from evaluation.tensor_parallel_size and engine.ray",
    "data_parallel_size": "one copy of the model samples",
    "generation_config": "nothing is taken from the model's own preferences; set evaluation.sampling instead",
    "skip_tokenizer_init": "tokens go in and come out",
    "trust_remote_code": "nothing from a model's folder is executed",
    "disable_log_stats": "nobody reads them",
    "seed": "every response has a seed of its own; set evaluation.seed instead",
}
"""Arguments of vLLM that `evaluation.vllm_args` may not set, and why: they follow from the spec, or would change what is sampled from."""

FREE = (
    "gpu_memory_utilization",
    "enforce_eager",
    "max_num_seqs",
    "max_num_batched_tokens",
    "cpu_offload_gb",
    "disable_custom_all_reduce",
    "block_size",
    "load_format",
)
"""Those that may change under a run: how much fits at once, and how fast; rounding apart, not what is sampled."""


@dataclass(frozen=True)
class Vllm:
    """Where vLLM is, and how it is started.

    Attributes:
        python: the interpreter of the environment that has it.
        tensor_parallel_size: GPUs that one copy of the model is spread over.
        ray: whether they are those of the Ray cluster that this machine belongs to.
        arguments: more of vLLM's own.
        stall_seconds: it is ended when nothing comes of it for so long, loading the model included.
        cluster: the engine whose Ray runs it where this machine has too few GPUs; `None` where it always runs here.
    """

    python: str = sys.executable
    tensor_parallel_size: int = 1
    ray: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    stall_seconds: float = 3600.0
    cluster: Engine | None = None


def chosen(spec: Spec) -> Vllm | None:
    """How a spec's evaluation samples with vLLM; `None` where it does not.

    It does where it says so, and where it says nothing and a stage is OpenRLHF's, whose environment has vLLM. One sampler
    measures the whole run, whatever trains the single stages: they are compared with each other.
    """
    settings, engine = spec.evaluation, spec.engine
    if (settings.sampler or default(spec)) != "vllm":
        return None
    wide = 1 if engine.cpu else settings.tensor_parallel_size or _widest(spec)
    return Vllm(
        python=str(Path(engine.python).expanduser()) if engine.python else sys.executable,
        tensor_parallel_size=wide,
        ray=wide > engine.gpus,
        arguments=settings.vllm_args,
        stall_seconds=engine.stall_seconds,
        cluster=cluster(engine, wide),
    )


def cluster(engine: Engine, wide: int) -> Engine | None:
    """The engine, where one machine of its Ray is to have so many GPUs; `None` without a Ray, and for a model that is spread over several."""
    return engine if engine.ray is not None and not engine.cpu and wide <= engine.gpus else None


def default(spec: Spec) -> str:
    """The sampler of a spec that names none."""
    trained = {stage.trainer or spec.trainer for stage in spec.stages}
    return "vllm" if "openrlhf" in trained else "transformers"


def pinned(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of vLLM's arguments that change what is sampled."""
    return {name: value for name, value in arguments.items() if name not in FREE}


def _widest(spec: Spec) -> int:
    """What the stages' own engines are spread over: a model that needs two GPUs there needs them here."""
    found = [stage.trainer_args.get("vllm.tensor_parallel_size") for stage in spec.stages]
    return max([spec.engine.tensor_parallel_size, *(width for width in found if isinstance(width, int))])
