"""What a rehearsal finds: mistakes, what was replaced on the way, and what was tried, each a value that prints itself and is JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mistake:
    """One mistake: where it was looked for (`spec`, `data`, `model`, `place`, `verdicts`, `stages`), and a sentence with the cure."""

    phase: str
    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class Replaced:
    """A setting that was tried with another value than the spec gives it; what was left out became `None`. Of the whole spec, `stage` is `""`."""

    stage: str
    setting: str
    before: Any
    after: Any
    reason: str

    def __str__(self) -> str:
        where = f"stage {self.stage}: " if self.stage else ""
        return f"{where}{self.setting} {_short(self.before)} -> {_short(self.after)}: {self.reason}"


@dataclass(frozen=True)
class Lengths:
    """Tokens of the first `count` prompts of a stage (of a demonstration: with its response), and how many of them may be."""

    count: int
    p50: int
    longest: int
    limit: int | None
    what: str = "prompts"

    def __str__(self) -> str:
        allowed = f" of {self.limit} allowed" if self.limit is not None else ""
        return f"the first {self.count} {self.what} have {self.p50} tokens (p50), at most {self.longest}{allowed}"


@dataclass(frozen=True)
class DomainTried:
    """References and worthless answers that a domain judged; seconds are of one verdict. `alike`: what all of them got, if not 0."""

    domain: str
    references: int
    right: int
    judged: int
    failed: int
    p50_seconds: float | None
    longest_seconds: float | None
    alike: float | None = None

    def __str__(self) -> str:
        known = f"{self.right} of {self.references} references score 1.0" if self.references else "no references"
        took = ""
        if self.p50_seconds is not None and self.longest_seconds is not None:
            took = f"; a verdict takes {_time(self.p50_seconds)} (p50), at most {_time(self.longest_seconds)}"
        same = f"; every answer got {self.alike:g}, worthless ones too" if self.alike is not None else ""
        return f"domain {self.domain}: {known}, {self.failed} of {self.judged} answers could not be judged{took}{same}"


@dataclass(frozen=True)
class StageTried:
    """One stage as it was tried: updates made, samples by verdict, seconds of the whole."""

    stage: str
    kind: str
    trainer: str
    steps: int
    done: int
    seconds: float
    lengths: Lengths | None = None
    samples: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        told = [f"{self.done} of {self.steps} steps in {self.seconds:.0f} s"]
        if self.kind == "rl":
            named = ", ".join(f"{count} {name}" for name, count in self.samples.items() if name != "total")
            told.append(f"{self.samples.get('total', 0)} samples: {named}")
        told += [str(self.lengths)] if self.lengths else []
        return f"stage {self.stage} ({self.kind}, {self.trainer}): {'; '.join(told)}"


@dataclass(frozen=True)
class BenchmarkTried:
    """A few tasks of a benchmark, answered by the tiny model: that it can be measured is all that they say."""

    benchmark: str
    tasks: int
    scored: int
    failed: int
    measures: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"benchmark {self.benchmark}: {self.tasks} tasks, {self.scored} answers scored, {self.failed} failed;"
            f" gives {', '.join(self.measures)}"
        )


@dataclass(frozen=True)
class Rehearsal:
    """All of it; `is_whole`: every stage was tried. `folder` is where the files are, `""` where they were removed."""

    mistakes: Sequence[Mistake] = ()
    notes: Sequence[str] = ()
    replaced: Sequence[Replaced] = ()
    domains: Sequence[DomainTried] = ()
    stages: Sequence[StageTried] = ()
    benchmarks: Sequence[BenchmarkTried] = ()
    is_whole: bool = False
    folder: str = ""

    @property
    def status(self) -> int:
        """1 where there is any mistake, else 0."""
        return int(bool(self.mistakes))

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"status": self.status, **asdict(self)}


def _short(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{seconds * 1000:.2g} ms"
