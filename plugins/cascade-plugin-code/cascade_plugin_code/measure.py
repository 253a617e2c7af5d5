"""What a benchmark of programs reports: avg@k and pass@k of the verdicts, and the share of tests that were passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cascade_core import Benchmark, Estimate
from cascade_core.estimates import mean

TESTS_PASSED = "tests_passed"


class Measured(Benchmark):
    """A benchmark whose verdicts carry the metric `tests_passed`."""

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """The usual estimates, and `tests_passed`: the mean over tasks of the share of tests that a judged sample passed."""
        shares: dict[str, list[float]] = {}
        for row in rows:
            score = row["score"]
            share = score.get("metrics", {}).get(TESTS_PASSED)
            if not score.get("error") and share is not None:
                shares.setdefault(str(row["id"]), []).append(float(share))
        estimates = dict(super().summarise(rows))
        if shares:
            estimates[TESTS_PASSED] = mean([fmean(values) for values in shares.values()])
        return estimates
