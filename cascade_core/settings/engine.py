"""`engine:`, where a trainer runs that is a program of its own: interpreter, machines, GPUs, Ray."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from cascade_core.settings.scalars import Positive
from cascade_core.strict import Settings


class Engine(Settings):
    """Where a trainer runs that is a program of its own; `trl` has no use for it."""

    python: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="interpreter of the environment that has OpenRLHF; default: the one that runs `cascade`"
    )
    nodes: Positive = Field(1, description="machines that a stage uses; more than one need `ray`")
    gpus: Positive = Field(1, description="GPUs of each machine that a stage uses; with cpu, processes in their place")
    tensor_parallel_size: Positive = Field(1, description="GPUs that one sampling engine is spread over")
    ray: str | None = Field(
        None,
        description="dashboard of a Ray cluster that runs already, such as http://head:8265; default: a Ray is started for each stage and ended with it",
    )
    host: str | None = Field(
        None,
        description="name or address of this machine by which the cluster's machines reach it; default: the one from which it reaches the cluster",
    )
    cpu: bool = Field(False, description="try everything without a GPU: slow, and for small models only")
    stall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        3600.0, description="a stage of which nothing comes for so long is ended; it takes in loading the model"
    )

    @field_validator("ray")
    @classmethod
    def _dashboard(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s/@?#]+/?", value):
            raise ValueError(f"must be the address of Ray's dashboard, such as http://head:8265, found {value[:80]!r}")
        return value.rstrip("/") if value else value

    @field_validator("host")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", value):
            raise ValueError(f"must be a machine's name or address, without a port, found {value[:80]!r}")
        return value
