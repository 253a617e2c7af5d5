"""`cascade schema`: what a spec may say, for editors and for people."""

from __future__ import annotations

from typing import Annotated

import typer

from cascade_core.cli.output import print_json


def schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the settings as Markdown tables instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of a spec, options of the installed domains included.

    Example: [bold]cascade schema > spec.schema.json[/bold], and as the first line of a spec
    [bold]# yaml-language-server: $schema=spec.schema.json[/bold] lets an editor complete and check it.
    """
    if markdown:
        from cascade_core.reference import markdown as tables

        typer.echo(tables(), nl=False)
        return
    from cascade_core.plugins import registry
    from cascade_core.spec import schema as whole

    print_json(whole(registry()))
