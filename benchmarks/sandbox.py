"""What a sandbox costs: CPU seconds and programs per second beside bare fork and exec of the same interpreter, all in one run.

Programs are `print(int(input()) + 1)` on 1 and on 20 inputs, two at a time. The floor is fork and exec of the same interpreter on the same file in
a container of the same image, by two processes that do nothing else. Beside it: the same with `posix_spawn`, which copies no page tables; the Docker sandbox, whose CPU time is all that its containers
used (from their cgroups, the supervisor included) and all that this process used (the client); the process sandbox; bubblewrap
if it is installed; one `docker exec` and one `docker run` for each program, of which only the rate is told. C++ is compiled and run
bare, in a container of the same image with the same precompiled header, and through the sandbox. Rounds take turns; the medians count.

    python benchmarks/sandbox.py [--rounds 5] [--runs 100] [--answers 1024] [--quick]

`--runs` are those of one way in one round; `--quick` is one round, 20 runs and 64 answers. Nothing is extrapolated: the number of answers
is told with their seconds. The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sandbox"))

from cascade_sandbox import Input, Limits, Program, Sandbox, docker_sandbox
from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.languages import LANGUAGES
from cascade_sandbox.owner import POOL_LABEL
from cascade_sandbox.process import ProcessSandbox

SOURCE = "print(int(input()) + 1)\n"
CPP = "#include <bits/stdc++.h>\nint main() { long long x; std::cin >> x; std::cout << x + 1 << std::endl; }\n"
SLOTS = 2


@dataclass(frozen=True)
class Cost:
    """Of one program run: CPU seconds, and seconds of the clock for all of them together divided by their number."""

    cpu: float
    wall: float


def own_cpu() -> float:
    """CPU seconds of this process, of the children that it waited for, and of those that it has (a pool's keeper)."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(one.ru_utime + one.ru_stime for one in used)
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        fields = Path(f"/proc/{child}/stat").read_bytes().rpartition(b")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def containers_cpu(pool: str) -> float:
    """CPU seconds of everything that ever ran in the containers of a pool, from the cgroups of their first processes."""
    import docker

    total = 0.0
    with contextlib.closing(docker.from_env()) as client:
        for container in client.containers.list(filters={"label": f"{POOL_LABEL}={pool}"}):
            pid = client.api.inspect_container(container.id)["State"]["Pid"]
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                _, kinds, path = line.split(":", 2)
                if "cpuacct" in kinds.split(","):
                    total += int(_group("cpuacct", kinds, path, "cpuacct.usage").read_text()) / 1e9
                elif kinds == "":
                    stat = Path(f"/sys/fs/cgroup{path}/cpu.stat")
                    if stat.exists():
                        total += int(stat.read_text().split()[1]) / 1e6
    return total


def _group(kind: str, kinds: str, path: str, file: str) -> Path:
    homes = [Path(f"/sys/fs/cgroup/{name}{path}/{file}") for name in (kind, kinds)]
    return next(home for home in homes if home.exists())


def measured(programs: int, tests: int, one: Callable[[], None], pool: str = "") -> Cost:
    """Runs so many programs, two at a time."""
    cpu = own_cpu() + (containers_cpu(pool) if pool else 0.0)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(SLOTS) as threads:
        for done in [threads.submit(one) for _ in range(programs)]:
            done.result()
    wall = time.monotonic() - begin
    cpu = own_cpu() + (containers_cpu(pool) if pool else 0.0) - cpu
    return Cost(cpu / programs / tests, wall / programs / tests)


FLOOR = """
import os, resource, sys, time
way, command, runs = sys.argv[1], sys.argv[3:], int(sys.argv[2])
def one(number):
    given, said = os.memfd_create("in"), os.pipe()
    os.write(given, b"%d\\n" % number); os.lseek(given, 0, 0)
    moves = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, said[1], 1)]
    if way == "spawn": child = os.posix_spawn(command[0], command, {"PATH": "/usr/bin"}, file_actions=moves)
    else:
        child = os.fork()
        if not child:
            for _, old, new in moves: os.dup2(old, new)
            os.execve(command[0], command, {"PATH": "/usr/bin"})
    os.close(given); os.close(said[1])
    answer = os.read(said[0], 100); os.close(said[0]); os.waitpid(child, 0)
    if answer != b"%d\\n" % (number + 1): os._exit(1)
begin = time.monotonic()
for _ in range(2):
    if os.fork() == 0:
        for number in range(runs // 2): one(number)
        os._exit(0)
if any(os.wait()[1] for _ in range(2)): sys.exit("a wrong answer")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print((used.ru_utime + used.ru_stime) / runs, (time.monotonic() - begin) / runs)
"""


def floor(container: str, way: str, runs: int) -> Callable[[], Cost]:
    """Bare starts in a container that is there, by `fork` or `spawn`."""
    write = f"open('/w/m.py', 'w').write({SOURCE!r})"
    subprocess.run(["docker", "exec", container, "python3", "-c", write], check=True)
    command = ["docker", "exec", container, "python3", "-c", FLOOR, way, str(runs), "/usr/bin/python3", "/w/m.py"]

    def once() -> Cost:
        cpu, wall = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return Cost(float(cpu), float(wall))

    return once


def bare(command: list[str], tests: int) -> Callable[[], None]:
    """Starts the command once for each test."""

    def one() -> None:
        for number in range(tests):
            done = subprocess.run(command, input=b"%d\n" % number, stdout=subprocess.PIPE, check=True)
            expect(done.stdout, number)

    return one


@contextlib.contextmanager
def container(image: str) -> Iterator[str]:
    """One that only waits; its name."""
    name = f"cascade-bench-{os.getpid()}"
    options = ["--rm", "--network", "none", "--tmpfs", "/w:exec", "--name", name]
    command = ["docker", "run", "-d", *options, image, "python3", "-c", "import time; time.sleep(3600)"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    try:
        yield name
    finally:
        subprocess.run(["docker", "rm", "-f", name], check=True, stdout=subprocess.DEVNULL)


def sandboxed(sandbox: Sandbox, tests: int, program: Program = Program(SOURCE)) -> Callable[[], None]:  # noqa: B008
    """One session for all tests."""
    limits = Limits()

    def one() -> None:
        with sandbox.open(program, limits) as session:
            for number in range(tests):
                expect(session.run(Input(b"%d\n" % number)).stdout, number)

    return one


def expect(said: bytes, number: int) -> None:
    if said != b"%d\n" % (number + 1):
        raise SystemExit(f"a wrong answer: {said!r} for {number}")


def turns(rounds: int, ways: dict[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """Each way once per round; the median of each."""
    seen: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            seen[name].append(way())
    return {
        name: Cost(statistics.median(one.cpu for one in all_), statistics.median(one.wall for one in all_))
        for name, all_ in seen.items()
    }


def python(
    sandbox: DockerSandbox, here: ProcessSandbox, name: str, tests: int, rounds: int, runs: int
) -> dict[str, Cost]:
    """Python on that many tests a program; `docker run` and `docker exec` start once for each program."""
    status = sandbox.status()
    pool, image, programs = str(status["pool"]), str(status["image"]), max(runs // tests // 2 * 2, SLOTS)
    body = f"echo 1 | python3 -c '{SOURCE.strip()}'"
    shell = ["sh", "-c", f"i=0; while [ $i -lt {tests} ]; do i=$((i + 1)); {body}; done"]

    def engine(*words: str) -> Callable[[], None]:
        command = ["docker", *words, *shell]
        return lambda: expect(subprocess.run(command, check=True, capture_output=True).stdout[-2:], 1)

    ways = {
        "bare": floor(name, "fork", programs * tests),
        "bare posix_spawn": floor(name, "spawn", programs * tests),
        "docker": lambda: measured(programs, tests, sandboxed(sandbox, tests), pool),
        "process": lambda: measured(programs, tests, sandboxed(here, tests)),
        "docker run": lambda: measured(SLOTS, tests, engine("run", "--rm", "-i", "--network", "none", image)),
        "docker exec": lambda: measured(SLOTS, tests, engine("exec", "-i", name)),
    }
    if shutil.which("bwrap"):
        wrap = [
            "bwrap",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--unshare-all",
            "--die-with-parent",
        ]
        command = [*wrap, sys.executable, "-S", "-c", SOURCE]
        ways["bubblewrap"] = lambda: measured(programs, tests, bare(command, tests))
    return turns(rounds, ways)


def cpp(sandbox: DockerSandbox, name: str, rounds: int) -> dict[str, Cost]:
    """Compiling and running once, one after the other."""
    pool = str(sandbox.status()["pool"])
    flags = " ".join(word for word in LANGUAGES["c++17"].compile or () if word.startswith("-") and word != "-o")
    timed = (
        "import resource, subprocess, sys, time\n"
        f"open('/w/m.cpp', 'w').write({CPP!r})\nbegin = time.monotonic()\n"
        f"subprocess.run('g++ {flags} -o /w/m /w/m.cpp && echo 1 | /w/m', shell=True, check=True, stdout=2)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, time.monotonic() - begin)"
    )

    def alone() -> Cost:
        command = ["docker", "exec", name, "python3", "-c", timed]
        cpu, wall = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return Cost(float(cpu), float(wall))

    def through() -> Cost:
        return measured(1, 1, sandboxed(sandbox, 1, Program(CPP, "c++17")), pool)

    alone(), through()
    return turns(max(rounds, 3), {"bare g++": alone, "docker": through})


def told(title: str, costs: dict[str, Cost], floor: str) -> dict[str, dict[str, float]]:
    """Prints a table; the ratios to the floor."""
    print(f"\n{title}")
    ratios = {}
    for name, cost in costs.items():
        ratio = {"cpu": round(cost.cpu / costs[floor].cpu, 3), "rate": round(costs[floor].wall / cost.wall, 3)}
        counted = name in (floor, "docker", "bubblewrap")  # of the others, processes that are not ours do the work
        cpu = f"{cost.cpu * 1e3:9.2f} ms of CPU ({ratio['cpu']:.2f}x)" if counted else " " * 26
        print(f"  {name:12} {cpu}  {1 / cost.wall:8.1f} a second ({ratio['rate']:.3f}x)", flush=True)
        ratios[name] = ratio if counted else {"rate": ratio["rate"]}
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--answers", type=int, default=1024)
    asked = parser.parse_args()
    rounds, runs, answers = (1, 20, 64) if asked.quick else (asked.rounds, asked.runs, asked.answers)
    found: dict[str, object] = {"cores": os.cpu_count(), "engine": Engine().version().get("Version")}
    with (
        docker_sandbox(slots=SLOTS) as sandbox,
        ProcessSandbox(SLOTS) as here,
        container(str(sandbox.status()["image"])) as name,
    ):
        for tests in (1, 20):
            costs = python(sandbox, here, name, tests, rounds, runs)
            named = f"{tests} test{'s' * (tests > 1)}"
            found[f"python, {named}"] = told(f"Python, {named} a program, for each test", costs, "bare")
        if not shutil.which("bwrap"):
            print("  bubblewrap is not installed")
        if "c++17" in sandbox.languages():
            found["c++"] = told("C++17, compiling and one run", cpp(sandbox, name, rounds), "bare g++")
        begin = time.monotonic()
        measured(answers, 20, sandboxed(sandbox, 20))
        found["answers"], found["seconds"] = answers, round(time.monotonic() - begin, 1)
        print(f"\n{answers} answers with 20 tests each: {found['seconds']} seconds in {SLOTS} containers")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
