"""`cascade new`: the package of a new domain, complete and passing as it is written."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cascade_core.cli.output import Json, print_json


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new domain's name, such as word-play.")],
    folder: Annotated[
        Path | None, typer.Option("--folder", help="The folder to make; default: cascade-plugin-NAME, here.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a new domain's package: one domain file, pyproject.toml, a test, a README. It passes as it is.

    Refuses a folder that is there already, and a name that something installed has.

    Example: [bold]cascade new word-play[/bold]
    """
    from cascade_core.scaffold import Package, refuse_taken, write

    package = Package(name)
    refuse_taken(package)
    target = folder or Path(package.distribution)
    written = write(package, target)
    if json:
        print_json({"domain": name, "folder": str(target), "files": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo(f"next: cd {shlex.quote(str(target))} && pip install -e '.[dev]' && pytest")
