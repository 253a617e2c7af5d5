"""IFEval's four figures over scored rows: prompt and instruction level, strict and loose.

A prompt counts as one; at instruction level every instruction counts as one, so a prompt weighs what it asks
(IFEval, arXiv 2311.07911, section 2.2). Standard errors are over prompts, the samples of one prompt being one mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_core import Benchmark, Estimate

PROMPT = ("prompt_strict", "prompt_loose")
INSTRUCTION = ("instruction_strict", "instruction_loose")


class IFEvalBenchmark(Benchmark):
    """A benchmark whose table also shows the four figures."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """The core's figures, then the four; only rows that were judged enter."""
        return {**super().summarise(rows), **figures(rows)}


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """The four figures; empty where no row carries them."""
    prompts: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for row in rows:
        score = row.get("score") or {}
        if not score.get("error") and "prompt_strict" in score.get("metrics", {}):
            prompts.setdefault((str(row.get("domain")), str(row["id"])), []).append(score["metrics"])
    if not prompts:
        return {}
    found = {name: _ratio([(_mean(samples, name), 1.0) for samples in prompts.values()]) for name in PROMPT}
    for name in INSTRUCTION:
        pairs = [(_mean(samples, name), samples[0]["instructions"]) for samples in prompts.values()]
        found[name] = _ratio([(share * count, count) for share, count in pairs])
    return found


def _mean(samples: Sequence[Mapping[str, float]], name: str) -> float:
    return math.fsum(sample[name] for sample in samples) / len(samples)


def _ratio(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """Sum over sum, with the standard error of a ratio of means (Cochran, Sampling Techniques, 6.4)."""
    n = len(pairs)
    below = math.fsum(weight for _, weight in pairs)
    value = math.fsum(part for part, _ in pairs) / below
    if n == 1:
        return Estimate(value, 0.5, 1)
    squares = math.fsum((part - value * weight) ** 2 for part, weight in pairs)
    return Estimate(value, math.sqrt(squares * n / (n - 1)) / below, n)
