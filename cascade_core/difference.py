"""Two scored files of the same samples: which verdicts changed, how, and by which rule.

Rows are matched by domain, id, sample and request_id; rows that agree in all of these by their order. A verdict is `right`
(value 1), `wrong` (0), `partial` (in between), `limit` (wrong by a limit) or `failed` (could not be judged). Changes
are grouped by both verdicts and both notes, in which numbers and quoted texts are left out: what remains is the rule.

Where the responses of a pair differ, that is counted: then the sample changed, and not only the verdict on it. How far apart two
models are is for paired intervals, not for this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cascade_core.domain import Score
from cascade_core.errors import CascadeError, RowError, UsageError
from cascade_core.rows import Row, json_score, read

_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|(?<!\w)[-+]?\d+(?:\.\d+)?")
_LONGEST = 160  # characters of a note that are kept

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Verdict:
    """What is compared of one row; `response` is a hash."""

    kind: str
    value: float
    reward: float | None
    note: str
    source: str
    response: int


@dataclass(frozen=True)
class Example:
    """One changed sample, with both notes as they stand."""

    id: str
    sample: str
    before: str
    after: str


@dataclass
class Change:
    """Samples of one domain and source whose verdict changed in the same way, by the same rules."""

    domain: str
    source: str
    before: str
    after: str
    note_before: str
    note_after: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass
class Cell:
    """One domain and source. `better` and `worse` are values that rose and fell among samples judged in both files."""

    domain: str
    source: str
    compared: int = 0
    same: int = 0
    better: int = 0
    worse: int = 0
    failed: int = 0  # judged before, could not be judged after
    recovered: int = 0  # the other way round
    otherwise: int = 0  # the same value by another kind of verdict: wrong, then limit
    other_note: int = 0  # of `same`
    other_reward: int = 0  # of `same`
    other_response: int = 0  # of `compared`
    only_first: int = 0
    only_second: int = 0


@dataclass(frozen=True)
class Difference:
    """All that differs between two scored files; the commonest changes first."""

    cells: tuple[Cell, ...]
    changes: tuple[Change, ...]

    @property
    def status(self) -> int:
        """As `diff` ends: 0 where both files hold the same samples with the same verdicts, else 1."""
        return int(any(cell.same < cell.compared or cell.only_first or cell.only_second for cell in self.cells))

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"cells": [asdict(cell) for cell in self.cells], "changes": [asdict(one) for one in self.changes]}


def difference(first: Path, second: Path, *, examples: int = 3) -> Difference:
    """Compares two scored files; keeps of the first a few numbers per row, and reads the second once.

    Args:
        examples: how many samples each change is shown with.

    Raises:
        RowError: a line is no row, or has no score.
        UsageError: the files have no sample in common.
    """
    before = dict(_verdicts(first))
    cells: dict[tuple[str, str], Cell] = {}
    changes: dict[tuple[str, ...], Change] = {}
    for key, after in _verdicts(second):
        known = before.pop(key, None)
        cell = _cell(cells, key, after if known is None else known)
        if known is None:
            cell.only_second += 1
            continue
        cell.compared += 1
        cell.other_response += known.response != after.response
        if (known.kind, known.value) == (after.kind, after.value):
            cell.same += 1
            cell.other_note += known.note != after.note
            cell.other_reward += known.reward != after.reward
        else:
            _count(cell, known, after)
            _add(changes, key, known, after, examples)
    if not any(cell.compared for cell in cells.values()):
        raise UsageError(
            f"{first} and {second} have no sample in common: rows are matched by domain, id, sample and request_id"
        )
    for key, left in before.items():
        _cell(cells, key, left).only_first += 1
    ordered = sorted(changes.values(), key=lambda one: (one.domain, one.source, -one.count))
    return Difference(tuple(cell for _, cell in sorted(cells.items())), tuple(ordered))


def rule(note: str) -> str:
    """A note without what belongs to one sample alone: numbers and quoted texts."""
    return _PARTICULAR.sub("…", note)[:_LONGEST]


def _verdicts(path: Path) -> Iterator[tuple[Key, Verdict]]:
    seen: Counter[tuple[str, ...]] = Counter()
    for number, row in enumerate(read(path), 1):
        score = _score(row, f"{path}: row {number}")
        name = tuple(str(row.get(part, "")) for part in ("domain", "id", "sample", "request_id"))
        domain, task, sample, request = name
        yield (domain, task, sample, request, seen[name]), _verdict(row, score)
        seen[name] += 1


def _score(row: Row, where: str) -> Score:
    if not isinstance(row.get("score"), Mapping):
        raise RowError(f"{where} (id {row.get('id')!r}) has no score; judge the file with cascade score first")
    try:
        return json_score(row["score"])
    except (CascadeError, KeyError, TypeError, AttributeError) as cause:
        raise RowError(f"{where} (id {row.get('id')!r}) has a score that is none: {cause}") from cause


def _verdict(row: Row, score: Score) -> Verdict:
    if not score.is_judged:
        kind = "failed"
    elif score.is_limit:
        kind = "limit"
    else:
        kind = {0.0: "wrong", 1.0: "right"}.get(score.value, "partial")
    value = score.value if score.is_judged else 0.0
    note = (score.note or score.error)[: 2 * _LONGEST]
    return Verdict(kind, value, score.reward, note, str(row.get("source") or ""), hash(str(row.get("response"))))


def _cell(cells: dict[tuple[str, str], Cell], key: Key, verdict: Verdict) -> Cell:
    return cells.setdefault((key[0], verdict.source), Cell(key[0], verdict.source))


def _count(cell: Cell, before: Verdict, after: Verdict) -> None:
    if after.kind == "failed":
        cell.failed += 1
    elif before.kind == "failed":
        cell.recovered += 1
    elif before.value == after.value:
        cell.otherwise += 1
    else:
        cell.better += after.value > before.value
        cell.worse += after.value < before.value


def _add(changes: dict[tuple[str, ...], Change], key: Key, before: Verdict, after: Verdict, examples: int) -> None:
    names = (key[0], before.source, before.kind, after.kind, rule(before.note), rule(after.note))
    change = changes.setdefault(names, Change(*names))
    change.count += 1
    if len(change.examples) < examples:
        change.examples.append(Example(key[1], key[2], before.note, after.note))
