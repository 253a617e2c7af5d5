"""What commands print: JSON for programs, rich tables for people. Text of others is never read as markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Replace a value of the spec, such as seed=2; repeatable."),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the domain, typed as in a spec; repeatable."),
]


def print_json(value: Any) -> None:
    """One JSON value on standard output, ASCII only, so that no terminal or pipe can spoil it."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False))


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: no markup, no emoji, no colouring of numbers."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


@contextmanager
def bar(what: str, total: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, to be told of so many more done; nothing, not even `total`, where that is no terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen) as shown:
        task = shown.add_task(what, total=total())
        yield lambda done: shown.advance(task, done)


def table(title: str, *columns: str) -> Table:
    """A table with a title; a column whose name begins with `>` is right-aligned."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title, style="bold"), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        made.add_column(Text(column.lstrip(">")), justify="right" if right else "left", overflow="fold")
    return made


def foreign(text: str) -> Text:
    """Text that a model or a file wrote, for a terminal: what is no character (lone surrogates, escapes, NUL) is shown as its code."""
    from rich.text import Text

    visible = "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return Text(visible)


def brief(value: Any) -> str:
    """A JSON value as short text: numbers as people write them, a mapping as `key=value` pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={brief(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(brief(inner) for inner in value) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)
