"""`report.html` from a run folder: one file that opens offline, finished run or not.

`write` makes the page; `console.matrix` is its first table for a terminal. The folder is read, never changed but for the report
itself; `docs/report.md` says what the page shows and how its numbers come about.
"""

from __future__ import annotations

from pathlib import Path

from cascade_core.rows import write_text

__all__ = ["write"]


def write(run: Path) -> Path:
    """Writes `report.html` into a run folder, whole or not at all, and returns its path.

    The same folder gives the same bytes: times are those of the events.

    Raises:
        RunError: `run` is no run folder.
    """
    from cascade_core.report.page import render
    from cascade_core.report.record import read

    path = run / "report.html"
    write_text(path, render(read(run)))
    return path
