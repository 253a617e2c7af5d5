"""What a verdict costs beyond the verifier's own work, and what a dying process costs the others.

Judges the same right and wrong answers of the arithmetic generator (a verdict costs well under a millisecond) four ways: in a
bare loop in this process, by `Scorer` with one and with all workers, and by pebble's `ProcessPool` with as many. Then 100 good
samples beside one that ends its process with `os._exit(0)`, and 100 after an idle process was killed (as the kernel does when
memory is short): how long it takes, and how many of the good ones get their verdict.

    python benchmarks/scoring_overhead.py [verdicts]

The last line is one JSON object.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

import pebble

from cascade_core.domain import Domain, DomainRef
from cascade_core.plugins import registry
from cascade_core.rows import Row, row_response, row_task, score_json, task_row
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

EXTENSION = Path(__file__).parents[1] / "tests" / "extension"
WALL_SECONDS = 5.0

_domain: Domain | None = None


def build() -> Domain:
    return registry().build(registry().reference("math"))


def prepare() -> None:
    global _domain
    _domain = build()


def judge(row: Row) -> Row:
    if _domain is None:
        prepare()
    return score_json(_domain.score(row_task(row), row_response(row)))


def misbehave(how: str) -> float:
    if how == "exit":
        os._exit(0)
    return 1.0


def sampled(count: int) -> list[Row]:
    tasks = islice(build().tasks("train", 0), count)
    return [
        {**task_row("math", task), "id": f"{i}", "response": f"\\boxed{{{task.answer if i % 2 else i}}}"}
        for i, task in enumerate(tasks)
    ]


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def pool(workers: int) -> pebble.ProcessPool:
    return pebble.ProcessPool(workers, context=multiprocessing.get_context("spawn"))


def throughput(rows: list[Row], cores: int) -> dict[str, float]:
    """Microseconds per verdict."""
    refs = {"math": registry().reference("math")}
    seconds = {}
    judge(rows[0])
    seconds["bare loop"] = min(timed(lambda: [judge(row) for row in rows]) for _ in range(2))
    for workers in sorted({1, cores}):
        with Scorer(refs, Scoring(workers=workers)) as scorer:
            scorer.score(rows[: 8 * workers])
            seconds[f"scorer, {workers} workers"] = min(timed(lambda s=scorer: s.score(rows)) for _ in range(2))
        with pool(workers) as pebbles:

            def all_of(given: list[Row], using: pebble.ProcessPool = pebbles) -> None:
                futures = [using.schedule(judge, [row], timeout=120) for row in given]
                for future in futures:
                    future.result()

            all_of(rows[: 8 * workers])
            seconds[f"pebble, {workers} workers"] = min(timed(lambda run=all_of: run(rows)) for _ in range(2))
            pebbles.stop()
    return {name: 1e6 * value / len(rows) for name, value in seconds.items()}


def counted(futures: list[Future[float]]) -> int:
    judged = 0
    for future in futures:
        try:
            judged += future.result(timeout=2 * WALL_SECONDS) == 1.0
        except Exception:  # noqa: BLE001 - whatever it is, there is no verdict
            continue
    return judged


def children() -> set[int]:
    """The processes that this one has started, but for the helper of multiprocessing."""
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = {int(pid) for listed in found for pid in listed.read_text().split()}
    return {pid for pid in pids if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()}


def strike(before: set[int]) -> None:
    """Kills one process that was started since, as the kernel does when memory is short."""
    os.kill(min(children() - before), signal.SIGKILL)
    time.sleep(1)


def faults(how: str, good: int = 100) -> dict[str, dict[str, float]]:
    """Seconds for the good samples and the fault, and how many of the good were judged."""
    rows = [{"domain": "faulty", "id": f"{i}", "prompt": "p", "response": "right"} for i in range(good)]
    before = children()
    with Scorer({"faulty": DomainRef("faulty")}, Scoring(workers=2, wall_seconds=WALL_SECONDS)) as scorer:
        scorer.score(rows[:4])
        if how == "idle":
            strike(before)
        start = time.perf_counter()
        bad = [{**rows[0], "id": "bad", "response": "exit"}] if how == "exit" else []
        scores = scorer.score([*bad, *rows])[len(bad) :]
        ours = {"seconds": time.perf_counter() - start, "judged": sum(score.is_judged for score in scores)}
    before, pebbles = children(), pool(2)
    counted([pebbles.schedule(misbehave, ["well"]) for _ in range(4)])
    if how == "idle":
        strike(before)
    start = time.perf_counter()
    try:
        bad_futures = [pebbles.schedule(misbehave, ["exit"], timeout=WALL_SECONDS)] if how == "exit" else []
        futures = [pebbles.schedule(misbehave, ["well"], timeout=WALL_SECONDS) for _ in rows]
    except RuntimeError:  # the pool is broken
        bad_futures, futures = [], []
    judged = counted(futures)
    counted(bad_futures)
    return {"scorer": ours, "pebble": {"seconds": time.perf_counter() - start, "judged": judged}}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    cores = len(os.sched_getaffinity(0))
    cost = throughput(sampled(count), cores)
    for name, microseconds in cost.items():
        print(f"{name:24} {microseconds:8.0f} µs a verdict")
    sys.path.insert(0, str(EXTENSION))
    deaths = {how: faults(how) for how in ("exit", "idle")}
    for how, found in deaths.items():
        for name, numbers in found.items():
            print(f"{how:8} {name:8} {numbers['judged']:4.0f} of 100 judged after {numbers['seconds']:.2f} s")
    bare, one, pebble_one = cost["bare loop"], cost["scorer, 1 workers"], cost["pebble, 1 workers"]
    result = {
        "verdicts": count,
        "cores": cores,
        "bare_us": round(bare, 1),
        "overhead_us": round(one - bare, 1),
        "pebble_overhead_us": round(pebble_one - bare, 1),
        "ratio_to_pebble": round(one / pebble_one, 3),
        "all_us": {name: round(value, 1) for name, value in cost.items()},
        "faults": {how: {n: {k: round(v, 2) for k, v in m.items()} for n, m in f.items()} for how, f in deaths.items()},
    }
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # a pool of pebble's that lost a worker does not end


if __name__ == "__main__":
    main()
