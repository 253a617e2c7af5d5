"""`scoring:`, the worker processes that judge responses: how many, where, and the limits of one verdict."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

from cascade_core.strict import Settings


class RayWorkers(Settings):
    """Judging on a Ray cluster that runs already: processes on every node."""

    address: Annotated[str, Field(min_length=1)] = Field(
        "auto",
        description="`host:port` of the cluster; auto: `RAY_ADDRESS`, or the cluster that this machine is part of",
    )
    per_node: Annotated[int, Field(ge=0, le=1024)] = Field(
        0, description="processes on every node that offers CPUs; 0 means one per CPU that it offers"
    )

    @field_validator("address")
    @classmethod
    def _joined(cls, value: str) -> str:
        if not re.fullmatch(r"auto|[^\s/@?#]+:\d{1,5}", value):
            raise ValueError(f"must be auto or where a Ray cluster is joined, such as head:6379, found {value[:80]!r}")
        return value


class OnRay(Settings):
    """`workers: ray`, or `workers: {ray: {…}}`."""

    ray: RayWorkers = Field(RayWorkers(), description="which cluster, and how many processes")


def _workers(value: Any) -> Any:
    """`ray`, and `ray:` with nothing after it, mean its defaults."""
    if value in ("ray", {"ray": None}):
        return {"ray": {}}
    if isinstance(value, str):
        raise PydanticCustomError(
            "workers", "must be a whole number or ray, found text {shown}", {"shown": repr(value)}
        )
    return value


Workers = Annotated[
    Annotated[Annotated[int, Field(ge=0, le=1024)], Tag("number")] | Annotated[OnRay, Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict | OnRay) else "number"),
    BeforeValidator(_workers, json_schema_input_type=Annotated[int, Field(ge=0, le=1024)] | Literal["ray"] | OnRay),
]


class Scoring(Settings):
    """The worker processes that judge responses."""

    workers: Workers = Field(
        0, description="processes for domains that compute; 0 means one per core; ray: on the nodes of a Ray cluster"
    )
    concurrency: Annotated[int, Field(ge=0, le=1024)] = Field(
        0,
        description="further processes for domains that wait (io): so many verdicts at once; 0 means twice the workers; on Ray of each node",
    )
    cpu_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        10.0, description="CPU time of one verdict; past it the response is wrong (limit)"
    )
    wall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        120.0, description="backstop per verdict; past it the sample could not be judged"
    )
    io_wall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        600.0, description="the same for domains that wait (io)"
    )
    memory_mib: Annotated[int, Field(gt=0, le=2**24)] = Field(
        1024, description="memory of one verdict beyond the worker's own"
    )
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        0.02, description="share of samples that may fail to be judged before the run stops"
    )
