"""`cascade compare`: what changed between two evaluations, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cascade_core.cli.output import Json, console, print_json, table


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="A", help="An output of cascade eval, a stage of a run, or a file of judged rows.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B", help="The same.")],
    json: Json = False,
) -> None:
    """Compare two evaluations on the tasks that both judged: paired differences B - A, with 95 % intervals.

    Example: [bold]cascade compare runs/quickstart/stages/01-sft runs/quickstart/stages/03-math[/bold]
    """
    from cascade_core.comparison import compare as pair

    found = pair(before, after)
    for warning in found.warnings:
        typer.echo(f"cascade: {warning}", err=True)
    if json:
        differences = {one.benchmark: one.json() for one in found.differences}
        print_json({"a": str(before), "b": str(after), "benchmarks": differences, "warnings": list(found.warnings)})
        return
    rows = table(f"{before} → {after}", "benchmark", ">A", ">B", ">B - A", ">95 % interval", ">tasks")
    for one in found.differences:
        change = one.change
        interval = f"{change.low:+.3f} … {change.high:+.3f}"
        rows.add_row(
            one.benchmark,
            f"{one.before:.3f}",
            f"{one.after:.3f}",
            f"{change.difference:+.3f}",
            interval,
            str(change.n),
        )
    console().print(rows)
