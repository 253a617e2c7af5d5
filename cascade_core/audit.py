"""The quality of a domain's verdicts in numbers: right answers that pass, hostile ones that pass, sameness, time, memory.

Where `testing.check_domain` says whether a domain keeps its contract, an audit measures how well it judges: the references of
many tasks, the answers of `hostile.py` on as many, everything three times (twice in one process, once in another). Times
are those of `Domain.score` alone, measured in the process that judges, which has one core and no neighbour of ours.

It cannot know whether a hostile answer that passes does so by right: a prompt that asks for no comma is obeyed by many texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from cascade_core.domain import Domain, DomainRef, Score, Task
from cascade_core.errors import CascadeError, PluginBroken, UsageError
from cascade_core.hostile import ALL_LABELS, HOSTILE, MEGABYTE, WORTHLESS, all_labels
from cascade_core.rows import Row, task_row
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring
from cascade_core.verdict import Look
from cascade_core.worker import told

_LARGE_TASKS = 4  # tasks that an answer of a megabyte is tried on
_EXAMPLES = 3
_SHOWN = 120  # characters of an answer that an example shows
_PLAIN = "a plain wrong answer"
_GOLD = "references"


@dataclass(frozen=True)
class Rate:
    """One kind of answer: how many were tried, scored 1.0 (`passed`), ran into a limit, could not be judged (`failed`).

    `examples` are of what should not be: references that did not pass, hostile answers that did or that could not be judged.
    """

    kind: str
    total: int
    passed: int
    limit: int
    failed: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Times:
    """Seconds of one verdict: the 50th, 95th and 99th percentile (nearest rank) and the longest, of `count`."""

    p50: float
    p95: float
    p99: float
    longest: float
    count: int


@dataclass(frozen=True)
class Audit:
    """What was measured. `wall` and `cpu` are of ordinary answers, `hostile_wall` of hostile ones; MiB of the scoring process.

    `growth_mib` is what the process held more after judging everything a second time. `max_hostile` is the share of a kind of hostile
    answers that may pass; of `hostile.WORTHLESS` none ever may.
    """

    domain: DomainRef
    tasks: Mapping[str, int]
    absent: Mapping[str, str]
    gold: Rate
    hostile: tuple[Rate, ...]
    compared: int
    unsteady: tuple[str, ...]
    wall: Times | None
    cpu: Times | None
    hostile_wall: Times | None
    held_mib: float
    growth_mib: float
    max_hostile: float = 0.0

    @property
    def troubles(self) -> list[str]:
        """Why the status is 1, one sentence each; none where it is 0."""
        found = []
        if self.gold.passed < self.gold.total:
            found.append(f"{self.gold.total - self.gold.passed} of {self.gold.total} references do not score 1.0")
        for rate in self.hostile:
            if rate.passed > (0 if rate.kind in WORTHLESS else self.max_hostile) * rate.total:
                found.append(f"{rate.kind} scores 1.0 for {rate.passed} of {rate.total} tasks")
            if rate.failed:
                found.append(f"{rate.kind} cannot be judged for {rate.failed} of {rate.total} tasks")
        if self.unsteady:
            found.append(f"{len(self.unsteady)} of {self.compared} answers do not get the same score every time")
        return found

    @property
    def status(self) -> int:
        """1 where there is any trouble, else 0."""
        return int(bool(self.troubles))

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {**asdict(self), "status": self.status, "troubles": self.troubles}


@dataclass
class _Tried:
    """An answer of one kind to one task, and what became of it."""

    kind: str
    row: Row
    looks: list[Look] = field(default_factory=list)
    elsewhere: Score | None = None


def audit(
    ref: DomainRef,
    *,
    tasks: int = 100,
    scoring: Scoring | None = None,
    max_hostile: float = 0.0,
    resources: Mapping[str, str] | None = None,
) -> Audit:
    """Audits the domain that `ref` stands for.

    Args:
        tasks: how many of the first tasks of each split are taken.
        scoring: limits of a verdict; there is one process whatever it says.
        max_hostile: share of a kind of hostile answers that may pass.
        resources: addresses for `Domain.open`.

    Raises:
        PluginError, SpecError: the domain cannot be built.
        UsageError: it has no tasks, in any split.
        ScoringError: scoring as a whole failed.
    """
    from cascade_core.plugins import registry

    domain = registry().build(ref)
    limits = (scoring or Scoring()).model_copy(update={"workers": 1, "concurrency": 1})
    loaded, absent = _load(domain, tasks)
    tried = _answers(domain, [task for found in loaded.values() for task in found])
    rows = [one.row for one in tried]
    with Scorer({"audited": ref}, limits, resources) as scorer:
        passes = [scorer.look(rows) for _ in range(2)]
    with Scorer({"audited": ref}, limits, resources) as other:
        elsewhere = other.score(rows)
    for number, one in enumerate(tried):
        one.looks, one.elsewhere = [looks[number] for looks in passes], elsewhere[number]
    return _audit(ref, {split: len(found) for split, found in loaded.items()}, absent, tried, passes, max_hostile)


def _load(domain: Domain, count: int) -> tuple[dict[str, list[Task]], dict[str, str]]:
    """The first tasks of each split, and why a split has none."""
    loaded: dict[str, list[Task]] = {}
    absent: dict[str, str] = {}
    for split in ("train", "test"):
        try:
            loaded[split] = list(islice(domain.tasks(split, 0), count))
        except CascadeError as cause:  # a domain may have only data to evaluate on
            absent[split] = str(cause)
    if not any(loaded.values()):
        raise UsageError(
            f"domain {domain.name!r} has no tasks: {'; '.join(absent.values()) or 'both splits are empty'}"
        )
    return loaded, absent


def _answers(domain: Domain, tasks: Sequence[Task]) -> list[_Tried]:
    """All answers to be tried, by kind."""
    references: dict[str, str | None] = {}
    for task in tasks:
        try:
            references[task.id] = domain.reference(task)
        except Exception as cause:
            raise PluginBroken(f"domain {domain.name!r}: the reference of task {task.id!r}: {told(cause)}") from cause
        if not isinstance(references[task.id], str | None):
            kind = type(references[task.id]).__name__
            raise PluginBroken(f"domain {domain.name!r}: the reference of task {task.id!r} must be text, found {kind}")
    known = [reference for reference in references.values() if reference is not None]
    tried = []
    for task in tasks:
        reference = references[task.id]
        if reference is not None:
            tried.append(_try(_GOLD, task, reference))
            if (listed := all_labels(reference, known)) is not None:
                tried.append(_try(ALL_LABELS, task, listed))
        tried.append(_try(_PLAIN, task, "no"))
    for kind, answer in {**WORTHLESS, **HOSTILE}.items():
        is_large = len(answer(domain, tasks[0])) >= MEGABYTE
        tried += [_try(kind, task, answer(domain, task)) for task in (tasks[:_LARGE_TASKS] if is_large else tasks)]
    return tried


def _try(kind: str, task: Task, response: str) -> _Tried:
    return _Tried(kind, {**task_row("audited", task), "response": response})


def _audit(
    ref: DomainRef,
    counts: Mapping[str, int],
    absent: Mapping[str, str],
    tried: Sequence[_Tried],
    passes: Sequence[Sequence[Look]],
    max_hostile: float,
) -> Audit:
    ordinary = [one for one in tried if one.kind in (_GOLD, _PLAIN)]
    hostile = [one for one in tried if one.kind not in (_GOLD, _PLAIN)]
    held = [[look.held_bytes for look in looks if look.held_bytes is not None] for looks in passes]
    first, last = (found[-1] / MEGABYTE if found else 0.0 for found in held)
    return Audit(
        domain=ref,
        tasks=counts,
        absent=absent,
        gold=_rate(_GOLD, tried),
        hostile=tuple(_rate(kind, tried) for kind in dict.fromkeys(one.kind for one in hostile)),
        compared=len(tried),
        unsteady=tuple(found for one in tried if (found := _unsteady(one))),
        wall=_times([one.looks[0].wall_seconds for one in ordinary]),
        cpu=_times([one.looks[0].cpu_seconds for one in ordinary]),
        hostile_wall=_times([one.looks[0].wall_seconds for one in hostile]),
        held_mib=last,
        growth_mib=last - first,
        max_hostile=max_hostile,
    )


def _rate(kind: str, tried: Sequence[_Tried]) -> Rate:
    own = [one for one in tried if one.kind == kind]
    scores = [one.looks[0].score for one in own]
    passed = [score.is_judged and score.value == 1.0 for score in scores]
    bad = [
        f"{one.row['id']}: {one.row['response'][:_SHOWN]!r} {_verdict(score)}"
        for one, score, right in zip(own, scores, passed, strict=True)
        if right != (kind == _GOLD) or score.error
    ]
    return Rate(
        kind,
        len(own),
        sum(passed),
        sum(score.is_limit for score in scores),
        sum(not score.is_judged for score in scores),
        tuple(bad[:_EXAMPLES]),
    )


def _unsteady(one: _Tried) -> str:
    """What differs between the three verdicts on one answer; `""` if nothing."""
    assert one.elsewhere is not None
    scores = [look.score for look in one.looks] + [one.elsewhere]
    if len({(score.value, score.trained, score.is_judged) for score in scores}) == 1:
        return ""
    return f"{one.row['id']}: {one.row['response'][:_SHOWN]!r} {', then '.join(map(_verdict, scores))}"


def _verdict(score: Score) -> str:
    if score.error:
        return f"could not be judged ({score.error})"
    return f"scores {score.value:g}" + (f" ({score.note})" if score.note else "")


def _times(seconds: Sequence[float | None]) -> Times | None:
    found = sorted(value for value in seconds if value is not None)
    if not found:
        return None
    rank = {share: found[max(0, math.ceil(share * len(found)) - 1)] for share in (0.5, 0.95, 0.99)}
    return Times(rank[0.5], rank[0.95], rank[0.99], found[-1], len(found))
