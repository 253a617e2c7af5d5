"""`cascade plan`: everything that a run would do, and nothing done."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.output import Json, Set, brief, console, foreign, print_json, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from cascade_core.plan import Plan


def plan(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")],
    set_: Set = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Load tasks too: count each benchmark, show each domain's first prompt.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a spec would do: stages, tasks drawn, steps, settings, the trainer's own flags, benchmarks. Do nothing.

    What is wrong with the words of the spec is found here, each with its line; [bold]cascade rehearse[/bold] finds the rest.

    Example: [bold]cascade plan spec.yaml --tasks[/bold]
    """
    from cascade_core.plan import plan as make
    from cascade_core.spec import check, load

    loaded = load(spec, set_ or ())
    made = make(loaded, check(loaded, spec, set_ or ()), tasks=tasks)
    if json:
        print_json(made.json())
        return
    out = console()
    out.print(f"{made.name}: seed {made.seed}, model {brief(dict(made.model))}")
    for each in _tables(made):
        if isinstance(each, str):
            typer.echo(each)
        else:
            out.print(each)
    limits = brief(dict(made.scoring))
    out.print(f"scoring: {limits}")
    if made.sampled:
        typer.echo(made.sampled)
    for lacking in made.lacking:
        typer.echo(f"warning: {foreign(lacking).plain}", err=True)
    for domain in made.domains:
        if domain.example is not None:
            out.print(f"\nfirst prompt of {domain.name}:\n{domain.example[:2000]}")


def _tables(made: Plan) -> Iterator[Table | str]:
    domains = table("Domains", "name", "from", "options")
    for domain in made.domains:
        domains.add_row(domain.name, f"{domain.distribution} {domain.version}", brief(dict(domain.options)) or "none")
    yield domains
    if made.resources:
        yield _resources(made)
    stages = table("Stages", "folder", "kind", "domains", ">steps", ">tasks drawn", ">responses", ">seed", "trainer")
    for stage in made.stages:
        stages.add_row(
            stage.folder,
            stage.kind,
            _shares(dict(stage.domains)),
            str(stage.steps),
            str(stage.tasks),
            str(stage.responses or "–"),
            str(stage.seed),
            stage.trainer,
        )
    totals = made.totals
    stages.add_section()
    stages.add_row("all", "", "", str(totals["steps"]), str(totals["tasks"]), str(totals["responses"]), "", "")
    yield stages
    for stage in made.stages:
        settings = table(f"Settings of {stage.folder}, which starts from {stage.start}", "setting", "value")
        for setting, value in stage.settings.items():
            settings.add_row(setting, brief(value))
        yield settings
        if stage.composition:
            yield f"Reward of {stage.folder}: {stage.composition}\n"
        flags = table(f"What {stage.trainer} gets for {stage.folder}", "flag", "value")
        for flag, value in stage.flags.items():
            flags.add_row(flag, brief(value))
        yield flags
        if stage.command:
            yield f"What {stage.trainer} starts for {stage.folder}:\n\n{shlex.join(stage.command)}\n"
    yield _benchmarks(made)
    if made.trackers:
        trackers = table("Trackers", "name", "from", "options")
        for one in made.trackers:
            trackers.add_row(one.name, f"{one.distribution} {one.version}", brief(dict(one.options)) or "none")
        yield trackers


def _resources(made: Plan) -> Table:
    rows = table("Resources", "provides", "by", "from", "options", "for", "started")
    for one in made.resources:
        source = f"{one.distribution} {one.version}" if one.name else "–"
        options = brief(dict(one.options)) or "none"
        started = (f"after {one.after}" if one.after else "with the run") if one.name else "runs already"
        rows.add_row(one.need, one.name or one.address, source, options, ", ".join(one.domains), started)
    return rows


def _benchmarks(made: Plan) -> Table:
    total = made.totals["evaluated"]
    whole = f"{total} responses in all" if total is not None else "--tasks counts the tasks"
    rows = table(f"Benchmarks ({whole})", "name", "split", ">tasks", ">samples", "sampling", "measured")
    for one in made.benchmarks:
        count = "all" if one.tasks is None else f"{one.tasks}" if one.is_counted else f"up to {one.tasks}"
        how = brief(dict(one.sampling)) if one.of == "policy" else "pairs, of a reward model"
        times = "once" if one.times == 1 else f"{one.times} times"
        rows.add_row(one.name, one.split, count, str(one.samples), how, times)
    return rows


def _shares(domains: dict[str, float]) -> str:
    if len(domains) == 1:
        return next(iter(domains))
    whole = sum(domains.values())
    return ", ".join(f"{name} {share / whole:.0%}" for name, share in domains.items())
