"""Preference pairs: as rows, as benchmarks of a reward model, and what is refused of them.

A pair's row is its task's, with `chosen` and `rejected`. A pair whose sides are equal, or of which one is empty, teaches nothing and
measures nothing: it is left out and counted. A benchmark `of="reward_model"` is measured on the checkpoint of a `reward_model`
stage: each pair gets both raw scores, its value is 1 where the chosen side has the higher, 0.5 where both have the same, else 0.
Nothing is sampled, and no verifier is asked.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core import rows as rowfile
from cascade_core.domain import Benchmark, Domain, Estimate, Pair, Score
from cascade_core.errors import SpecError, TooManyFailures
from cascade_core.estimates import counts, mean, paired
from cascade_core.rows import Row, score_json, task_row

if TYPE_CHECKING:
    from cascade_core.reward_model import RewardReader
    from cascade_core.settings import Evaluation

OF = "reward_model"
MOST_PAIRS = 100_000


def pair_row(domain: str, pair: Pair) -> Row:
    """A pair as a row."""
    return {**task_row(domain, pair.task), "chosen": pair.chosen, "rejected": pair.rejected}


def unusable(pair: Pair) -> str:
    """Why a pair is left out, `""` where it is not."""
    for side in ("chosen", "rejected"):
        if not isinstance(getattr(pair, side), str):
            return f"its {side} side is no text"
        if not getattr(pair, side).strip():
            return f"its {side} side is empty"
    return "its sides are equal" if pair.chosen.strip() == pair.rejected.strip() else ""


@dataclass(frozen=True)
class PairExam:
    """One benchmark of reward models, ready to run: its pairs, and how many were left out."""

    name: str
    benchmark: Benchmark
    tasks: tuple[Row, ...]
    left_out: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the pairs: what must not change inside a run."""
        return hashlib.sha256(json.dumps(list(self.tasks), sort_keys=True).encode()).hexdigest()


def exams(domains: Mapping[str, Domain], settings: Evaluation) -> list[PairExam]:
    """All benchmarks of reward models that the spec wants, with their pairs loaded.

    Raises:
        SpecError: one has no pairs, or no end.
    """
    found = [
        (f"{name}/{one.name}", name, domain, one) for name, domain in domains.items() for one in domain.benchmarks()
    ]
    wanted = [one for one in found if settings.benchmarks is None or one[0] in settings.benchmarks]
    return [_exam(*one, settings) for one in wanted if one[3].of == OF]


def _exam(name: str, owner: str, domain: Domain, benchmark: Benchmark, settings: Evaluation) -> PairExam:
    limits = [limit for limit in (benchmark.limit, settings.limit) if limit is not None]
    most = min(limits, default=MOST_PAIRS)
    pairs = list(islice(domain.pairs(benchmark.split, 0), most))
    if not limits and len(pairs) == MOST_PAIRS:
        raise SpecError(f"benchmark {name!r} has {MOST_PAIRS} pairs and more; set evaluation.limit")
    tasks = tuple(pair_row(owner, pair) for pair in pairs if not unusable(pair))
    if not tasks:
        raise SpecError(f"benchmark {name!r} has no pairs of the split {benchmark.split!r} whose sides differ")
    if len({row["id"] for row in tasks}) < len(tasks):
        raise SpecError(f"benchmark {name!r} has two pairs with one id; ids must be unique in a domain")
    return PairExam(name, benchmark, tasks, len(pairs) - len(tasks))


def take(exam: PairExam, reader: RewardReader, path: Path, *, max_error_rate: float) -> None:
    """Reads both scores of every pair and writes the rows to `path`.

    Raises:
        TooManyFailures: more pairs than allowed could not be read: longer than the model's context, or a score that is no number.
    """
    from cascade_core.reward_model import tokens

    sides = [tokens(reader.tokenizer, row, row[side]) for row in exam.tasks for side in ("chosen", "rejected")]
    fits = [reader.context is None or len(side.ids) <= reader.context for side in sides]
    told = iter(reader.scores([side for side, is_fitting in zip(sides, fits, strict=True) if is_fitting]))
    scores = [next(told) if is_fitting else None for is_fitting in fits]
    judged = []
    for place, row in enumerate(exam.tasks):
        score = _judged(scores[2 * place], scores[2 * place + 1], reader.context)
        size = max(len(side.ids) for side in sides[2 * place : 2 * place + 2])
        more = {"response": row["chosen"], "truncated": False, "tokens": size, "sample": 0}
        judged.append({**row, **more, "score": score_json(score)})
    failed = [row["score"]["error"] for row in judged if "error" in row["score"]]
    if len(failed) > max_error_rate * len(judged):
        raise TooManyFailures(
            f"benchmark {exam.name!r}: {len(failed)} of {len(judged)} pairs could not be read, more than max_error_rate"
            f" {max_error_rate:g} allows; the first: {failed[0]}"
        )
    rowfile.write(path, judged)


def _judged(chosen: float | None, rejected: float | None, context: int | None) -> Score:
    if chosen is None or rejected is None:
        return Score.failed(f"longer than the model's context of {context} tokens")
    if not (math.isfinite(chosen) and math.isfinite(rejected)):
        return Score.failed(f"a score is no number: {chosen} and {rejected}")
    value = 0.5 if chosen == rejected else float(chosen > rejected)
    return Score(value, note=f"{chosen:.4g} against {rejected:.4g}", metrics={"chosen": chosen, "rejected": rejected})


def loss(rows: Iterable[Mapping[str, Any]]) -> Estimate:
    """The mean over judged pairs of Bradley and Terry's loss, -log sigmoid(chosen - rejected), in nats."""
    told = [row["score"]["metrics"] for row in rows if "error" not in row["score"]]
    return mean([_softplus(one["rejected"] - one["chosen"]) for one in told])


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def summarise(exam: PairExam, rows: Sequence[Row]) -> Mapping[str, Estimate]:
    """What the benchmark makes of its rows; where it leaves that to the core, accuracy and loss."""
    from cascade_core.evaluate import summarised

    if type(exam.benchmark).summarise is not Benchmark.summarise:
        return summarised(exam.name, exam.benchmark, rows)
    values = [row["score"]["value"] for row in rows if "error" not in row["score"]]
    return {"accuracy": mean(values), "loss": loss(rows)}


def report(exam: PairExam, path: Path, before: Path | None) -> dict[str, Any]:
    """What `metrics.json` says of a benchmark whose rows lie in `path`, compared in pairs with the rows in `before`."""
    rows = list(rowfile.read(path))
    estimates = summarise(exam, rows)
    domain, _, benchmark = exam.name.partition("/")
    result: dict[str, Any] = {
        "domain": domain,
        "benchmark": benchmark,
        "of": OF,
        "samples": 1,
        "estimates": {key: asdict(estimate) for key, estimate in estimates.items()},
        "primary": next(iter(estimates)),
        **counts(rows),
        "truncated": 0,
        "response_tokens": round(sum(row["tokens"] for row in rows) / len(rows), 3),
        "loss": loss(rows).value,
        "left_out": exam.left_out,
    }
    change = paired(rowfile.read(before), rows) if before is not None else None
    if change is not None:
        result["change"] = asdict(change)
    return result
