"""Why a row has its verdict: the stored one, the one of now, the rule, what was read, the cost, and who judged.

The rows are judged anew in a scoring process, under the usual limits; the reasons are the domain's own (`Domain.explain`). A
domain that has none is explained by its note. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cascade_core.domain import DomainRef
from cascade_core.errors import UsageError
from cascade_core.rows import Row, read, score_json
from cascade_core.scoring import Scorer

_LONGEST = 2_000  # characters of a response that are shown
_KNOWN = 5  # ids that an error names


@dataclass(frozen=True)
class Explanation:
    """One row's verdict. `changed` compares the stored value with that of now; `None` where none is stored.

    `domain` is the domain that judged now (name, options, distribution, version), `stored_by` the one that judged the file, where
    `cascade score` left that beside it. Seconds are those of the verdict alone.
    """

    id: str
    sample: Any
    source: str
    response: str
    domain: Mapping[str, Any] | None
    now: Mapping[str, Any]
    stored: Mapping[str, Any] | None
    stored_by: Mapping[str, Any] | None
    changed: bool | None
    wall_seconds: float | None
    cpu_seconds: float | None
    reasons: Mapping[str, Any] | None
    trouble: str

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def select(path: Path, *, id: str | None = None, sample: int | None = None, limit: int = 5) -> tuple[list[Row], int]:
    """The first `limit` rows of that id and sample (`None`: any), and how many there are.

    Raises:
        RowError: a line is no row.
        UsageError: no row is meant; names a few ids of the file.
    """
    found: list[Row] = []
    count = 0
    known: dict[str, None] = {}
    for row in read(path):
        if len(known) < _KNOWN:
            known[str(row.get("id"))] = None
        if (id is None or str(row.get("id")) == id) and (sample is None or str(row.get("sample", 0)) == str(sample)):
            count += 1
            if len(found) < limit:
                found.append(row)
    if not found:
        if not known:
            raise UsageError(
                f"{path} is empty: rows to explain are JSON lines with domain, id, prompt, answer, response"
            )
        wanted = " ".join(f"{name} {value!r}" for name, value in (("id", id), ("sample", sample)) if value is not None)
        ids = ", ".join(islice(known, _KNOWN))
        raise UsageError(f"{path} has no row of {wanted}; it begins with {ids}")
    return found, count


def explain(path: Path, rows: Sequence[Row], scorer: Scorer, *, domain: str = "") -> list[Explanation]:
    """Judges rows of `path` anew and asks their domains for the reasons.

    Args:
        domain: for rows that name none.

    Raises:
        ScoringError: the scorer is closed.
    """
    stored_by = _stored_by(path)
    return [_explanation({"domain": domain, **row}, scorer, stored_by) for row in rows]


def _explanation(row: Row, scorer: Scorer, stored_by: Mapping[str, Any]) -> Explanation:
    (look,) = scorer.look([row], explain=True)
    (score,) = scorer.score([row])  # what counts; a limit that only the explanation ran into is none of the verdict
    stored = row.get("score") if isinstance(row.get("score"), Mapping) else None
    name, ref = str(row["domain"]), scorer.domains.get(str(row["domain"]))
    response = str(row.get("response"))
    return Explanation(
        id=str(row.get("id")),
        sample=row.get("sample"),
        source=str(row.get("source") or ""),
        response=response if len(response) <= _LONGEST else f"{response[:_LONGEST]}… ({len(response)} characters)",
        domain=None if ref is None else _told(ref),
        now=score_json(score),
        stored=stored,
        stored_by=stored_by.get(name) if stored is not None else None,
        changed=None if stored is None else _essence(stored) != _essence(score_json(score)),
        wall_seconds=look.wall_seconds,
        cpu_seconds=look.cpu_seconds,
        reasons=look.explanation,
        trouble=look.trouble,
    )


def _told(ref: DomainRef) -> dict[str, Any]:
    return {
        "name": ref.name,
        "options": dict(ref.options),
        "distribution": ref.distribution,
        "version": ref.version,
    }


def _essence(score: Mapping[str, Any]) -> tuple[Any, bool]:
    failed = bool(score.get("error"))
    return (None if failed else score.get("value")), failed


def _stored_by(path: Path) -> dict[str, Any]:
    """The domains that judged a file of `cascade score`; none where that is not known."""
    try:
        found = json.loads(path.with_name(path.name + ".lock.json").read_text(encoding="utf-8"))["domains"]
        return {
            name: {key: ref[key] for key in ("name", "options", "distribution", "version")}
            for name, ref in found.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
