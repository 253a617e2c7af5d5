"""What the domains make of answers: references, which must score 1.0, and worthless ones, which must be judged.

They are judged in the run's own scoring processes, under its limits, with its resources. As in a run, a few samples that cannot be
judged are no mistake: `scoring.max_error_rate` says how many, and how many references may be wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from cascade_core.domain import Domain
from cascade_core.rehearsal.checks import Looked
from cascade_core.rehearsal.findings import DomainTried
from cascade_core.rows import Row, row_task
from cascade_core.scoring import Scorer
from cascade_core.verdict import Look

_CHUNK = 16
_NO = "no"

Advance = Callable[[int], None]


def answers(seen: Looked, most: int) -> dict[str, list[Row]]:
    """Rows to be judged, by domain: of the first `most` tasks that stages train on, the references and a plain wrong answer."""
    found: dict[str, list[Row]] = {}
    for name, domain in seen.domains.items():
        tasks = {str(row["id"]): row for row in _rows(seen, name)}
        found[name] = [made for row in list(tasks.values())[:most] for made in _answers(seen, domain, row)]
    return found


def _rows(seen: Looked, domain: str) -> Iterator[Row]:
    for rows in seen.rows.values():
        yield from (row for row in rows if row["domain"] == domain)
    for exam in seen.exams:
        yield from (row for row in exam.tasks if row["domain"] == domain)


def _answers(seen: Looked, domain: Domain, row: Row) -> Iterator[Row]:
    task = {name: value for name, value in row.items() if name != "response"}
    try:
        reference = domain.reference(row_task(row))
    except Exception as cause:  # noqa: BLE001 - a stranger's code
        what = f"{type(cause).__name__}: {cause}"
        seen.add("verdicts", f"domain {domain.name!r}: its reference raises {what}; mend it, or have it return None")
        reference = None
    if reference is not None:
        yield {**task, "response": reference, "is_reference": True}
    yield {**task, "response": _NO, "is_reference": False}


def judge(seen: Looked, rows: Mapping[str, Sequence[Row]], scorer: Scorer, advance: Advance) -> list[DomainTried]:
    """Judges the answers; mistakes go to `seen`. `advance` is told how many more are done."""
    tried = []
    for name, own in rows.items():
        looks: list[Look] = []
        for start in range(0, len(own), _CHUNK):
            chunk = own[start : start + _CHUNK]
            looks += scorer.look(chunk)
            advance(len(chunk))
        if own:
            tried.append(_tried(seen, name, own, looks))
    return tried


def _tried(seen: Looked, name: str, rows: Sequence[Row], looks: Sequence[Look]) -> DomainTried:
    pairs = list(zip(rows, looks, strict=True))
    failed = [(row, look) for row, look in pairs if not look.score.is_judged]
    known = [(row, look) for row, look in pairs if row["is_reference"]]
    wrong = [(row, look) for row, look in known if look.score.is_judged and look.score.value != 1.0]
    rate = seen.spec.scoring.max_error_rate
    if len(failed) > rate * len(rows):
        error, count = Counter(look.score.error for _, look in failed).most_common(1)[0]
        task = next(row["id"] for row, look in failed if look.score.error == error)
        seen.add(
            "verdicts",
            f"domain {name!r}: {len(failed)} of {len(rows)} answers could not be judged, {count} of them (task {task!r}"
            f" among them) because of: {error}; mend the domain or its data, `cascade check {name}` tries it alone",
        )
    if len(wrong) > rate * len(known):
        row, look = wrong[0]
        note = f" ({look.score.note})" if look.score.note else ""
        seen.add(
            "verdicts",
            f"domain {name!r}: {len(wrong)} of {len(known)} references do not score 1.0, such as {row['response'][:80]!r}"
            f" for task {row['id']!r}, which scores {look.score.value:g}{note}; mend the label, the reference or the verifier",
        )
    seconds = sorted(look.wall_seconds for look in looks if look.wall_seconds is not None)
    right = sum(look.score.is_judged and look.score.value == 1.0 for _, look in known)
    middle, longest = (seconds[(len(seconds) - 1) // 2], seconds[-1]) if seconds else (None, None)
    values = {look.score.value for look in looks if look.score.is_judged}
    alike = max(values) if len(values) == 1 and any(values) else None
    return DomainTried(name, len(known), right, len(rows), len(failed), middle, longest, alike)
