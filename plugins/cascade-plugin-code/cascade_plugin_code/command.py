"""The command `cascade code sound`: problems whose solutions fail their own tests are found before they are trained on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cascade_core.cli.resources import Resource, running
from cascade_plugin_code.formats import AUTO, FORMATS

_SHOWN = 20


def sound(
    source: Annotated[
        str, typer.Argument(help="A JSONL or Parquet file, or a hub data set: name@configuration:split.")
    ],
    out: Annotated[Path, typer.Argument(help="The JSONL file to write, in the domain's own format.")],
    format: Annotated[str, typer.Option("--format", help=f"Of the rows: {', '.join((AUTO, *FORMATS))}.")] = AUTO,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows that are no problems.")
    ] = False,
    language: Annotated[str, typer.Option("--language", help="That of problems that name none.")] = "python",
    seconds: Annotated[
        float, typer.Option("--seconds", help="CPU seconds of one run, where the problem names none.")
    ] = 10.0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Problems that are checked at once.")] = 2,
    resource: Resource = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the known solutions of all problems against their own tests, and write the problems that are sound.

    Example: [bold]cascade code sound train.parquet sound.jsonl[/bold] writes what `data: sound.jsonl` then trains on.
    """
    from cascade_sandbox import Limits
    from cascade_sandbox.client import connect

    from cascade_plugin_code import files, soundness
    from cascade_plugin_code.domain import CodeDomain

    CodeDomain(format=format, language=language, limits={"seconds": seconds})  # refuses what cannot be, by name
    problems = files.problems([source], "skip" if skip_bad_rows else "fail", format)
    with running([CodeDomain], resource) as started, connect(started.addresses["sandbox"]) as sandbox:
        limits = Limits(cpu_seconds=seconds)
        counts = soundness.write(out, soundness.checked(problems, sandbox, workers, language=language, usual=limits))
    if as_json:
        typer.echo(json.dumps({**asdict(counts), "total": counts.total}, indent=1))
        return
    for name, note in counts.unsound[:_SHOWN]:
        typer.echo(f"left out {name}: {note}")
    if len(counts.unsound) > _SHOWN:
        typer.echo(f"left out {len(counts.unsound) - _SHOWN} more")
    typer.echo(
        f"{counts.total} problems: {counts.sound} sound, {counts.unknown} without a known solution, "
        f"{len(counts.unsound)} left out"
    )


def app() -> typer.Typer:
    """The app, with its one command under its name."""
    made = typer.Typer(
        name="code",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Problems whose answer is a program.",
    )
    made.callback()(lambda: None)
    made.command("sound")(sound)
    return made
