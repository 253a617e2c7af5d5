"""Counts judged rows as they pass: a table by domain and source, and the commonest errors, in bounded memory.

A mean is over tasks, whose samples may stand anywhere in a file: `ledger.py` keeps a sum of each, so that a file of a million
tasks takes the memory of one of a hundred thousand. Which rows, and where they are written, is `score_file.py`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cascade_core.domain import Score
from cascade_core.estimates import mean
from cascade_core.ledger import Ledger

if TYPE_CHECKING:
    from rich.table import Table

_KINDS = 1_000  # of errors that are told apart
_SHOWN_ERRORS = 5


@dataclass(frozen=True)
class Cell:
    """One line of the table; `value` is the mean over tasks of the mean value of their judged samples, `None` if there is none."""

    domain: str
    source: str
    tasks: int
    scored: int
    limit: int
    failed: int
    total: int
    value: float | None
    stderr: float | None


@dataclass(frozen=True)
class Trouble:
    """One kind of error: how often it came, and the task it came with first."""

    error: str
    count: int
    task: str


@dataclass(frozen=True)
class Summary:
    """What became of a file: one cell per domain and source, and the commonest errors."""

    cells: tuple[Cell, ...]
    errors: tuple[Trouble, ...]

    def status(self, max_error_rate: float) -> int:
        """0, or 1 where a domain's share of failed samples passes `max_error_rate`, or where nothing at all was judged."""
        domains: dict[str, list[int]] = {}
        for cell in self.cells:
            seen = domains.setdefault(cell.domain, [0, 0])
            seen[0], seen[1] = seen[0] + cell.failed, seen[1] + cell.total
        judged = sum(cell.scored for cell in self.cells)
        return int(not judged or any(failed > max_error_rate * total for failed, total in domains.values()))

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"cells": [asdict(cell) for cell in self.cells], "errors": [asdict(error) for error in self.errors]}

    def table(self) -> Table:
        """For people."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("domain", "source"):
            table.add_column(name, overflow="fold")
        for name in ("value ± error", "tasks", "scored", "limit", "failed", "total"):
            table.add_column(name, justify="right")
        for cell in self.cells:
            value = "none" if cell.value is None else f"{cell.value:.3f} ± {cell.stderr:.3f}"
            counts = [str(n) for n in (cell.tasks, cell.scored, cell.limit, cell.failed, cell.total)]
            table.add_row(Text(cell.domain), Text(cell.source), value, *counts)
        return table


@dataclass
class _Sums:
    """Running counts of one cell."""

    scored: int = 0
    limit: int = 0
    failed: int = 0


class Tally:
    """Counts rows and their scores; to be used by one thread."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], _Sums] = {}
        self._tasks = Ledger()
        self._errors: dict[str, tuple[int, str]] = {}

    def add(self, row: Mapping[str, Any], score: Score) -> None:
        """Counts one row.

        Raises:
            OSError: no room for temporary data.
        """
        place = str(row.get("domain", "")), str(row.get("source") or "")
        sums, task = self._cells.setdefault(place, _Sums()), str(row.get("id"))
        self._tasks.add(place, task, score.value if score.is_judged else None)
        if score.is_judged:
            sums.scored += 1
            sums.limit += score.is_limit
        else:
            sums.failed += 1
            self._fail(score.error, task)

    def _fail(self, error: str, task: str) -> None:
        if error not in self._errors and len(self._errors) >= _KINDS:
            error = f"errors of other kinds than the first {_KINDS}"
        count, first = self._errors.get(error, (0, task))
        self._errors[error] = (count + 1, first)

    def domains(self) -> set[str]:
        """Those that rows were counted of."""
        return {domain for domain, _ in self._cells}

    def summary(self) -> Summary:
        """The table of what has been counted.

        Raises:
            OSError: no room for temporary data.
        """
        errors = sorted(self._errors.items(), key=lambda item: -item[1][0])[:_SHOWN_ERRORS]
        cells = tuple(
            self._cell(place, *found) for place, found in sorted(self._tasks.means().items(), key=lambda item: item[0])
        )
        return Summary(cells, tuple(Trouble(error, count, task) for error, (count, task) in errors))

    def _cell(self, place: tuple[str, str], tasks: int, values: Collection[float]) -> Cell:
        sums = self._cells[place]
        found = mean(values) if values else None
        value, stderr = (found.value, found.stderr) if found else (None, None)
        return Cell(*place, tasks, sums.scored, sums.limit, sums.failed, sums.scored + sums.failed, value, stderr)
