"""The tool that says whether every rl stage of a run raised its own benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TOOL = Path(__file__).parents[1] / "tools" / "gains.py"


def told(run: Path, **stages: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """What the tool says of a run with these stages: their domains, and the low end of each benchmark's gain by its name."""
    for name, stage in stages.items():
        found = {
            benchmark: {
                "domain": benchmark.split("/")[0],
                "change": {"difference": low + 0.1, "low": low, "high": low + 0.2},
            }
            for benchmark, low in stage["low"].items()
        }
        folder = run / "stages" / name
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(
            json.dumps({"stage": name, "kind": "rl", "domains": stage["domains"], "benchmarks": found})
        )
    return subprocess.run([sys.executable, TOOL, run], capture_output=True, text=True, check=False)


def test_stages_that_each_raised_their_own_benchmark_pass(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        a={"domains": ["math"], "low": {"math/test": 0.1, "if/ifeval": -0.5}},
        b={"domains": ["if"], "low": {"if/ifeval": 0.2}},
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.splitlines() == [
        "a  math/test  +0.200 [+0.100, +0.300]",
        "b  if/ifeval  +0.300 [+0.200, +0.400]",
    ]


def test_a_stage_whose_gain_may_be_none_fails(tmp_path: Path) -> None:
    assert told(tmp_path, a={"domains": ["math"], "low": {"math/test": 0.0}}).returncode == 1


def test_a_stage_without_a_benchmark_of_its_own_fails_whatever_others_raised(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        a={"domains": ["math"], "low": {"math/test": 0.1}},
        b={"domains": ["if"], "low": {"math/test": 0.1}},
    )
    assert found.returncode == 1
    assert found.stderr.startswith("no benchmark of the domains of b is measured")


def test_a_run_without_rl_stages_fails(tmp_path: Path) -> None:
    assert told(tmp_path).returncode == 1
