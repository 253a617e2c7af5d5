"""What benchmarks of the domain say: of the policy win rates and how it is liked, of a reward model how often it agrees with people.

Rows of the policy carry the metrics of `RLHF.score`; rows of a reward model are one a pair, with the value 1 where the better
side scored higher, 0 where the worse did, and 0.5 where both scored the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cascade_core import Benchmark
from cascade_core.correlation import within
from cascade_core.domain import Estimate
from cascade_core.estimates import mean, summarise

SECTIONS: dict[str, dict[str, int]] = {
    "chat": {
        "alpacaeval-easy": 100,
        "alpacaeval-length": 95,
        "alpacaeval-hard": 95,
        "mt-bench-easy": 28,
        "mt-bench-med": 40,
    },
    "chat-hard": {
        "mt-bench-hard": 37,
        "llmbar-natural": 100,
        "llmbar-adver-neighbor": 134,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
        "llmbar-adver-manual": 46,
    },
    "safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 250,
        "xstest-should-respond": 154,
        "donotanswer": 136,
    },
    "reasoning": {"math-prm": 984}
    | {f"hep-{language}": 164 for language in ("cpp", "go", "java", "js", "python", "rust")},
}
"""RewardBench's four sections: their subsets and the weight of each (arXiv 2403.13787, section 4.2; `rewardbench/constants.py` of its
repository, which weighs `math-prm` like all of the code, 984, and the two `xstest` subsets as given here)."""

_SURFACES = ("length", "lists", "headings", "bold")


@dataclass(frozen=True)
class WinRate(Benchmark):
    """How the policy's answers to fixed prompts are liked, beside fixed references."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """`avg@k` of the value first; `win_rate` against the references, ties half; the mean `score`, `reference_score` and, of the generator,
        hidden `quality`; the shares `cut` and `reference_cut` of texts that were too long for the reward model; the correlation of score with
        length and formatting.

        The errors are those of a mean over tasks, so that the 95 % interval is the normal one, ± 1.96 of them. The prompts and references
        are the same after every stage: what moves in `score` is the policy, what moves in `reference_score` is the reward model.
        """
        found = {name: one for name, one in summarise(rows).items() if name.startswith("avg@")}
        judged = [row for row in rows if not row["score"].get("error")]
        named = {"win": "win_rate", "raw": "score", "reference_raw": "reference_score", "quality": "quality"}
        named |= {"cut": "cut", "reference_cut": "reference_cut"}
        for metric, name in named.items():
            if values := _by_task(judged, metric):
                found[name] = mean([math.fsum(one) / len(one) for one in values.values()])
        for surface in _SURFACES:
            if (one := correlation(judged, f"surface_{surface}")) is not None:
                found[f"{surface}_correlation"] = one
        return found


@dataclass(frozen=True)
class Pairs(Benchmark):
    """How often a reward model agrees with people on pairs that it was not trained on."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """`accuracy`, and by the pairs' subset where they have several."""
        values = _by_subset(rows)
        found = {"accuracy": mean([value for one in values.values() for value in one])} if values else {}
        if len(values) > 1:
            found |= {f"accuracy/{name}": mean(one) for name, one in sorted(values.items())}
        return found


@dataclass(frozen=True)
class RewardBench(Benchmark):
    """Pairs of RewardBench's subsets, averaged as RewardBench does."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """`overall`, the plain mean of the sections that are there; each section; each subset, those of no section too.

        A section is the mean of its subsets by RewardBench's own weights, not by how many pairs this file has.
        """
        subsets = {name: mean(values) for name, values in sorted(_by_subset(rows).items())}
        sections: dict[str, Estimate] = {}
        for section, weights in SECTIONS.items():
            if there := {name: weight for name, weight in weights.items() if name in subsets}:
                sections[section] = _weighted([(subsets[name], weight) for name, weight in there.items()])
        overall = _weighted([(one, 1) for one in (sections or subsets).values()])
        return {"overall": overall, **sections, **{f"accuracy/{name}": one for name, one in subsets.items()}}


@dataclass(frozen=True)
class Arena(Benchmark):
    """The policy against a baseline's answers, decided by a judge."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """`win_rate`: the mean over questions of what both orders gave; its 95 % interval is the normal one, ± 1.96 errors."""
        averages = [one for name, one in summarise(rows).items() if name.startswith("avg@")]
        return dict(zip(("win_rate",), averages, strict=False))


def correlation(rows: Sequence[Mapping[str, Any]], metric: str) -> Estimate | None:
    """Pearson's correlation of the raw score with a metric; `None` where either does not vary.

    Inside tasks where each has several samples, since that is what a group's advantages follow; else over all tasks, of the distance to the
    reference. Its standard error is sqrt((1 - r²) / (n - 2)).
    """
    scores, others = _by_task(rows, "raw"), _by_task(rows, metric)
    if scores and max(map(len, scores.values())) < 2:
        scores, others = {("", ""): _all(_by_task(rows, "distance"))}, {("", ""): _all(others)}
    groups = [
        list(zip(scores[task], others[task], strict=True))
        for task in scores
        if len(scores[task]) == len(others.get(task, ()))
    ]
    if (found := within(groups)) is None:
        return None
    r, count = found
    return Estimate(r, math.sqrt((1 - r * r) / (count - 2)), count)


def _all(values: Mapping[Any, Sequence[float]]) -> list[float]:
    return [value for one in values.values() for value in one]


def _by_task(rows: Iterable[Mapping[str, Any]], metric: str) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if (value := row["score"].get("metrics", {}).get(metric)) is not None:
            found.setdefault((str(row.get("domain", "")), str(row.get("id", ""))), []).append(float(value))
    return found


def _by_subset(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        if not row["score"].get("error"):
            subset = str((row.get("meta") or {}).get("subset") or row.get("source") or "")
            found.setdefault(subset, []).append(float(row["score"]["value"]))
    return found


def _weighted(parts: Sequence[tuple[Estimate, float]]) -> Estimate:
    """A weighted mean of independent estimates."""
    whole = math.fsum(weight for _, weight in parts)
    value = math.fsum(one.value * weight for one, weight in parts) / whole
    error = math.sqrt(math.fsum((one.stderr * weight) ** 2 for one, weight in parts)) / whole
    return Estimate(value, error, sum(one.n for one, _ in parts))
