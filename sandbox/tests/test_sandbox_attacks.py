"""Hostile programs in the containers, and those that only use up too much without any: each is followed by an honest one in the same place."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest
from cascade_sandbox import Input, Limits, Program, Result, Sandbox, docker_sandbox, images
from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.process import ProcessSandbox
from cascade_sandbox.testing import require_engine

pytestmark = pytest.mark.drill

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/hostile_programs.jsonl").read_text().splitlines()]
GIVEN = {row["name"]: row["program"] for row in ROWS}
LIMITS = Limits(cpu_seconds=0.5, wall_seconds=1.5, output_bytes=1 << 20)
ROOMY = Limits(cpu_seconds=5, wall_seconds=40, output_bytes=1 << 20)
"""Of programs that end by themselves or by what they print, however slow the machine is."""
HONEST = Limits(cpu_seconds=5, wall_seconds=40)
FOR_PROCESS = [
    *("orphaned_zombies", "daemon_that_outlives_the_run", "is_the_daemon_alive", "children_eat_the_time"),
    *("timers_and_alarms", "names_of_all_kinds", "plays_with_its_descriptors"),
    *("forged_frames", "core_dumps", "output_of_a_gigabyte", "daemons_of_all_kinds", "vfork_that_never_ends"),
]
"""What the process sandbox stands; the others would do to this machine what they say."""

ENDS = {
    **dict.fromkeys(("endless_output", "output_of_a_gigabyte"), "output"),
    **dict.fromkeys(("endless_loop", "sleep_for_ever", "close_stdout_then_sleep", "ignore_every_signal"), "timeout"),
    **dict.fromkeys(("ends_oddly", "timers_and_alarms", "children_eat_the_time", "errors_without_end"), "timeout"),
    **dict.fromkeys(("daemon_that_outlives_the_run", "daemons_of_all_kinds", "deep_directories", "network"), "ok"),
}
"""Where only one verdict is right."""

LOOK = f"""
import os
found = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
found += [d for d in (".", "/tmp", "/dev/shm", "/dev/mqueue") if os.path.isdir(d) and os.listdir(d)]
with open("/proc/net/unix") as file: found += [line for line in file if {hostile.MARK!r} in line]
with open("room", "wb") as file: file.write(bytes(200 << 20))
for i in range(1000): open(f"room{{i}}", "w").close()
for i in range(20):
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
print(found)
"""
"""Finds every process and file beside its own, and needs most of the room."""


@pytest.fixture(scope="module")
def docker(docker_engine: Engine) -> Iterator[DockerSandbox]:
    with docker_sandbox(slots=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def cpp() -> Iterator[DockerSandbox]:
    require_engine("cpp")
    with docker_sandbox(slots=1, image=images.name("cpp")) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(1) as sandbox:
        yield sandbox


def attack(sandbox: Sandbox, source: str, language: str = "python", limits: Limits = LIMITS) -> Result:
    """Runs it, with nothing breached, and an honest program after it."""
    (result,) = sandbox.run(Program(source.replace("MARK", hostile.MARK), language), [Input()], limits)
    breaches = [line for line in result.stdout.decode("utf-8", "replace").splitlines() if "BREACH" in line]
    assert not breaches, breaches[:5]
    begin = time.monotonic()
    (honest,) = sandbox.run(Program("print(int(input()) + 1)"), [Input(b"41\n")], HONEST)
    assert (honest.verdict, honest.stdout) == ("ok", b"42\n")
    assert time.monotonic() - begin < 60
    return result


def nothing_is_left(sandbox: DockerSandbox) -> None:
    (look,) = sandbox.run(Program(LOOK), [Input()], HONEST)
    assert (look.verdict, look.stdout) == ("ok", b"[]\n"), look
    assert sandbox.status()["recreated"] == {}


def limits(name: str) -> Limits:
    return ROOMY if ENDS.get(name) in ("ok", "output") else LIMITS


def right_end(name: str, result: Result) -> bool:
    return result.verdict == ENDS.get(name, result.verdict)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GIVEN, *hostile.PYTHON])
def test_a_container_stands(docker: DockerSandbox, name: str) -> None:
    result = attack(docker, {**GIVEN, **hostile.PYTHON}[name], limits=limits(name))
    nothing_is_left(docker)
    assert right_end(name, result), result


@pytest.mark.slow
@pytest.mark.parametrize("name", FOR_PROCESS)
def test_a_process_group_stands(process: ProcessSandbox, name: str) -> None:
    assert right_end(name, attack(process, {**GIVEN, **hostile.PYTHON}[name], limits=limits(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", hostile.CPP)
def test_a_compiler_that_is_attacked_stands(cpp: DockerSandbox, name: str) -> None:
    attack(cpp, hostile.CPP[name], "c++17")
    nothing_is_left(cpp)


def test_nobody_pays_for_a_fork_bomb(docker: DockerSandbox) -> None:
    attack(docker, GIVEN["fork_bomb"])
    results = [docker.run(Program("print(1)"), [Input()], Limits(cpu_seconds=2, wall_seconds=20))[0] for _ in range(5)]
    assert [result.verdict for result in results] == ["ok"] * 5


@pytest.mark.parametrize("size", [5 << 20])
def test_a_source_of_megabytes_runs(docker: DockerSandbox, process: ProcessSandbox, size: int) -> None:
    source = b"x = '''" + b"y" * size + b"'''\nprint(len(x))"
    for sandbox in (docker, process):
        (result,) = sandbox.run(Program(source), [Input()], HONEST)
        assert (result.verdict, result.stdout) == ("ok", b"%d\n" % size)


@pytest.mark.parametrize(
    ("source", "verdict", "stdout"),
    [
        (b"print(1)\n# \xff\xfe", "failed", b""),
        (b"n = input()\r\nif n:\r\n    print(n)\r\n", "ok", b"7\n"),
        (b"print(input())", "ok", b"7\n"),
        (b"print('no need to read')\n", "ok", b"no need to read\n"),
        (b"", "ok", b""),
        (b"\xef\xbb\xbfprint(8)\n", "ok", b"8\n"),
        (b"import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "ok", b"\xff\x00"),
    ],
    ids=["invalid UTF-8", "Windows line ends", "no final newline", "reads nothing", "empty", "mark", "binary output"],
)
def test_odd_sources_behave_alike(
    docker: DockerSandbox, process: ProcessSandbox, source: bytes, verdict: str, stdout: bytes
) -> None:
    given = Input(b"7\n" + b"z" * (1 << 20))
    for sandbox in (docker, process):
        (result,) = sandbox.run(Program(source), [given], HONEST)
        assert (result.verdict, result.stdout) == (verdict, stdout), sandbox.name
