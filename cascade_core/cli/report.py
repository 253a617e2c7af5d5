"""`cascade report`: the report of a run, made again from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cascade_core.cli.output import Json, print_json
from cascade_core.errors import UsageError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, finished or not.")],
    json: Json = False,
) -> None:
    """Write report.html of a run: one file that opens offline.

    Example: [bold]cascade report runs/quickstart[/bold]
    """
    if not (run / "stages").is_dir():
        raise UsageError(f"{run} is no run: a run's folder holds spec.yaml, lock.json and stages")
    from cascade_core.report import write

    path = write(run)
    if json:
        print_json({"report": str(path)})
    else:
        typer.echo(f"report: {path}")
