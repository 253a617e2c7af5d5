"""`cascade rehearse`: finds the mistakes of a spec before the cluster is booked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.output import Json, Set, bar, foreign, print_json
from cascade_core.signals import as_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable

    from cascade_core.rehearsal.findings import Rehearsal


def rehearse(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="[SPEC]", help="The spec, a YAML file; not needed with --install.", show_default=False),
    ] = None,
    set_: Set = None,
    quick: Annotated[bool, typer.Option("--quick", help="Try no stage: seconds, and OpenRLHF is not needed.")] = False,
    install: Annotated[
        bool,
        typer.Option("--install", help="First make the environment of OpenRLHF, unless it is there: minutes, 3 GB."),
    ] = False,
    python: Annotated[
        Path | None,
        typer.Option("--python", metavar="PATH", help="The interpreter of another environment with OpenRLHF."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", "-f", help="A new folder for the files; default: a temporary one.")
    ] = None,
    run_folder: Annotated[
        Path | None,
        typer.Option("--run-folder", help="Where the run is going to live; looked at alone; default: runs/<name>."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, max=1000, help="Steps of each stage, at most.")] = 2,
    tasks: Annotated[
        int, typer.Option("--tasks", min=1, help="Tasks of each domain whose references are judged.")
    ] = 64,
    json: Json = False,
) -> None:
    """Try a whole spec on this machine's CPU, small: a tiny model with its tokenizer, a few steps of every stage, the real trainers.

    All mistakes are told together, each with what mends it; ends with status 1 if there is any. The run's folder is not touched.

    Example: [bold]cascade rehearse spec.yaml[/bold]
    """
    from cascade_core.errors import UsageError

    def say(line: str) -> None:
        typer.echo(foreign(line).plain, err=json)

    if spec is None and not install:
        raise UsageError("name a spec to rehearse, or give --install")
    begin = time.monotonic()
    try:
        if install:
            _install(say)
        if spec is None:
            return
        with as_ctrl_c():
            result = _rehearse(spec, set_ or [], quick, python, folder, run_folder, steps, tasks, say)
    except KeyboardInterrupt:
        typer.echo("cascade: interrupted; nothing of the rehearsal is left running", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(result.json())
    else:
        _print(result, quick, time.monotonic() - begin, say)
    if result.status:
        count = len(result.mistakes)
        what = "1 mistake; mend it" if count == 1 else f"{count} mistakes; mend them"
        typer.echo(f"cascade: {what} and give the same command again", err=True)
        raise typer.Exit(1)


def _install(say: Callable[[str], None]) -> None:
    from cascade_core import rehearsal

    where = rehearsal.place()
    if not rehearsal.is_installed(where):
        say(f"installing OpenRLHF for a CPU in {where}: minutes, 3 GB")
    say(f"OpenRLHF for a CPU: {rehearsal.install(where)}")


def _rehearse(
    spec: Path,
    settings: list[str],
    quick: bool,
    python: Path | None,
    folder: Path | None,
    run_folder: Path | None,
    steps: int,
    tasks: int,
    say: Callable[[str], None],
) -> Rehearsal:
    from cascade_core.rehearsal.rehearse import Plan
    from cascade_core.rehearsal.rehearse import rehearse as start
    from cascade_core.spec import load

    loaded = load(spec, settings)
    plan = Plan(run_folder or Path("runs") / loaded.name, folder, python, steps, tasks, quick)
    return start(loaded, plan, spec, settings, say=say, bar=lambda what, total: bar(what, lambda: total))


def _print(result: Rehearsal, quick: bool, seconds: float, say: Callable[[str], None]) -> None:
    for note in result.notes:
        say(f"note: {note}")
    for mistake in result.mistakes:
        say(f"mistake: {mistake}")
    if result.mistakes and not result.is_whole:
        say("what comes after this was not tried")
    elif not result.mistakes:
        say(f"nothing is wrong ({'no stage was tried, ' if quick else ''}{seconds:.0f} s)")
    if result.folder:
        say(f"files: {result.folder}")
