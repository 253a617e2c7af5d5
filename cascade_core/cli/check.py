"""`cascade check`: whether a domain keeps its contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cascade_core.cli.output import Json, Option, console, print_json, table
from cascade_core.cli.resources import Resource, running


def check(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="The name of an installed domain.")],
    option: Option = None,
    resource: Resource = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="How many tasks of each split are examined.")] = 50,
    json: Json = False,
) -> None:
    """Check a domain against its contract: tasks, splits, references, hostile answers, the same score every time.

    Ends with status 1 if anything is wrong.

    Example: [bold]cascade check reverse --option length=8[/bold]
    """
    from cascade_core.plugins import registry
    from cascade_core.spec import read_options
    from cascade_core.testing import examine

    found = registry()
    built = found.build(found.reference(domain, read_options(option or ())))
    with running([built], resource) as started:
        findings = examine(built, tasks=tasks, resources=started.addresses)
    failed = sum(not finding.ok for finding in findings)
    if json:
        print_json({"domain": domain, "failed": failed, "findings": [asdict(finding) for finding in findings]})
    else:
        from rich.text import Text

        rows = table(f"Domain {domain}", "check", "", "what was seen")
        for finding in findings:
            mark = Text("ok", style="green") if finding.ok else Text("failed", style="red")
            rows.add_row(Text(finding.check), mark, Text(finding.detail))
        console().print(rows)
    if failed:
        typer.echo(f"cascade: domain {domain!r} fails {failed} of {len(findings)} checks", err=True)
        raise typer.Exit(1)
