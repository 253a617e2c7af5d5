"""Samples, scores and averages: every benchmark of every domain, on the same tasks every time.

The rows of a benchmark go to `eval/<domain>/<benchmark>.jsonl`, whole or not at all: what exists is not sampled again.
A mean never stands alone: scored/limit/failed/total are beside it. Failures are out of every mean; more of them than
`max_error_rate` end the evaluation. Stages are compared in pairs, on the same tasks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cascade_core import rows as rowfile
from cascade_core.completions import Key
from cascade_core.conversation import converses
from cascade_core.domain import Benchmark, Domain, Estimate, Score
from cascade_core.errors import CascadeError, PluginBroken, SpecError, TooManyFailures
from cascade_core.estimates import counts, paired
from cascade_core.pairs import PairExam
from cascade_core.prompts import prompt_key
from cascade_core.request import Handed
from cascade_core.rows import Row, score_json, task_row
from cascade_core.sampling import Sample
from cascade_core.scoring import Scorer
from cascade_core.settings import Evaluation, Sampling

MODES = ("", "think", "no_think")
# A benchmark over an endless generator must say how many tasks it means.
MOST_TASKS = 100_000
# As in training, the failure rate is one of this many samples or more: a single failure among forty ends nothing.
FEWEST = 500


class Sampler(Protocol):
    """Whatever samples responses from one model."""

    def sample(self, prompts: Sequence[Row], samples: int, sampling: Sampling, seed: int) -> list[list[Sample]]:
        """`samples` responses to each prompt."""


@runtime_checkable
class Streamer(Protocol):
    """Whatever has a model's responses one by one, each as soon as it has ended; it knows its seed."""

    def stream(self, exam: Exam, keys: Sequence[Key]) -> Iterator[tuple[Key, Sample]]:
        """The responses with these keys, in any order."""


@dataclass(frozen=True)
class Exam:
    """One benchmark, ready to run: its tasks, samples per task and sampling."""

    name: str
    benchmark: Benchmark
    tasks: tuple[Row, ...]
    samples: int
    sampling: Sampling

    @property
    def fingerprint(self) -> str:
        """SHA-256 of tasks, samples and sampling: what must not change inside a run."""
        whole = [list(self.tasks), self.samples, self.sampling.model_dump()]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    @property
    def keys(self) -> list[Key]:
        """The keys of all responses, in the order of the tasks."""
        return [(row["id"], sample) for row in self.tasks for sample in range(self.samples)]


def exams(domains: Mapping[str, Domain], settings: Evaluation) -> list[Exam]:
    """All benchmarks that the spec wants, with their tasks loaded.

    Raises:
        SpecError: a benchmark that is named does not exist, or one has no tasks or no end.
    """
    found = {
        f"{name}/{benchmark.name}": (name, domain, benchmark)
        for name, domain in domains.items()
        for benchmark in domain.benchmarks()
    }
    unknown = [name for name in settings.benchmarks or () if name not in found]
    if unknown:
        raise SpecError(
            f"evaluation.benchmarks names {unknown[0]!r}, which no domain offers (offered: {', '.join(found)})"
        )
    wanted = [name for name in found if settings.benchmarks is None or name in settings.benchmarks]
    return [_exam(name, *found[name], settings) for name in wanted if found[name][2].of == "policy"]


def _exam(name: str, owner: str, domain: Domain, benchmark: Benchmark, settings: Evaluation) -> Exam:
    if converses(domain):
        raise SpecError(
            f"benchmark {name!r} is of a domain that holds conversations (Domain.reply), and evaluation samples one turn; name the"
            " benchmarks of other domains in evaluation.benchmarks"
        )
    limits = [limit for limit in (benchmark.limit, settings.limit) if limit is not None]
    most = min(limits, default=MOST_TASKS)
    tasks = tuple(task_row(owner, task) for task in islice(domain.tasks(benchmark.split, 0), most))
    if not tasks or (not limits and len(tasks) == MOST_TASKS):
        what = "no tasks" if not tasks else f"{MOST_TASKS} tasks and more; set evaluation.limit"
        raise SpecError(f"benchmark {name!r} has {what}")
    if len({row["id"] for row in tasks}) < len(tasks):
        raise SpecError(f"benchmark {name!r} has two tasks with one id; ids must be unique in a domain")
    if benchmark.mode not in MODES:
        raise SpecError(f"benchmark {name!r} has the mode {benchmark.mode!r} (allowed: think, no_think, or none)")
    if benchmark.mode:
        tasks = tuple({**row, "mode": benchmark.mode} for row in tasks)
    unknown = sorted(set(benchmark.sampling) - set(Sampling.model_fields))
    if unknown:
        raise SpecError(
            f"benchmark {name!r} sets sampling {unknown[0]!r} (allowed: {', '.join(Sampling.model_fields)})"
        )
    sampling = Sampling.model_validate({**settings.sampling.model_dump(), **benchmark.sampling})
    return Exam(name, benchmark, tasks, settings.samples or benchmark.samples, sampling)


