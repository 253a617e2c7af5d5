"""`cascade run`: does what a spec says, or goes on with it."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from cascade_core import signals
from cascade_core.cli.output import Json, Set, print_json


def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")],
    folder: Annotated[
        Path | None, typer.Option("--folder", "-f", help="Where the run lives; default: runs/<name of the spec>.")
    ] = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Run every stage of a spec, each from the checkpoint of the one before, and measure every domain after each.

    Finished work is never done again: after an interruption the same command goes on where it stopped.

    Example: [bold]cascade run spec.yaml --folder runs/seed2 --set seed=2 --set stages.math.steps=40[/bold]
    """
    from cascade_core.spec import check, load

    loaded = load(spec, set_ or ())
    check(loaded, spec, set_ or ())
    where = folder or Path("runs") / loaded.name
    try:
        from cascade_core.run import run as start

        report = start(loaded, where, say=lambda line: typer.echo(line, err=json))
    except (KeyboardInterrupt, signals.Ended) as cause:
        typer.echo(f"cascade: interrupted; the same command goes on from what {where} holds", err=True)
        raise typer.Exit(signals.status(cause)) from None
    if json:
        print_json({"folder": str(where), "report": str(report), "stages": _metrics(where)})
    else:
        from rich.console import Console

        from cascade_core.report.console import matrix

        Console().print(matrix(where))
        typer.echo(f"report: {report}")


def _metrics(folder: Path) -> list[object]:
    return [json_module.loads(path.read_text("utf-8")) for path in sorted(folder.glob("stages/*/metrics.json"))]
