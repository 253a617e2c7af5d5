"""The benchmarks run, in a setting so small that their figures mean nothing, and say what they promise."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
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


def loaded(script: str) -> ModuleType:
    """A benchmark as a module, for one whose whole run needs more than there is here."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{Path(script).stem}", ROOT / "benchmarks" / script)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    # One round of one step says nothing about how long they take, not even that two times differ.
    assert {"rl_trl_seconds", "rl_seconds", "rl_to_trl", "rl_to_bare_loop", "sft_to_bare_loop"} <= found.keys()


@pytest.mark.drill
def test_the_benchmark_of_overlap_tells_what_a_step_waits_for_either_way():
    found = told("overlap.py", "--rounds", "1", "--steps", "2", "--prompts", "1", "--burn", "0.01")
    assert found["step_ratio"] > 0
    for way in ("overlapping", "after"):
        assert 0 <= found[way]["verify_share"] < 1 and found[way]["generate_seconds"] > 0


def test_the_benchmark_of_openrlhf_takes_what_lies_between_the_ends_of_steps():
    overhead = loaded("openrlhf_overhead.py")
    first = overhead.SKIPPED

    def marks(cost: float, steps: int, begin: float = 0.0) -> list[Any]:
        """Steps of a second each; the first ones are dear, and one later step is."""
        found, used = [], 50.0
        for step in range(steps):
            used += 100.0 if step <= first else cost * (7 if step == first + 2 else 1)
            waited = 0.5 * step if cost > 2 else 0.0
            told = {"engine": used - waited, "ours": 0.25 * step, overhead.WAITING: waited}
            found.append(overhead.Mark(step, begin + step, told))
        return found

    alone, ours = marks(1.75, first + 12), marks(2.75, first + 30, begin=0.5)
    found = overhead.compared({"ours": ours, "alone": alone})
    assert (found["alone_cpu_seconds"], found["ours_cpu_seconds"]) == (2.0, 3.0)
    assert (found["ratio"], found["work_ratio"]) == (1.5, 1.25)
    # The first of the one, and what the other did after it, lie where the other side was not at work.
    assert (found["alone_steps"], found["ours_steps"]) == (10, 10)
    assert found["alone_by_process"] == {"engine": 1.75 * 16 / 10, "ours": 0.25}


def test_the_benchmark_of_openrlhf_says_that_its_sides_were_never_at_work_at_once():
    overhead = loaded("openrlhf_overhead.py")
    marks = {
        side: [overhead.Mark(step, begin + step, {"engine": float(step)}) for step in range(20)]
        for side, begin in (("ours", 0.0), ("alone", 18.0))
    }
    with pytest.raises(SystemExit, match="one side was done before the other had made a step that counts"):
        overhead.compared(marks)


LINE = "INFO 11-30 14:00:00 ppo_trainer.py:550] ✨ Global step {}: {{'policy_loss': 0.5}}\n"
QUEUE = """
import time
from contextlib import contextmanager

class MessageQueue:
    @contextmanager
    def acquire_read(self, timeout=None):
        end = time.thread_time() + timeout
        while time.thread_time() < end: pass
        yield "word"
"""
READER = """
import os, time
from importlib.metadata import entry_points
(point,) = entry_points(group="vllm.general_plugins", name="waited")
point.load()()
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
for seconds in (0.1, 0.2):
    with MessageQueue().acquire_read(timeout=seconds) as word:
        end = time.thread_time() + 1.0
        while time.thread_time() < end: pass
print(word, flush=True)
input()
"""


def test_the_benchmark_of_openrlhf_tells_vllms_waiting_for_messages_from_its_work(tmp_path, monkeypatch):
    import psutil

    overhead = loaded("openrlhf_overhead.py")
    place = tmp_path / "vllm" / "distributed" / "device_communicators"
    place.mkdir(parents=True)
    (place / "shm_broadcast.py").write_text(QUEUE, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    environment = overhead.counting(tmp_path / "counter")
    log = tmp_path / "train.log"
    log.write_text(LINE.format(1), "utf-8")
    with subprocess.Popen([sys.executable, "-c", READER], env=environment, stdin=-1, stdout=-1, text=True) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.readline() == "word\n"
        side = overhead.Side(psutil.Process(reader.pid), log, True, tmp_path / "counter")
        side.look()
        used = psutil.Process(reader.pid).cpu_times()
        reader.stdin.write("\n")
    (mark,) = side.marks
    assert 0.3 <= mark.cpu[overhead.WAITING] < 0.35
    assert sum(mark.cpu.values()) == pytest.approx(used.user + used.system, abs=0.05)


def test_the_benchmark_of_openrlhf_leaves_out_steps_that_were_seen_together():
    overhead = loaded("openrlhf_overhead.py")
    marks = [overhead.Mark(step, float(step), {"engine": 3.0 * step}) for step in range(20) if step not in (8, 9)]
    marks.append(overhead.Mark(20, 20.0, {"engine": 60.0, "late": 1.0}))
    found = overhead.per_step(marks, 0.0, 20.0)
    assert [sum(step.values()) for step in found] == [3.0] * (20 - overhead.SKIPPED - 4) + [4.0]
    assert len(overhead.per_step(marks, 0.0, 19.0)) == len(found) - 1
    assert len(overhead.per_step(marks, overhead.SKIPPED + 0.5, 20.0)) == len(found) - 1


def test_the_benchmark_of_openrlhf_counts_the_processes_of_a_training_and_those_that_have_ended(tmp_path):
    import psutil

    overhead = loaded("openrlhf_overhead.py")
    burn = "import time\nwhile time.process_time() < 0.4: pass\n"
    program = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); print(flush=True); input(); {burn}"
    )
    log = tmp_path / "train.log"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}], check=True); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=-1, stdout=-1, text=True) as root:
        assert root.stdin is not None and root.stdout is not None
        side = overhead.Side(psutil.Process(root.pid), log, False, tmp_path)
        side.look()
        assert side.marks == []
        log.write_text(LINE.format(1), "utf-8")
        root.stdout.readline()
        side.look()
        log.write_text(LINE.format(1) + LINE.format(2) + "INFO, half a line", "utf-8")
        root.stdin.write("\n")
        root.stdin.flush()
        root.stdout.readline()
        side.look()
        root.stdin.write("\n")
        root.stdin.flush()
        assert root.wait(60) == 0
    assert [mark.step for mark in side.marks] == [0, 1]
    before, after = (sum(mark.cpu.values()) for mark in side.marks)
    assert 0.35 <= before < after - 0.35 < 5.0  # one child of two levels down had ended by then, and then another


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
