"""How responses are sampled: `sampling:` of the evaluation, and `rollout:` of a stage, which samples in groups."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cascade_core.settings.scalars import NonNegative, Positive
from cascade_core.strict import Settings


class Sampling(Settings):
    """How a response is sampled. `top_k: 0` and `top_p: 1` switch the cut-offs off."""

    temperature: Annotated[float, Field(ge=0)] = Field(1.0, description="0 takes the likeliest token")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="nucleus: the likeliest tokens of this mass")
    top_k: NonNegative = Field(0, description="the k likeliest tokens; 0 for all")
    max_response_tokens: Positive = Field(
        1024, description="a response that is longer is cut, and counted as truncated"
    )


class Rollout(Sampling):
    """One rollout batch: `prompts_per_step` groups of `samples_per_prompt` responses."""

    temperature: Annotated[float, Field(gt=0)] = Field(
        1.0, description="above 0: a group of equal responses teaches nothing"
    )
    prompts_per_step: Positive = Field(128, description="groups per step")
    samples_per_prompt: Annotated[int, Field(ge=2)] = Field(8, description="responses per group")
