"""Prompts files by domain and id: with them a client needs no answer and no hidden test, only the name of the task.

The rows are held in memory, each task once, however often a file repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cascade_core.errors import RowError
from cascade_core.rows import Row, read

_TASK = ("prompt", "answer", "mode", "source", "meta")


class Index:
    """The tasks of some prompts files.

    Raises:
        RowError: a line that is no task, or two that call different tasks by one name.
        OSError: a file that cannot be read.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self.tasks: dict[tuple[str, str], Row] = {}
        for path in files:
            for row in read(path):
                self._add(row, path)

    def _add(self, row: Row, path: Path) -> None:
        domain, name = row.get("domain"), row.get("id")
        if not isinstance(domain, str) or not isinstance(name, str) or "prompt" not in row:
            raise RowError(f"{path}: a task needs a text 'domain', a text 'id' and a 'prompt', found {str(row)[:120]}")
        task = {field: row[field] for field in _TASK if field in row}
        if self.tasks.setdefault((domain, name), task) != task:
            raise RowError(f"{path}: task {name!r} of domain {domain!r} stands there twice, with different content")

    def completed(self, row: Mapping[str, Any]) -> Row:
        """The row with the fields of its task that it lacks; what it says itself stays."""
        return {**self.tasks.get((str(row["domain"]), str(row["id"])), {}), **row}

    def count(self, domain: str) -> int:
        """Tasks of a domain."""
        return sum(name == domain for name, _ in self.tasks)
