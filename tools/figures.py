"""What finished runs of one spec measured, as one JSON text: run by run, stage by stage, benchmark by benchmark.

    python tools/figures.py RUN... > docs/experiments/cascade.json

Of each stage its wall time in seconds is said too (training and measuring), of each benchmark the primary estimate with its standard error, the
paired change since it was measured last, and the values of its other estimates.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def figures(run: Path) -> dict[str, Any]:
    """One run's seed and stages; a run that is not finished is refused."""
    lock = json.loads((run / "lock.json").read_text("utf-8"))
    stages: dict[str, Any] = {}
    for path in sorted(run.glob("stages/*/metrics.json")):
        stage = json.loads(path.read_text("utf-8"))
        stages[stage["name"]] = {"kind": stage["kind"], "seconds": _spent(stage), "benchmarks": _measured(stage)}
    if len(stages) != 1 + len(lock["spec"]["stages"]):
        raise SystemExit(f"{run} is not finished")
    return {"seed": lock["spec"]["seed"], "stages": stages}


def _spent(stage: dict[str, Any]) -> float:
    return round(sum(stage["seconds"].values()), 1)


def _measured(stage: dict[str, Any]) -> dict[str, Any]:
    return {name: _told(found, found["primary"]) for name, found in stage["benchmarks"].items()}


def _told(found: dict[str, Any], primary: str) -> dict[str, Any]:
    others = {name: estimate["value"] for name, estimate in found["estimates"].items() if name != primary}
    return {**found["estimates"][primary], "change": found.get("change"), "others": others}


if __name__ == "__main__":
    print(json.dumps([figures(Path(run)) for run in sys.argv[1:]], indent=1))
