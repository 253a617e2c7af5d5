"""`cascade report`: the report of a run, made again from its folder, or served while the run is going on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cascade_core.cli.output import Json, print_json
from cascade_core.errors import UsageError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, finished or not.")],
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Write nothing; show the report on this machine and follow the run until Ctrl-C."),
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="With --serve: the port on 127.0.0.1; 0, the default, takes any that is free.")
    ] = None,
    json: Json = False,
) -> None:
    """Write report.html of a run: one file that opens offline.

    Example: [bold]cascade report runs/quickstart[/bold]
    """
    if not (run / "stages").is_dir():
        raise UsageError(f"{run} is no run: a run's folder holds spec.yaml, lock.json and stages")
    if port is not None and not serve:
        raise UsageError("--port is for --serve")
    if serve:
        _serve(run, port or 0, json=json)
        return
    from cascade_core.report import write

    path = write(run)
    if json:
        print_json({"report": str(path)})
    else:
        typer.echo(f"report: {path}")


def _serve(run: Path, port: int, *, json: bool) -> None:
    from cascade_core.report.serve import serve
    from cascade_core.signals import as_ctrl_c

    def say(address: str) -> None:
        if json:
            print_json({"address": address})
        else:
            typer.echo(f"following {run} at {address} (Ctrl-C or SIGTERM ends it)")

    with as_ctrl_c():
        serve(run, port, say)
    typer.echo(f"{run} is followed no longer", err=True)
