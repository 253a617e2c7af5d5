"""Problems from JSONL and Parquet files and from data sets of a hub, each statement once.

What a source may be: `cascade_core.sources`; what a row may be: `formats`. A row that is no problem stops the loading with file and
line, or is left out. A problem that its tests cannot judge (interactive, or with many right answers and no special judge) is always
left out; the log says once how many there were, and why.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.errors import UsageError
from cascade_core.sources import SUFFIXES, OnBadRow, digest, load
from cascade_plugin_code import formats
from cascade_plugin_code.problems import Omitted, Problem

_log = logging.getLogger(__name__)
_told: set[tuple[str, tuple[tuple[str, int], ...]]] = set()  # a source is loaded many times in a run, and told of once


def problems(sources: Sequence[str], on_bad_row: OnBadRow = "fail", name: str = formats.AUTO) -> Iterator[Problem]:
    """The problems of all sources, in order, each statement once.

    Args:
        name: the format, one of `formats.FORMATS`, or `auto`.

    Raises:
        UsageError: a source cannot be opened, a row is no problem (unless bad rows are skipped), or all of them are left out.
    """
    texts: set[str] = set()
    ids: set[str] = set()
    for source in sources:
        for problem in _of(source, on_bad_row, name):
            if problem.text in texts:
                continue
            texts.add(problem.text)
            if problem.id in ids:
                problem = replace(problem, id=f"{problem.id}-{digest(problem.text)}")
            ids.add(problem.id)
            yield problem


def _of(source: str, on_bad_row: OnBadRow, name: str) -> Iterator[Problem]:
    left_out: Counter[str] = Counter()
    made = 0
    try:
        for found in load(source, partial(_read, source=_name(source), name=name), on_bad_row):
            if isinstance(found, Omitted):
                left_out[found.reason] += 1
                continue
            made += 1
            yield found
    finally:  # also where whoever calls has enough
        _tell(source, made, left_out)
    if left_out and not made:
        raise UsageError(f"no problem of {source} can be judged: {_counted(left_out)}")


def _read(row: Mapping[str, Any], where: str, source: str, name: str) -> Problem | Omitted:
    return formats.read(row, where, source, name)


def _name(source: str) -> str:
    """What problems are said to be from: a file's name without its ending, a data set's whole name."""
    path = Path(source)
    return path.stem if path.suffix in SUFFIXES else source


def _tell(source: str, made: int, left_out: Counter[str]) -> None:
    told = (source, tuple(sorted(left_out.items())))
    if left_out and told not in _told:
        _told.add(told)
        total = made + left_out.total()
        _log.warning("%s: %d of %d problems left out: %s", source, left_out.total(), total, _counted(left_out))


def _counted(left_out: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
