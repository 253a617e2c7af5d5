"""The checks that `testing.py` makes of a domain, one method each: what it saw, or what does not hold.

Tasks are loaded twice; references, answers without content and hostile answers are judged in scoring processes with the usual
limits, where the domain is rebuilt from its entry point.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from cascade_core.domain import BatchStats, Domain, DomainRef, Response, Score, Task
from cascade_core.errors import CascadeError, ContractError
from cascade_core.hostile import HOSTILE, MEGABYTE, WORTHLESS, Answer
from cascade_core.probe import Traces, traces
from cascade_core.rows import Row, row_task, score_json, task_row
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring
from cascade_core.strange import STRANGE

_PROBED = 10  # tasks that hostile answers are tried on
_FURTHER = 10  # times as many prompts are compared between the splits as tasks are examined
_LARGE = 2**63 - 1  # a run's seeds are of this size
_LUCKY = 0.5  # share of tasks that an answer without content may happen to solve ("write no comma")
ROUNDING = 1e-4
_MEGABYTES = 4  # tasks that an answer of that size is tried on


class Failure(Exception):
    """A check does not hold; `fatal`: the others cannot be tried."""

    def __init__(self, text: str, *, fatal: bool = False) -> None:
        super().__init__(text)
        self.fatal = fatal


@dataclass
class Examination:
    """One examination; each method is one check, returns what it saw and raises `Failure`."""

    domain: Domain
    count: int
    resources: dict[str, str]
    scoring: Scoring
    stack: ExitStack
    loaded: dict[str, list[Task]] = field(default_factory=dict)
    references: list[Row] = field(default_factory=list)

    def checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "both splits have tasks", self.tasks
        yield "tasks are well-formed", self.form
        yield "the same tasks come every time", self.repeat
        yield "an id names one task", self.ids
        yield "no prompt is in both splits", self.overlap
        yield "benchmarks have tasks", self.benchmarks
        yield "it can be rebuilt in another process", self.rebuilt
        yield "references score 1.0", self.right
        yield "hostile answers are judged, and not right", self.hostile
        yield "the same answer gets the same score", self.deterministic
        yield "scores are the same in another process", self.elsewhere
        if type(self.domain).rewards is not Domain.rewards:
            yield "rewards of a group are one finite number each", self.rewards
        if self.domain.judges_any:
            yield "tasks of other domains are judged", self.strange
        yield "importing it has no side effects", self.imports
        if self.domain.lane == "cpu" and not self.domain.needs:
            yield "a score needs no network", self.offline
        yield "a score takes little time", self.fast

    def tasks(self) -> str:
        loaded = {
            split: list(islice(self.domain.tasks(split, 0), self.count * _FURTHER)) for split in ("train", "test")
        }
        for split, found in loaded.items():
            if not found:
                raise Failure(f"split {split!r} has none", fatal=True)
            for task in found:
                if not isinstance(task, Task):
                    raise Failure(f"split {split!r} yields a {type(task).__name__}, not a Task", fatal=True)
        if next(iter(self.domain.tasks("train", _LARGE)), None) is None:
            raise Failure(f"split 'train' has none for seed {_LARGE}", fatal=True)
        self.loaded = loaded
        return ", ".join(f"{len(found)} of {split} seen" for split, found in loaded.items())

    def form(self) -> str:
        for task in self._examined():
            wrong = _malformed(task)
            if wrong:
                raise Failure(f"task {task.id!r}: {wrong}", fatal=True)
        return f"{len(self._examined())} tasks are JSON"

    def repeat(self) -> str:
        for split, seed in (("train", 0), ("test", 1)):
            first, again = self.loaded[split], list(islice(self.domain.tasks(split, seed), len(self.loaded[split])))
            for one, other in zip(first, again, strict=False):
                if one != other:
                    how = "on a second load" if split == "train" else "with another seed"
                    raise Failure(f"{split} task {one.id!r} {how} is {other.id!r} or has changed")
            if len(again) != len(first):
                raise Failure(f"split {split!r} had {len(first)} tasks, then {len(again)}")
        return "train on a second load, test with another seed"

    def ids(self) -> str:
        """A training stream may come back to a task, with its id; a held-out task comes once."""
        seen: dict[str, tuple[str, Task]] = {}
        for split, tasks in self.loaded.items():
            for task in tasks:
                before = seen.setdefault(task.id, (split, task))
                if before != (split, task):
                    raise Failure(f"{task.id!r} is two tasks ({before[0]}, {split})")
        held_out = self.loaded["test"]
        if len({task.id for task in held_out}) < len(held_out):
            raise Failure("a task of 'test' comes twice")
        return f"{len(seen)} ids"

    def overlap(self) -> str:
        train, test = ({json.dumps(task.prompt) for task in self.loaded[split]} for split in ("train", "test"))
        if both := train & test:
            raise Failure(f"{len(both)} prompts are in both, such as {min(both)[:80]}")
        return f"{len(train)} prompts of train, {len(test)} of test"

    def benchmarks(self) -> str:
        benchmarks = list(self.domain.benchmarks())
        names = [benchmark.name for benchmark in benchmarks]
        if not names or len(set(names)) < len(names) or not all(names):
            raise Failure(f"names must be there, and differ, found {names}")
        for benchmark in benchmarks:
            if benchmark.samples < 1 or next(iter(self.domain.tasks(benchmark.split, 0)), None) is None:
                raise Failure(f"benchmark {benchmark.name!r} has {benchmark.samples} samples of no task")
        return ", ".join(names)

    def rebuilt(self) -> str:
        try:
            options = dict(_reference(self.domain).options)
        except CascadeError as cause:
            raise Failure(str(cause), fatal=True) from cause
        (score,) = self._scored([self._row(self._examined()[0], "")])
        if "cannot be opened" in score.error:
            raise Failure(score.error, fatal=True)
        return f"options {json.dumps(options)}" if options else "no options set"

    def right(self) -> str:
        for task in self._examined():
            reference = self.domain.reference(task)
            if reference is not None and not isinstance(reference, str):
                raise Failure(f"the reference of task {task.id!r} is a {type(reference).__name__}, not text")
            self.references += [self._row(task, reference)] if reference is not None else []
        for row, score in zip(self.references, self._scored(self.references), strict=True):
            if score.error or score.value != 1.0:
                raise Failure(f"that of task {row['id']!r}, {row['response'][:80]!r}, {_told(score)}")
        count, of = len(self.references), len(self._examined())
        return (
            f"{count} of {of} tasks have one" if count else "no task has one: what a right answer scores was not seen"
        )

    def hostile(self) -> str:
        tasks = self._examined()[:: max(1, len(self._examined()) // _PROBED)]
        limits = [found for kind, answer in WORTHLESS.items() if (found := self._probe(kind, answer, tasks, 0.0))]
        limits += [found for kind, answer in HOSTILE.items() if (found := self._probe(kind, answer, tasks, _LUCKY))]
        return "; ".join([f"{', '.join([*WORTHLESS, *HOSTILE])}", *limits])

    def _probe(self, kind: str, answer: Answer, tasks: Sequence[Task], lucky: float) -> str:
        """Tries one kind of answer; says how many of them ran into a limit, if any."""
        rows = [self._row(task, answer(self.domain, task)) for task in tasks]
        if len(rows[0]["response"]) >= MEGABYTE:
            rows = rows[:_MEGABYTES]
        scores = self._scored(rows)
        for row, score in zip(rows, scores, strict=True):
            if score.error:
                raise Failure(f"{kind}, for task {row['id']!r}, could not be judged: {score.error}")
        right = [row["id"] for row, score in zip(rows, scores, strict=True) if score.value == 1.0]
        if len(right) > lucky * len(rows):
            raise Failure(f"{kind} scores 1.0 for {len(right)} of {len(rows)} tasks, such as {right[0]!r}")
        limits = sum(score.is_limit for score in scores)
        return f"{kind} ran into a limit for {limits} of {len(rows)} tasks" if limits else ""

    def deterministic(self) -> str:
        rows = self._ordinary()
        _compare(rows, self._scored(rows), self._scored(rows), "the second time", self._slack)
        return f"{len(rows)} answers twice in one process"

    def elsewhere(self) -> str:
        rows = self._ordinary()
        _compare(rows, self._scored(rows), self._here(rows), "in this process", self._slack)
        with self._process() as other:
            _compare(rows, self._scored(rows), other.score(rows), "in another process", self._slack)
        return f"{len(rows)} answers in this and two more"

    def rewards(self) -> str:
        rows = self._ordinary()[:2]
        judged = [(row, score) for row, score in zip(rows, self._scored(rows), strict=True) if score.is_judged]
        group = [{**rows[0], "response": row["response"], "score": score_json(score)} for row, score in judged]
        own = [score.trained for _, score in judged]
        if not group:
            raise Failure("no answer could be judged")
        batch = BatchStats(len(own), min(own), sum(own) / len(own), max(own))
        return f"{self._scorer.rewards('examined', group, batch)}"

    def strange(self) -> str:
        rows = [self._row(task, answer) for task in STRANGE for answer in ("no", "", "<think>so")]
        for row, score in zip(rows, self._scored(rows), strict=True):
            if score.error:
                what = f"{row['response']!r} for {row['id']}"
                raise Failure(f"{what} could not be judged: {score.error}; such a domain must not say judges_any")
        return f"{len(rows)} answers to {len(STRANGE)} tasks"

    def imports(self) -> str:
        if effects := self._traces.imported:
            told = ", ".join(effects)
            raise Failure(f"{self._module} {told}; what a library does is put off by importing it where it is used")
        return f"{self._module} in a fresh process"

    def offline(self) -> str:
        if wishes := self._traces.scored:
            raise Failure(", ".join(wishes))
        return f"{len(self._ordinary()[:_PROBED])} answers, none wanted it"

    def fast(self) -> str:
        rows, seconds = self._ordinary(), []
        for row in rows:
            start = time.perf_counter()
            self._scored([row])
            seconds.append(time.perf_counter() - start)
        told = f"{1000 * sum(seconds) / len(seconds):.1f} ms on average, {1000 * max(seconds):.1f} ms at most"
        allowed = self.scoring.io_wall_seconds if self.domain.lane == "io" else self.scoring.cpu_seconds
        if max(seconds) > allowed / 2:
            raise Failure(f"{told}, of {allowed:g} s allowed")
        return told

    def _examined(self) -> list[Task]:
        return [task for tasks in self.loaded.values() for task in tasks[: self.count]]

    def _ordinary(self) -> list[Row]:
        return [*self.references, *(self._row(task, "no") for task in self._examined()[: self.count])]

    def _row(self, task: Task, response: str) -> Row:
        return {**task_row("examined", task), "response": response}

    @property
    def _module(self) -> str:
        from cascade_core.plugins import registry

        return registry().find("domain", self.domain.name)[1].module.partition(":")[0].strip()

    @property
    def _slack(self) -> float:
        """How much two scores of one answer may differ: not at all, but for a model beside the domain, which rounds otherwise in another batch."""
        return ROUNDING if self.domain.needs else 0.0

    @cached_property
    def _traces(self) -> Traces:
        patience = self.scoring.io_wall_seconds if self.domain.lane == "io" else self.scoring.wall_seconds
        # What runs beside the domain may be asked over a network that is refused there: only its import is watched.
        answers = [] if self.domain.needs else self._ordinary()[:_PROBED]
        return traces(self._module, _reference(self.domain), self.resources, answers, patience)

    @cached_property
    def _scorer(self) -> Scorer:
        return self.stack.enter_context(self._process())

    def _process(self) -> Scorer:
        return Scorer({"examined": _reference(self.domain)}, self.scoring, self.resources)

    def _scored(self, rows: Sequence[Row]) -> list[Score]:
        return self._scorer.score(rows)

    def _here(self, rows: Sequence[Row]) -> list[Score]:
        self.domain.open(self.resources)
        try:
            return [self.domain.score(row_task(row), Response(row["response"], mode=row["mode"])) for row in rows]
        finally:
            self.domain.close()


def _reference(domain: Domain) -> DomainRef:
    """What another process needs to rebuild this very domain: its fields that are not at their defaults."""
    from cascade_core.plugins import registry

    known = registry().domain(domain.name)
    if type(domain) is not known:
        raise ContractError(
            f"the domain that is installed as {domain.name!r} is {known.__module__}.{known.__qualname__}"
        )
    options: dict[str, Any] = {}
    made_of: tuple[Field[Any], ...] = fields(domain) if is_dataclass(domain) else ()
    for option in made_of:
        value = getattr(domain, option.name)
        made = option.default_factory
        default = option.default if made is MISSING else made()
        if option.init and value != default:
            options[option.name] = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    try:  # a tuple was a list in the spec, and a path was text
        options = json.loads(json.dumps(options, allow_nan=False, default=os.fspath))
    except (TypeError, ValueError, RecursionError) as cause:
        raise ContractError(f"the options of a domain must be JSON values, found {options}") from cause
    return registry().reference(domain.name, options)


def _malformed(task: Task) -> str:
    turns = task.prompt if isinstance(task.prompt, list) else []
    if not isinstance(task.id, str) or not task.id:
        return "an id must be text, and not empty"
    if not isinstance(task.prompt, str | list) or not task.prompt:
        return f"a prompt must be text or messages, found a {type(task.prompt).__name__}"
    if not all(isinstance(turn, dict) and {"role", "content"} <= set(turn) for turn in turns):
        return "a message must have role and content"
    if task.mode not in ("", "think", "no_think"):
        return f"a mode must be '', 'think' or 'no_think', found {task.mode!r}"
    if not _is_json([task.answer, task.prompt, task.source, dict(task.meta)]):
        return f"prompt, answer and meta must be JSON values that JSON gives back unchanged, found {task.answer!r:.80}"
    return ""


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _compare(rows: Sequence[Row], first: Sequence[Score], second: Sequence[Score], where: str, slack: float) -> None:
    for row, one, other in zip(rows, first, second, strict=True):
        near = all(
            math.isclose(a, b, rel_tol=slack, abs_tol=slack)
            for a, b in ((one.value, other.value), (one.trained, other.trained))
        )
        if not near or bool(one.error) != bool(other.error):
            raise Failure(f"{row['response'][:80]!r} for task {row['id']!r} {_told(one)}, and {where} {_told(other)}")


def _told(score: Score) -> str:
    if score.error:
        return f"could not be judged: {score.error}"
    return f"scores {score.value:g}" + (f" ({score.note})" if score.note else "")
