"""`cascade plugins`: what is installed, what it offers, and what is broken and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.output import Json, console, print_json, table

if TYPE_CHECKING:
    from cascade_core.plugins import Registry


def plugins(
    json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show the traceback of every broken plugin.")] = False,
) -> None:
    """List the plugins: who provides which domains, trainers, trackers and commands; broken ones with their cause.

    Example: [bold]cascade plugins --trace[/bold] shows why a plugin could not be loaded.
    """
    from cascade_core.plugins import registry

    found = registry()
    conflicts = _conflicts(found)
    if json:
        print_json({"plugins": [asdict(plugin) for plugin in found.plugins], "conflicts": conflicts})
        return
    _print(found, conflicts, trace)


def _conflicts(found: Registry) -> list[dict[str, object]]:
    """Names that several plugins offer; none of them can be used by that name."""
    from cascade_core.plugins import KINDS

    return [
        {"kind": kind, "name": name, "offered_by": [str(owner) for owner in owners]}
        for kind in KINDS
        for name in found.names(kind)
        if len(owners := found.owners(kind, name)) > 1
    ]


def _print(found: Registry, conflicts: list[dict[str, object]], trace: bool) -> None:
    from rich.text import Text

    out = console()
    rows = table("Plugins", "distribution", "version", "entry point", "offers")
    for plugin in found.plugins:
        offers = "; ".join(f"{kind} {', '.join(names)}" for kind, names in plugin.offers.items())
        told = Text(f"broken: {plugin.error}", style="red") if plugin.error else Text(offers or "nothing")
        rows.add_row(Text(plugin.distribution), Text(plugin.version), Text(plugin.entry), told)
    out.print(rows)
    for conflict in conflicts:
        owners = " and ".join(str(owner) for owner in conflict["offered_by"])  # type: ignore[attr-defined]
        out.print(Text(f"conflict: {conflict['kind']} {conflict['name']!r} is offered by {owners}", style="red"))
    for plugin in found.plugins:
        if trace and plugin.trace:
            out.print(f"\n{plugin}\n{plugin.trace}")
