"""The benchmarks run, in a setting so small that their figures mean nothing, and say what they promise."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox.testing import require_engine

ROOT = Path(__file__).parents[1]
WORDS = re.findall(r"^(bench-[a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def told(script: str, *arguments: str) -> dict[str, Any]:
    """The last line of a benchmark that ended well."""
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.drill
def test_the_benchmark_of_scoring_tells_its_ratios():
    found = told("scoring.py", "--rows", "36", "--rounds", "1", "--hang-rows", "100", "--stream", "300,900")
    ratios = (
        "pool_to_math_verify_per_cpu",
        "pool_to_math_verify_per_worker",
        "pool_to_own_verifier_per_cpu",
        "two_workers_to_one",
        "two_workers_to_one_by_cpu",
        "hang_wall_to_expected",
        "stream_memory_ratio",
    )
    assert [name for name in ratios if not found[name] > 0] == []
    assert (found["hangs"], found["stream_rows"]) == (1, [300, 900])
    assert 1.0 < found["hang_cpu_seconds_each"] < 20.0  # its limit is one second


@pytest.mark.drill
def test_the_benchmark_of_judging_on_ray_tells_its_ratios():
    found = told("ray_scoring.py", "--rows", "60", "--rounds", "1")
    assert found["ray_to_here_wall"] > 0 and found["ray_to_here_cpu"] > 0
    assert found["single_ms_here"] > 0 and 0 < found["single_ms_ray"] < 5000


@pytest.mark.drill
def test_the_benchmark_of_a_training_step_tells_its_ratios():
    found = told("trl_overhead.py", "--rounds", "1", "--steps", "1,2", "--prompts", "1")
    assert [name for name in ("rl_to_trl", "rl_to_bare_loop", "sft_to_bare_loop") if name not in found] == []
    assert found["rl_trl_seconds"] != found["rl_seconds"]


@pytest.mark.drill
def test_the_benchmark_of_overlap_tells_what_a_step_waits_for_either_way():
    found = told("overlap.py", "--rounds", "1", "--steps", "2", "--prompts", "1", "--burn", "0.01")
    assert found["step_ratio"] > 0
    for way in ("overlapping", "after"):
        assert 0 <= found[way]["verify_share"] < 1 and found[way]["generate_seconds"] > 0


@pytest.mark.drill
def test_the_benchmark_of_the_sandbox_tells_its_ratios():
    require_engine()
    found = told("sandbox.py", "--rounds", "1", "--runs", "2", "--answers", "2")
    for tests in ("1 test", "20 tests"):
        ratios = found[f"python, {tests}"]
        assert {"bare", "docker", "process", "docker run", "docker exec"} <= set(ratios)
        assert ratios["bare"] == {"cpu": 1.0, "rate": 1.0} and 0.5 < ratios["docker"]["cpu"] < 20
    assert found["answers"] == 2 and found["seconds"] > 0


def test_the_benchmark_of_instruction_checks_ends_well_without_the_packages_it_compares_with():
    found = told("if_verifier.py")
    assert {"ratio", "packages"} <= set(found)
    assert found["checks_per_cpu_second"] > 0
    assert (found["firm_cases_wrong"], found["firm_cases"] > 100) == (0, True)


def test_every_word_for_a_benchmark_has_its_section_in_the_document():
    document = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## `make (bench-[a-z]+)`", document, re.M) == WORDS
    assert {"bench-scoring", "bench-if", "bench-trl"} <= set(WORDS)