def held_out(found: Iterable[Exam | PairExam]) -> frozenset[str]:
    """The keys of all prompts that are measured on and so never trained on."""
    return frozenset(prompt_key(row["prompt"]) for exam in found for row in exam.tasks)


def take(
    exam: Exam, sampler: Sampler | Streamer, scorer: Scorer, path: Path, *, seed: int, max_error_rate: float
) -> None:
    """Samples and scores one benchmark and writes its rows to `path`; what a `Streamer` has is judged as it comes.

    Raises:
        TooManyFailures: more samples than allowed could not be judged; only they are written, to `*.failed.jsonl`.
    """
    if isinstance(sampler, Streamer):
        rows, scores = _streamed(exam, sampler, scorer)
    else:
        drawn = sampler.sample(exam.tasks, exam.samples, exam.sampling, seed)
        rows = [
            _row(task, index, one)
            for task, samples in zip(exam.tasks, drawn, strict=True)
            for index, one in enumerate(samples)
        ]
        scores = scorer.score(rows)
    judged = [{**row, "score": score_json(score)} for row, score in zip(rows, scores, strict=True)]
    failed = [score for score in scores if score.error]
    kept = path.with_suffix(".failed.jsonl")
    if len(failed) > max_error_rate * max(len(scores), FEWEST) or len(failed) == len(scores):
        rowfile.write(kept, (row for row in judged if "error" in row["score"]))
        raise TooManyFailures(
            f"benchmark {exam.name!r}: {len(failed)} of {len(scores)} responses could not be judged, more than max_error_rate "
            f"{max_error_rate:g} allows; the first: {failed[0].error}; all are in {kept}"
        )
    rowfile.write(path, judged)
    kept.unlink(missing_ok=True)


def _streamed(exam: Exam, sampler: Streamer, scorer: Scorer) -> tuple[list[Row], list[Score]]:
    """All rows in the order of the tasks, and their scores."""
    tasks = {task["id"]: task for task in exam.tasks}
    found: dict[Key, Row] = {}
    handed: Handed = {}
    for key, one in sampler.stream(exam, exam.keys):
        found[key] = _row(tasks[key[0]], key[1], one)
        scorer.hand_over(found[key], handed)
    rows = [found[key] for key in exam.keys]
    return rows, [verdict.score for verdict in scorer.verdicts(rows, handed)]


def _row(task: Row, index: int, one: Sample) -> Row:
    return {
        **task,
        "response": one.text,
        "prefill": one.prefill,
        "truncated": one.truncated,
        "tokens": one.tokens,
        "sample": index,
    }


def summarised(name: str, benchmark: Benchmark, rows: Sequence[Row]) -> Mapping[str, Estimate]:
    """What a benchmark makes of its rows; it may be a stranger's.

    Raises:
        PluginBroken: it cannot sum up, or makes something else of them than estimates.
    """
    try:
        estimates = benchmark.summarise(rows)
    except CascadeError:
        raise
    except Exception as cause:
        raise PluginBroken(f"benchmark {name!r} cannot sum up: {type(cause).__name__}: {cause}") from cause
    if not isinstance(estimates, Mapping) or not all(isinstance(one, Estimate) for one in estimates.values()):
        raise PluginBroken(f"benchmark {name!r} must sum up as names to Estimate, found {estimates!r:.80}")
    if not estimates:
        raise PluginBroken(f"benchmark {name!r} sums up as nothing, though {len(rows)} rows were judged")
    return estimates


def report(exam: Exam, path: Path, before: Path | None) -> dict[str, Any]:
    """What `metrics.json` says of a benchmark whose rows lie in `path`, compared in pairs with the rows in `before`."""
    rows = list(rowfile.read(path))
    estimates = summarised(exam.name, exam.benchmark, rows)
    domain, _, benchmark = exam.name.partition("/")
    result: dict[str, Any] = {
        "domain": domain,
        "benchmark": benchmark,
        "samples": exam.samples,
        "sampling": exam.sampling.model_dump(),
        "estimates": {key: asdict(estimate) for key, estimate in estimates.items()},
        "primary": next(iter(estimates)),
        **counts(rows),
        "truncated": sum(bool(row["truncated"]) for row in rows),
        "response_tokens": round(sum(row["tokens"] for row in rows) / len(rows), 3),
    }
    change = paired(rowfile.read(before), rows) if before is not None else None
    if change is not None:
        result["change"] = asdict(change)
    return result
