"""Judging on Ray actors beside processes of this machine: the same rows, the same number of processes, one run.

A cluster of one node is started here, with as many CPUs as there are workers. Each round has answers in mathematics of its own (those of
`scoring.py`), which both ways judge, each first in every other round; both scorers stand ready before. What counts is the median over the
rounds of one way's time over the other's in the same round: of the clock, and of the CPU time of all processes, Ray's own included.
`single_ms` is one row alone, there and back, the median.

    python benchmarks/ray_scoring.py [--rows 1500] [--rounds 9] [--workers 2]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scoring import Cost, cost, sampled

from cascade_core.plugins import registry
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring


@contextmanager
def cluster(cpus: int) -> Iterator[str]:
    """A cluster of one node; its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    node = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    made = Cluster(initialize_head=True, head_node_args=node)
    try:
        yield made.address
    finally:
        made.shutdown()


def judged(scorer: Scorer, rows: list[Row]) -> Cost:
    found: list[float] = []
    spent = cost(lambda: found.extend(score.value for score in scorer.score(rows)))
    if sum(found) != len(rows) / 2:
        raise SystemExit(f"{sum(found):g} of {len(rows)} answers were judged right, half of them are")
    return spent


def single(scorer: Scorer, rows: list[Row]) -> float:
    """Milliseconds for one row alone, the median."""
    took = []
    for row in rows:
        began = time.perf_counter()
        scorer.score([row])
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)


def measure(rows: int, rounds: int, workers: int) -> dict[str, Any]:
    refs = {"math": registry().reference("math")}
    with (
        cluster(workers) as address,
        Scorer(refs, Scoring(workers=workers)) as here,
        Scorer(refs, Scoring(workers={"ray": {"address": address}})) as there,
    ):
        ways = {"here": here, "ray": there}
        for scorer in ways.values():
            judged(scorer, sampled(200 * workers, -1))
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for number in range(rounds):
            fresh = sampled(rows, number)
            for name in sorted(ways, reverse=number % 2 == 1):
                costs[name].append(judged(ways[name], fresh))
            print(
                f"round {number}: " + ", ".join(f"{name} {rows / costs[name][-1].wall:.0f} rows/s" for name in ways),
                flush=True,
            )
        alone = {name: single(scorer, sampled(60, -2)) for name, scorer in ways.items()}
    pairs = list(zip(costs["ray"], costs["here"], strict=True))
    return {
        "rows": rows,
        "rounds": rounds,
        "workers": workers,
        "rows_per_second_here": round(statistics.median(rows / one.wall for one in costs["here"])),
        "rows_per_second_ray": round(statistics.median(rows / one.wall for one in costs["ray"])),
        "ray_to_here_wall": round(statistics.median(ray.wall / own.wall for ray, own in pairs), 3),
        "ray_to_here_cpu": round(statistics.median(ray.cpu / own.cpu for ray, own in pairs), 3),
        "single_ms_here": round(alone["here"], 2),
        "single_ms_ray": round(alone["ray"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500, help="rows of a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # Ray's tips
    print(json.dumps(measure(args.rows, args.rounds, args.workers)))


if __name__ == "__main__":
    main()
