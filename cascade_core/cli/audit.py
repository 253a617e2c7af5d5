"""`cascade audit`: how well a domain judges, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.limits import CPU_SECONDS, MEMORY_MIB, WALL_SECONDS, CpuSeconds, MemoryMib, WallSeconds, limits
from cascade_core.cli.output import Json, Option, brief, console, foreign, print_json, table
from cascade_core.cli.resources import Resource, running

if TYPE_CHECKING:
    from cascade_core.audit import Audit, Rate, Times


def audit(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="The name of an installed domain.")],
    option: Option = None,
    resource: Resource = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="How many tasks of each split are taken.")] = 100,
    max_hostile: Annotated[
        float, typer.Option("--max-hostile", min=0, max=1, help="Share of a kind of hostile answers that may pass.")
    ] = 0.0,
    cpu_seconds: CpuSeconds = CPU_SECONDS,
    wall_seconds: WallSeconds = WALL_SECONDS,
    memory_mib: MemoryMib = MEMORY_MIB,
    json: Json = False,
) -> None:
    """Measure how well a domain judges: references that pass, hostile answers that pass, sameness, time and memory of a verdict.

    Ends with status 1 if a reference does not score 1.0, a hostile answer does or cannot be judged, or a score is not steady.

    Example: [bold]cascade audit math --option eval_data=aime25.jsonl --tasks 500[/bold]
    """
    from cascade_core.audit import audit as measure
    from cascade_core.plugins import registry
    from cascade_core.spec import read_options

    ref = registry().reference(domain, read_options(option or ()))
    settings = limits(cpu_seconds, wall_seconds, memory_mib)
    with running([registry().domain(domain)], resource) as started:
        found = measure(ref, tasks=tasks, scoring=settings, max_hostile=max_hostile, resources=started.addresses)
    if json:
        print_json(found.json())
    else:
        _print(found)
    if found.status:
        for trouble in found.troubles:
            typer.echo(f"cascade: domain {domain!r}: {trouble}", err=True)
        raise typer.Exit(found.status)


def _print(found: Audit) -> None:
    ref, screen = found.domain, console()
    options = brief(dict(ref.options)) if ref.options else "default options"
    shown = table(f"Domain {ref.name} of {ref.distribution} {ref.version}, {options}", "what", "found", "of")
    for what, value, of in _lines(found):
        shown.add_row(foreign(what), foreign(value), foreign(of))
    screen.print(shown)
    for title, examples in (
        *((rate.kind, rate.examples) for rate in (found.gold, *found.hostile)),
        ("not steady", found.unsteady[:3]),
    ):
        for example in examples:
            screen.print(foreign(f"{title}: {example}"), soft_wrap=True)


def _lines(found: Audit) -> Iterator[tuple[str, str, str]]:
    yield "tasks", ", ".join(f"{count} of {split}" for split, count in found.tasks.items()), ""
    for split, reason in found.absent.items():
        yield f"no tasks of {split}", reason, ""
    gold = found.gold
    yield "references that score 1.0", _share(gold) if gold.total else "no task has a reference", str(gold.total)
    for rate in found.hostile:
        more = [f"{rate.limit} limit"] if rate.limit else []
        more += [f"{rate.failed} not judged"] if rate.failed else []
        yield f"{rate.kind} scores 1.0", ", ".join([_share(rate), *more]), str(rate.total)
    yield "not the same score every time", str(len(found.unsteady)), str(found.compared)
    for what, times in (
        ("time of a verdict", found.wall),
        ("CPU time of a verdict", found.cpu),
        ("time of a hostile answer's verdict", found.hostile_wall),
    ):
        if times is not None:
            yield what, _spread(times), str(times.count)
    yield "memory of the scoring process", f"{found.held_mib:.1f} MiB, {found.growth_mib:+.1f} in the second pass", ""


def _share(rate: Rate) -> str:
    return f"{rate.passed} ({100 * rate.passed / rate.total:.4g} %)"


def _spread(times: Times) -> str:
    parts = (("p50", times.p50), ("p95", times.p95), ("p99", times.p99), ("longest", times.longest))
    return ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in parts)
