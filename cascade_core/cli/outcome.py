"""What `cascade eval` shows in the end: tables of figures and counts, or one JSON object."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.table import Table

from cascade_core.assessment import Assessment
from cascade_core.cli.output import console, print_json, table


def show(result: Assessment, folder: Path, max_error_rate: float, json: bool) -> None:
    """Prints the figures, and what failed most.

    Raises:
        typer.Exit: with status 1; of a benchmark more samples failed than allowed.
    """
    over = result.over(max_error_rate)
    if json:
        told = {"output": str(folder), "status": int(bool(over)), "benchmarks": dict(result.benchmarks)}
        print_json({**told, "failures": dict(result.failures)})
    else:
        screen = console()
        screen.print(_measures(result))
        screen.print(_counts(result))
        for cause, count in list(result.failures.items())[:5]:
            screen.print(f"{count} × {cause}", soft_wrap=True)
        screen.print(f"responses, judged rows and figures: {folder}", soft_wrap=True)
    if over:
        what = f"more of {', '.join(over)} failed than --max-error-rate {max_error_rate:g} allows"
        typer.echo(f"cascade: {what}; the same command tries failed requests again", err=True)
        raise typer.Exit(1)


def _measures(result: Assessment) -> Table:
    made = table("Measures", "benchmark", "measure", ">value ± error", ">tasks")
    for name, found in result.benchmarks.items():
        for number, (measure, one) in enumerate(found["estimates"].items()):
            value = f"{one['value']:.3f} ± {one['stderr']:.3f}"
            made.add_row("" if number else name, measure, value, str(one["n"]))
        if not found["estimates"]:
            made.add_row(name, "none", "none", "0")
    return made


def _counts(result: Assessment) -> Table:
    kinds = ("scored", "limit", "failed", "total", "truncated")
    names = (">scored", ">limit", ">failed", ">total", ">cut", ">tokens in", ">tokens out")
    made = table("Responses", "benchmark", *names)
    for name, found in result.benchmarks.items():
        usage = found["usage"]
        more = "+" if usage["unreported"] else ""  # some responses came without a count
        tokens = [f"{usage[kind]}{more}" for kind in ("prompt", "completion")]
        made.add_row(name, *(str(found[kind]) for kind in kinds), *tokens)
    return made
