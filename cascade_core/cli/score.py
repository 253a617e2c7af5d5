"""`cascade score`: verdicts for responses that something else sampled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.limits import (
    CPU_SECONDS,
    MEMORY_MIB,
    WALL_SECONDS,
    Concurrency,
    CpuSeconds,
    MemoryMib,
    WallSeconds,
    Workers,
    limits,
)
from cascade_core.cli.output import Json, Option, bar, console, print_json
from cascade_core.cli.resources import Resource, provided
from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from cascade_core.tally import Summary


def score(
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="JSON lines with domain, id, prompt, answer, response.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where scored rows go; default: rows.scored.jsonl beside it.")
    ] = None,
    domain: Annotated[str, typer.Option("--domain", help="The domain of rows that name none, and of --option.")] = "",
    option: Option = None,
    resource: Resource = None,
    workers: Workers = 0,
    concurrency: Concurrency = 0,
    max_error_rate: Annotated[
        float,
        typer.Option("--max-error-rate", min=0, max=1, help="Share of a domain's rows that may fail to be judged."),
    ] = 0.02,
    cpu_seconds: CpuSeconds = CPU_SECONDS,
    wall_seconds: WallSeconds = WALL_SECONDS,
    memory_mib: MemoryMib = MEMORY_MIB,
    json: Json = False,
) -> None:
    """Judge sampled rows: write the same rows with their scores, and print a table per domain and source.

    Rows that have a score already are judged anew: give a domain other options and another output, then compare the
    two. Goes on where it was interrupted. Ends with status 1 if more rows could not be judged than allowed.

    Example: [bold]cascade score rows.jsonl -o scored.jsonl --domain math --option answer=stated[/bold]
    """
    from cascade_core.provision import judge_of, running
    from cascade_core.score_file import domains_in, output_of, references, score_file
    from cascade_core.scoring import Scorer
    from cascade_core.spec import read_options

    if not rows.is_file():
        raise UsageError(f"{rows} is no file: rows to judge are JSON lines")
    out = output or output_of(rows)
    known = references(domain, read_options(option or ()))
    settings = limits(cpu_seconds, wall_seconds, memory_mib, workers=workers, concurrency=concurrency)
    waiting = {name: judge for name, ref in known.items() if (judge := judge_of(ref)).needs}
    named = domains_in(rows, domain) if waiting else set()  # nothing is started that no row needs
    resources = provided([judge for name, judge in waiting.items() if name in named], resource)
    with (
        running(resources.values()) as started,
        Scorer(known, settings, started.addresses) as scorer,
        bar("judging", lambda: _count(rows)) as progress,
    ):
        summary = score_file(rows, out, scorer, domain=domain, progress=progress, resources=resources)
    status = summary.status(max_error_rate)
    if json:
        print_json({"output": str(out), "status": status, **summary.json()})
    else:
        _print(summary, out)
    if status:
        what = f"more of {rows} could not be judged than --max-error-rate {max_error_rate:g} allows"
        if not any(cell.scored for cell in summary.cells):
            what = f"no row of {rows} was judged" if summary.cells else f"{rows} holds no row"
        typer.echo(f"cascade: {what}", err=True)
        raise typer.Exit(status)


def _count(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


def _print(summary: Summary, out: Path) -> None:
    screen = console()
    screen.print(summary.table())
    for trouble in summary.errors:
        screen.print(f"could not be judged: {trouble.count} × {trouble.error} (first: task {trouble.task})")
    screen.print(f"scored rows: {out}", soft_wrap=True)
