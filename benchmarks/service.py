"""What `cascade serve` costs: requests of one sample, 1 … 8,192 at once, beside a small app that judges inline.

The app beside it has the shape of OpenRLHF's `serve_rm`: one process, `POST /get_reward`, the verifier called in the handler, on the same
Starlette and uvicorn and with the same verifier, that of cascade-plugin-math. It bounds nothing, kills nothing, joins nothing. Rows are
products of polynomials that take some milliseconds to compare, each with a label of its own, so that nothing is remembered. The client is a process of
its own, on raw asyncio connections that are opened before the clock starts; both services answer it in turns, and medians of the rounds count.

    python benchmarks/service.py [--levels 1,64,1024,8192] [--requests 400] [--rounds 3]

CPU time is that of all processes of a service. Latency is from sending a request to its whole answer, with all others of the level sent at the same moment. Memory is what all
processes of the service hold, and what the one that serves holds, after each level; ratios are of the last round to the first. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

INLINE = """
import json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from cascade_core import Response, Task
from cascade_core.plugins import registry
judge = registry().build(registry().reference("math"))
judge.open({})

async def get_reward(request):
    data = await request.json()
    rewards = []
    for query, prompt, label in zip(data["query"], data["prompts"], data["labels"]):
        rewards.append(judge.score(Task("t", prompt, label), Response(query[len(prompt):])).value)
    return JSONResponse({"rewards": rewards, "scores": rewards, "extra_logs": {"dummy_scores": rewards}})

app = Starlette(routes=[Route("/get_reward", get_reward, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False, backlog=16384)
"""
FACTORS = 18  # of a product; a verdict takes some 3 ms on a quiet machine
OURS = "from cascade_core.cli import main; main()"


def bodies(count: int, seed: int) -> list[bytes]:
    """Requests whose verdict takes some milliseconds; every second is right."""
    draw, found = random.Random(seed), []
    for number in range(count):
        roots = [draw.randint(2, 999_999) for _ in range(FACTORS)]
        factors = [f"(x{'+-'[place % 2]}{root})" for place, root in enumerate(roots)]
        wrong = f"(x+{roots[0] + number % 2})"
        text_factors = [*reversed(factors[1:]), wrong]
        text = f"Multiplied out and put together again it is $\\boxed{{{''.join(text_factors)}}}$."
        prompt = f"Question {seed}/{number}?"
        found.append(json.dumps({"query": [prompt + text], "prompts": [prompt], "labels": ["".join(factors)]}).encode())
    return found


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> tuple[float, float]:
    """Seconds that one request took, and its reward."""
    head = f"POST /get_reward HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    began = time.perf_counter()
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    lines = answer.decode("latin-1").lower().split("\r\n")
    if " 200 " not in lines[0] + " ":
        raise SystemExit(f"{lines[0]}")
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    told = json.loads(await reader.readexactly(length))
    return time.perf_counter() - began, told["rewards"][0]


async def level(port: int, at_once: int, requests: Sequence[bytes]) -> dict[str, float]:
    """All requests, `at_once` of them at a time."""
    connections = []
    for _ in range(at_once):
        connections.append(await asyncio.open_connection("127.0.0.1", port))
    queue = iter(requests)
    found: list[tuple[float, float]] = []

    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for body in queue:
            found.append(await ask(reader, writer, body))

    began = time.perf_counter()
    await asyncio.gather(*(work(*one) for one in connections))
    wall = time.perf_counter() - began
    for _, writer in connections:
        writer.close()
    right = sum(reward for _, reward in found)
    if right != (len(requests) + 1) // 2:
        raise SystemExit(f"{right:g} of {len(requests)} were found right, {(len(requests) + 1) // 2} are")
    times = sorted(seconds for seconds, _ in found)
    return {
        "per_second": len(requests) / wall,
        "p50": times[len(times) // 2],
        "p99": times[min(len(times) - 1, int(len(times) * 0.99))],
    }


@contextmanager
def service(name: str, port: int, workers: int) -> Iterator[psutil.Process]:
    """One of the two, ready."""
    ours = [OURS, "serve", "--domain", "math", "--port", str(port), "--workers", str(workers)]
    command = [sys.executable, "-c", *(ours if name == "cascade" else [INLINE, str(port)])]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if client(port, 1, 2, -1, check=False):
                break
            time.sleep(0.1)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def client(port: int, at_once: int, count: int, seed: int, *, check: bool = True) -> dict[str, float]:
    """What a client in a process of its own measures; nothing where nobody answers and `check` is false."""
    command = [sys.executable, __file__, "--only-client", f"{port},{at_once},{count},{seed}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=None if check else subprocess.DEVNULL, text=True)
    if done.returncode:
        if check:
            raise SystemExit(f"the client failed at {at_once} at once")
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def cpu_seconds(process: psutil.Process) -> float:
    """CPU time that the processes of a service have used so far."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def held_mib(process: psutil.Process) -> float:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / 2**20


def free_ports() -> tuple[int, int]:
    import socket

    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]


def measure(levels: Sequence[int], requests: int, rounds: int, workers: int) -> dict[str, Any]:
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    ports = dict(zip(("inline", "cascade"), free_ports(), strict=True))
    memory: list[float] = []
    own: list[float] = []
    with service("inline", ports["inline"], workers) as inline, service("cascade", ports["cascade"], workers) as ours:
        sides = {"inline": inline, "cascade": ours}
        for seed in range(rounds):
            for at_once in levels:
                count = max(requests, at_once)
                for name in ("inline", "cascade") if seed % 2 else ("cascade", "inline"):
                    before = cpu_seconds(sides[name])
                    one = client(ports[name], at_once, count, seed * 100_000 + at_once)
                    one["cpu"] = (cpu_seconds(sides[name]) - before) / count
                    found.setdefault((name, at_once), []).append(one)
                memory.append(held_mib(ours))
                own.append(ours.memory_info().rss / 2**20)
    result: dict[str, Any] = {"levels": list(levels)}
    for name, each_memory in (("memory", memory), ("server_memory", own)):
        result[f"{name}_mib"] = [round(one, 1) for one in each_memory]
        result[f"{name}_ratio"] = round(each_memory[-1] / each_memory[len(levels) - 1], 3) if rounds > 1 else None
    for at_once in levels:
        each_side = {name: found[name, at_once] for name in ("inline", "cascade")}
        for name, each in each_side.items():
            middle = {key: statistics.median(one[key] for one in each) for key in each[0]}
            print(
                f"{at_once:5} at once, {name:8} {middle['per_second']:7.0f} a second,"
                f" p50 {1e3 * middle['p50']:8.1f} ms, p99 {1e3 * middle['p99']:8.1f} ms,"
                f" {1e3 * middle['cpu']:.2f} ms of CPU a request"
            )
        pairs = list(zip(each_side["cascade"], each_side["inline"], strict=True))
        for key in ("per_second", "p50", "p99", "cpu"):
            ratio = statistics.median(ours[key] / inline[key] for ours, inline in pairs)
            result[f"{key}_ratio_{at_once}"] = round(ratio, 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", default="1,64,1024,8192", help="requests at once")
    parser.add_argument("--requests", type=int, default=400, help="of a level at least")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-client", help=argparse.SUPPRESS)
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if args.only_client:
        port, at_once, count, seed = (int(part) for part in args.only_client.split(","))
        print(json.dumps(asyncio.run(level(port, at_once, bodies(count, seed)))))
        return
    levels = [int(one) for one in args.levels.split(",")]
    print(json.dumps(measure(levels, args.requests, args.rounds, args.workers)))


if __name__ == "__main__":
    main()
