"""`cascade diff`: verdicts that changed between two scored files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cascade_core.cli.output import Json, console, foreign, print_json, table
from cascade_core.errors import UsageError

if TYPE_CHECKING:
    from cascade_core.difference import Change, Difference

_SHOWN = 30  # changes in the table; --json has all
_RARE = ("failed", "recovered", "otherwise", "only_first", "only_second")  # nine columns fit no terminal


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Scored rows, as cascade score or a run writes them.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The same samples, scored otherwise.")],
    examples: Annotated[int, typer.Option("--examples", min=0, help="Samples that each change is shown with.")] = 3,
    json: Json = False,
) -> None:
    """Compare the verdicts of two scored files: what changed, both ways, by rule, per domain and source.

    Ends as diff does: 0 if nothing changed, 1 if something did, 2 for trouble.

    Example: [bold]cascade diff scored.jsonl stated.jsonl --examples 5[/bold]
    """
    from cascade_core.difference import difference

    for path in (first, second):
        if not path.is_file():
            raise UsageError(f"{path} is no file: scored rows are JSON lines")
    found = difference(first, second, examples=examples)
    if json:
        print_json({"first": str(first), "second": str(second), "status": found.status, **found.json()})
    else:
        _print(found, first, second)
    if found.status:
        raise typer.Exit(found.status)


def _print(found: Difference, first: Path, second: Path) -> None:
    screen = console()
    counts = [
        *("compared", "same", "better", "worse"),
        *(name for name in _RARE if any(getattr(cell, name) for cell in found.cells)),
    ]
    cells = table(f"{first} → {second}", "domain", "source", *(f">{name.replace('_', ' ')}" for name in counts))
    for cell in found.cells:
        cells.add_row(foreign(cell.domain), foreign(cell.source), *(str(getattr(cell, name)) for name in counts))
    screen.print(cells)
    for cell in found.cells:
        for name, what in (
            ("other_response", "pairs have different responses: there the sample changed, not only its verdict"),
            ("other_note", "unchanged verdicts have another note"),
            ("other_reward", "unchanged verdicts have another reward"),
        ):
            if count := getattr(cell, name):
                screen.print(foreign(f"{cell.domain}{cell.source and ' ' + cell.source}: {count} {what}"))
    if found.changes:
        screen.print(_changes(found.changes[:_SHOWN]))
    if len(found.changes) > _SHOWN:
        screen.print(f"and {len(found.changes) - _SHOWN} more kinds of change; --json has all")


def _changes(changes: tuple[Change, ...]) -> object:
    shown = table("Changes", "domain", "source", ">count", "verdict", "by", "such as")
    for change in changes:
        by = f"{change.note_before or '(no note)'} → {change.note_after or '(no note)'}"
        such = ", ".join(one.id + (f" #{one.sample}" if one.sample else "") for one in change.examples)
        verdicts = f"{change.before} → {change.after}"
        row = (foreign(part) for part in (change.domain, change.source, str(change.count), verdicts, by, such))
        shown.add_row(*row)
    return shown
