"""What must be true of a stage that OpenRLHF trained, as functions: a run passes them, and one with a planted fault must not."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
STALE = 5e-3
"""Of |vllm_kl|, the mean over a step's tokens: rounding to bfloat16 on one side gives 1e-3 in the mean over steps and up to 2.5e-3 in one of some
hundred tokens; weights that are one step old give 8e-3 and more in every step."""


def assert_every_sample_was_judged_once(rows: Rows, steps: int, slots: int, samples: int) -> None:
    found = Counter((row["step"], row["group"], row["sample"]) for row in rows)
    every = [(step, f"{step}-{slot}", i) for step in range(steps) for slot in range(slots) for i in range(samples)]
    assert found == Counter(every)


def assert_weights_are_synced(steps: Sequence[Mapping[str, Any]]) -> None:
    """The engines sample with the weights that are trained: in the mean over the steps, and no step is far off, whatever was sampled in it."""
    assert len(steps) > 1, "the first step is sampled with the weights that the engine loaded by itself"
    told = [step.get("vllm_kl") for step in steps]
    away = [math.nan if one is None else abs(one) for one in told]
    assert sum(away) / len(away) < STALE and all(one < 2 * STALE for one in away), f"vllm_kl {away}"


def assert_gradients_follow_advantages(norms: Mapping[int, float], rows: Rows) -> None:
    """A step has a gradient where a sample of it has an advantage, and none where the rewards of each group are equal, as chance may have it.

    Args:
        norms: the gradient's norm in each step.
        rows: every sample of these steps.
    """
    taught = dict.fromkeys(norms, False)
    for row in rows:
        taught[row["step"]] |= row["advantage"] != 0
    assert {step: norm > 0 for step, norm in norms.items()} == taught
    assert all(norm < 1e3 for norm in norms.values()) and sum(taught.values()) > len(taught) / 2


def assert_rewards_follow_the_answers(rows: Rows) -> None:
    """The model has learned the tasks, so that answers which belong to them are often right."""
    mean = statistics.mean(row["score"]["value"] for row in rows)
    assert mean > 0.1, f"of {len(rows)} responses {mean:.1%} are right"


def assert_rewards_vary(rows: Rows) -> None:
    """Every response was judged, some are better than others, and within a group too."""
    assert not any("error" in row["score"] for row in rows)
    assert 0.02 < statistics.mean(row["score"]["value"] for row in rows) < 0.98
    groups: dict[str, set[float]] = {}
    for row in rows:
        groups.setdefault(row["group"], set()).add(row["reward"])
    assert sum(len(found) > 1 for found in groups.values()) >= len(groups) / 5
