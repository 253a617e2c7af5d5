"""`cascade doctor`: which versions go together, what is there, and what to install."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.output import Json, Set, console, foreign, print_json, table

if TYPE_CHECKING:
    from cascade_core.doctor import Finding


def doctor(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="[SPEC]", help="Say what this spec needs that is not there.", show_default=False),
    ] = None,
    set_: Set = None,
    python: Annotated[
        str,
        typer.Option(
            "--python",
            metavar="PATH",
            help="The interpreter of the environment that OpenRLHF is in; default: the spec's engine.python.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Say which versions go together, what of them is here, what is broken, and how to get what is missing. Change nothing.

    Ends with status 1 if the spec needs something that is not there; without a spec nothing is needed.

    Example: [bold]cascade doctor spec.yaml[/bold]
    """
    from cascade_core.doctor import examine
    from cascade_core.spec import load
    from cascade_core.versions import TOGETHER

    loaded = load(spec, set_ or ()) if spec else None
    findings = examine(loaded, spec, set_ or (), python=python)
    healthy = not any(finding.stops for finding in findings)
    if json:
        together = {name: dict(pins) for name, pins in TOGETHER.items()}
        print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings], "openrlhf": together})
    else:
        _print(findings)
    if not healthy:
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    from cascade_core.versions import TOGETHER

    area = ""
    for one in findings:
        if one.area != area:
            area = one.area
            typer.echo(f"{area}:")
        typer.echo(f"  {'NEEDED' if one.stops else one.state:9}{_line(one.what):15} {_line(one.found)}")
        if one.remedy:
            typer.echo(f"{'':27}-> {_line(one.remedy)}")
    out = console()
    names = list(next(iter(TOGETHER.values())))
    pins = table("What goes together", "openrlhf", *names)
    for version, wanted in TOGETHER.items():
        pins.add_row(version, *(wanted[name] for name in names))
    out.print()
    out.print(pins)


def _line(text: str) -> str:
    """Text of a plugin or a program, as one line."""
    return foreign(" ".join(text.split())).plain
