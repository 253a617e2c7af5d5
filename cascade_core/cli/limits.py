"""How many processes judge, and the limits of one verdict, as options of a command with the defaults of a run.

`settings.Scoring` says what they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from cascade_core.settings import Scoring

Workers = Annotated[int, typer.Option("--workers", min=0, help="Processes that judge; 0 means one per core.")]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", min=0, help="Further ones, for domains that wait (io); 0 means twice the workers."),
]

CPU_SECONDS, WALL_SECONDS, MEMORY_MIB = 10.0, None, 1024

CpuSeconds = Annotated[
    float, typer.Option("--cpu-seconds", help="CPU time of one verdict; past it the response is wrong (limit).")
]
WallSeconds = Annotated[
    float | None,
    typer.Option(
        "--wall-seconds",
        help="Backstop per verdict; past it the sample could not be judged.  \\[default: 120; 600 for domains that wait (io)]",
        show_default=False,
    ),
]
MemoryMib = Annotated[
    int, typer.Option("--memory-mib", help="Memory of one verdict beyond the worker's own; past it: limit.")
]


def limits(
    cpu_seconds: float, wall_seconds: float | None, memory_mib: int, *, workers: int = 1, concurrency: int = 0
) -> Scoring:
    """The settings of a scorer.

    Raises:
        UsageError: a value that cannot be; names its option.
    """
    from pydantic import ValidationError

    from cascade_core.refusals import sentence
    from cascade_core.settings import Scoring

    try:
        wall = {} if wall_seconds is None else {"wall_seconds": wall_seconds, "io_wall_seconds": wall_seconds}
        return Scoring(workers=workers, concurrency=concurrency, cpu_seconds=cpu_seconds, memory_mib=memory_mib, **wall)
    except ValidationError as cause:
        first = cause.errors()[0]
        option = f"--{first['loc'][0]}".replace("_", "-")
        raise UsageError(f"{option} {sentence(first)}") from cause
