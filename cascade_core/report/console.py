"""The stage × benchmark matrix for a terminal: the first table of the report in text.

Stages and benchmarks are rows and columns whichever way is narrower; where both are many, every cell is a row of its own, so that
the table fits a terminal of 80 columns at any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from cascade_core.report.answers import read_all
from cascade_core.report.matrix import Cell, Change, Matrix, build
from cascade_core.report.record import read
from cascade_core.report.text import decimals, plain, signed, visible

MOST_COLUMNS = 2
"""More stages and more benchmarks than this, and the table is a list."""

_STYLES = {1: "bold blue", -1: "bold dark_orange3", 0: "dim"}


def matrix(run: Path) -> Table:
    """The matrix of a run, as far as it came.

    Raises:
        RunError: `run` is no run folder.
    """
    record = read(run)
    table = build(record, read_all(record.stages))
    if not table.benchmarks:
        return Table("nothing is measured yet", title=Text(visible(record.name)), title_justify="left")
    narrow = min(len(table.stages), len(table.benchmarks)) <= MOST_COLUMNS
    shown = _grid(table) if narrow else _list(table)
    shown.title = Text(f"{visible(record.name)}: every benchmark after every stage")
    shown.caption = Text(
        "± one standard error; change since the stage before with its 95 % paired interval, ▲ ▼ where that leaves out 0; "
        "◆ trained in this stage; samples scored/of those limit/failed"
    )
    return shown


def _grid(table: Matrix) -> Table:
    stages_across = len(table.stages) < len(table.benchmarks)
    shown = Table(show_lines=True, caption_justify="left", title_justify="left")
    shown.add_column("benchmark" if stages_across else "after")
    across: Sequence[str] = [stage.id for stage in table.stages] if stages_across else table.benchmarks
    for name in across:
        shown.add_column(_name(name), justify="right", no_wrap=True)
    if stages_across:
        for benchmark in table.benchmarks:
            shown.add_row(_name(benchmark), *(_cell(table, benchmark, stage.id) for stage in table.stages))
    else:
        for stage in table.stages:
            shown.add_row(_name(stage.id), *(_cell(table, benchmark, stage.id) for benchmark in table.benchmarks))
    return shown


def _list(table: Matrix) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, caption_justify="left", title_justify="left")
    for name in ("benchmark", "after"):
        shown.add_column(name, overflow="fold")
    for name in ("value ± se", "change [95 % interval]", "s/l/f"):
        shown.add_column(name, justify="right", no_wrap=True)
    for benchmark in table.benchmarks:
        digits = decimals(table.scale(benchmark))
        measured = table.measured(benchmark)
        for place, (stage, cell) in enumerate(measured, 1):
            first = "" if place > 1 else benchmark
            numbers = _value(cell, digits), _change(cell.change, digits), _counts(cell)
            shown.add_row(_name(first), _name(stage.id), *numbers, end_section=place == len(measured))
    return shown


def _cell(table: Matrix, benchmark: str, stage: str) -> Text:
    cell = table.cells.get((benchmark, stage))
    if cell is None:
        return Text("–", style="dim")
    digits = decimals(table.scale(benchmark))
    parts = [_value(cell, digits), _change(cell.change, digits), _counts(cell)]
    return Text("\n").join(part for part in parts if part.plain)


def _value(cell: Cell, digits: int) -> Text:
    return Text.assemble(
        "◆ " if cell.is_own else "", (plain(cell.value, digits), "bold"), f" ±{plain(cell.stderr, digits)}"
    )


def _change(change: Change | None, digits: int) -> Text:
    if change is None:
        return Text("")
    interval = f"[{signed(change.low, digits)}, {signed(change.high, digits)}]"
    return Text(f"{change.mark} {signed(change.difference, digits)} {interval}", style=_STYLES[change.direction])


def _counts(cell: Cell) -> Text:
    counts = cell.counts
    return Text(f"{counts.scored}/{counts.limit}/{counts.failed}", style="red" if counts.failed else "dim")


def _name(name: str) -> Text:
    return Text(visible(name))
