"""`evaluation:`, what is measured after every stage, and who samples for it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from cascade_core.settings.sampling import Sampling
from cascade_core.settings.scalars import Positive, Seed
from cascade_core.strict import Settings


class Evaluation(Settings):
    """What is measured of the starting model and after every stage."""

    sampling: Sampling = Field(Sampling(), description="where a benchmark does not say its own")
    benchmarks: list[str] | None = Field(
        None, description="names `domain/benchmark`; default: all of every domain in the spec"
    )
    limit: Positive | None = Field(None, description="at most so many tasks per benchmark")
    samples: Positive | None = Field(None, description="responses per task; default: the benchmark's own")
    sampler: Literal["transformers", "vllm"] | None = Field(
        None,
        description="who samples: transformers in the run's own process, or vLLM in one of its own, with the interpreter of engine.python; default: vllm where a stage's trainer is openrlhf, else transformers",
    )
    batch_size: Positive = Field(256, description="transformers only: responses sampled at once")
    tensor_parallel_size: Positive | None = Field(
        None,
        description="vllm only: GPUs that the model is spread over; default: as many as in the stages' own engines",
    )
    vllm_args: dict[str, Any] = Field(
        {}, description="vllm only: vLLM's own engine arguments, passed through under its own names"
    )
    seed: Seed = Field(
        0, description="sampling seed; apart from the run's, so that stages and runs meet the same draws"
    )
