"""Rows as the jobs that worker processes get: what a verdict may depend on, and which rows are the same sample.

`verdict.py` reads the answers; which process gets a job, and when, is not decided here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cascade_core.domain import BatchStats, DomainRef, Score
from cascade_core.seat import Job

JUDGED = ("id", "prompt", "answer", "mode", "source", "meta", "response", "prefill", "truncated", "turns")
"""The fields that a verdict may depend on. Rows that agree in them are one sample."""

Handed = dict[bytes, Job]
"""Samples that were handed over one by one, to be picked up by `Scorer.verdicts`; whoever makes one keeps it, empty at first."""


def sample(
    row: Mapping[str, Any], domains: Mapping[str, DomainRef], known: Handed, explain: bool | None = None
) -> Score | Job:
    """The job that judges the row, the one already known where it is the same sample; a score where none can.

    `explain` (either way) makes it a job of `Scorer.look`.
    """
    domain = row.get("domain")
    if not isinstance(domain, str) or domain not in domains:
        return Score.failed(unknown(domain, domains))
    try:
        fields = {name: row[name] for name in JUDGED if name in row}
        more = {} if explain is None else {"explain": explain}
        body = json.dumps({"domain": domain, "row": fields, **more}).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        return Score.failed(f"row {row.get('id')!r} is not JSON: {cause}")
    return known.setdefault(body, Job(domain, b"s" if explain is None else b"x", body))


def group(domain: str, rows: Sequence[Mapping[str, Any]], batch: BatchStats) -> Job:
    """The job that asks `Domain.rewards` about judged rows, the responses to one task."""
    told = [{name: row[name] for name in (*JUDGED, "score") if name in row} for row in rows]
    return Job(domain, b"r", json.dumps({"domain": domain, "group": told, "batch": asdict(batch)}).encode())


def conversation(domain: str, more: Mapping[str, Any]) -> Job:
    """The job that asks a domain about conversations: for its next turn, or how many there may be."""
    return Job(domain, b"c", json.dumps({"domain": domain, **more}).encode())


def unknown(domain: object, domains: Mapping[str, DomainRef]) -> str:
    """What is wrong with a row or a question of a domain that is not scored here."""
    return f"no domain {domain!r} is scored here (allowed: {', '.join(sorted(domains)) or 'none'})"
