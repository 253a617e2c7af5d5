"""What it costs to judge in processes that can be killed: speed beside bare calls, hanging inputs, a million rows.

Four measurements, each figure a ratio within one run:

- `math`: answers of a sentence, a third each integers, fractions and products of polynomials, right and wrong in turn, by `Scorer`
  with the verifier of cascade-plugin-math, and by bare calls in this process: of that verifier, and of math-verify's
  `verify(parse(gold), parse(answer))`. Each round has rows of its own, all ways take turns, medians count. CPU time is that of all
  processes.
- `scaling`: the same rows by one worker and by two. On a busy machine wall time says what the neighbours did, so there is also the ratio
  that the CPU times allow: the busiest process of one run over that of the other, or over half of all its work if that is more.
- `hangs`: one row in a hundred loops until its limit of CPU time, beside honest rows that each take 5 ms. The wall time that passes
  for a CPU second of all processes, over the same without hanging rows: 1 means that these cost their own CPU time and nothing else,
  on a machine whose neighbours take the same share all the time.
- `stream`: a domain whose verdict costs nothing, through `score_file` as `cascade score` does, every row a task of its own; the
  peak memory of this process and its workers together, a fresh process for each size.

    python benchmarks/scoring.py [--rows 1500] [--rounds 5] [--stream 100000,1000000]

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cascade_core.domain import DomainRef, Score
from cascade_core.plugins import registry
from cascade_core.rows import Row, dump, row_response, row_task
from cascade_core.score_file import score_file
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring

EXTENSION = Path(__file__).parents[1] / "tests" / "extension"
FAULTY = {"faulty": DomainRef("faulty", {}, "cascade-plugin-faulty", "0.1.0")}
CPU_LIMIT = 1.0  # of a hanging row, seconds
HONEST_SECONDS = 0.005  # CPU time of an honest verdict beside hanging ones


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds of the clock, CPU seconds of all processes, and of the busiest one."""

    wall: float
    cpu: float
    busiest: float


def sampled(count: int, seed: int) -> list[Row]:
    """Rows of the domain math; a label comes once, since labels are read once and kept."""
    draw, found = random.Random(seed), []
    for number in range(count):
        right, kind = number % 2 == 0, number // 2 % 3
        n, m = draw.randint(10, 99_999), draw.randint(2, 97)
        off = 0 if right else 1
        if kind == 0:
            label, answer = str(n), f"{n + off}"
        elif kind == 1:
            label, answer = f"\\frac{{{n}}}{{{2 * m + 1}}}", f"\\frac{{{n + off}}}{{{2 * m + 1}}}"
        else:
            label, answer = f"x^2+{n + m}x+{n * m}", f"(x+{n})(x+{m + off})"
        text = f"Put together, the two parts of the question give what was asked for, so it is $\\boxed{{{answer}}}$."
        found.append({"domain": "math", "id": str(number), "prompt": "p", "answer": label, "response": text})
    return found


def usage() -> dict[int, float]:
    """CPU seconds of this process and its children so far."""
    own = psutil.Process()
    return {one.pid: sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True))}


def cost(work: Callable[[], object]) -> Cost:
    """What `work` takes; the processes that it uses are there before and after it."""
    before, began = usage(), time.perf_counter()
    work()
    wall, after = time.perf_counter() - began, usage()
    spent = [seconds - before.get(pid, 0.0) for pid, seconds in after.items()]
    return Cost(wall, sum(spent), max(spent))


def middle(costs: Sequence[Cost], name: str) -> float:
    """The median; at least one tick of the clock by which the kernel counts CPU time, where little was done."""
    return max(statistics.median(getattr(one, name) for one in costs), 1 / os.sysconf("SC_CLK_TCK"))


def bare_ours(rows: Sequence[Row]) -> int:
    domain = registry().build(registry().reference("math"))
    domain.open({})
    return sum(domain.score(row_task(row), row_response(row)).value == 1.0 for row in rows)


def bare_theirs(rows: Sequence[Row]) -> int:
    from math_verify import parse, verify

    return sum(bool(verify(parse(f"${row['answer']}$"), parse(row["response"]))) for row in rows)


def pooled(rows: Sequence[Row], workers: int) -> Cost:
    refs = {"math": registry().reference("math")}
    with Scorer(refs, Scoring(workers=workers)) as scorer:
        scorer.score(sampled(200 * workers, -1))
        found: list[float] = []
        spent = cost(lambda: found.extend(score.value for score in scorer.score(rows)))
    agree(sum(found), len(rows))
    return spent


def agree(right: float, rows: int) -> None:
    """Who judges wrongly is not measured."""
    if right != (rows + 1) // 2:
        raise SystemExit(f"{right:g} of {rows} answers were found right, {(rows + 1) // 2} are")


def math_costs(count: int, rounds: int) -> dict[str, list[Cost]]:
    """Costs of every way to judge, a list of as many rounds."""
    found: dict[str, list[Cost]] = {"math-verify": [], "ours, bare": [], "pool of 1": [], "pool of 2": []}
    bare_ours(sampled(16, -1))
    bare_theirs(sampled(16, -1))
    for number in range(rounds):
        rows = sampled(count, number)
        for name, judge in (("math-verify", bare_theirs), ("ours, bare", bare_ours)):
            right: list[int] = []
            found[name].append(cost(lambda judge=judge, rows=rows, right=right: right.append(judge(rows))))  # type: ignore[misc]
            agree(right[0], len(rows))
        for workers in (1, 2):
            found[f"pool of {workers}"].append(pooled(rows, workers))
    return found


def math_ratios(count: int, rounds: int) -> dict[str, Any]:
    """Speeds and ratios of `math` and `scaling`."""
    costs = math_costs(count, rounds)
    for name, each in costs.items():
        per = [1e6 * middle(each, part) / count for part in ("wall", "cpu", "busiest")]
        print(f"{name:12} {per[0]:7.0f} µs a row, {per[1]:7.0f} µs of CPU, {per[2]:7.0f} µs of the busiest process")
    theirs, bare, one, two = costs.values()
    cores = len(os.sched_getaffinity(0))
    possible = max(middle(two, "busiest"), middle(two, "cpu") / min(2, cores))
    return {
        "rows_per_cpu_second": {name: round(count / middle(each, "cpu")) for name, each in costs.items()},
        "pool_to_math_verify_per_cpu": round(middle(theirs, "cpu") / middle(one, "cpu"), 2),
        "pool_to_math_verify_per_worker": round(middle(theirs, "wall") / middle(one, "wall"), 2),
        "pool_to_own_verifier_per_cpu": round(middle(bare, "cpu") / middle(one, "cpu"), 2),
        "two_workers_to_one": round(statistics.median(a.wall / b.wall for a, b in zip(one, two, strict=True)), 2),
        "two_workers_to_one_by_cpu": round(middle(one, "busiest") / possible, 2),
    }


def faulty(rows: Sequence[Row]) -> tuple[Cost, list[Score]]:
    """The cost of judging the rows, processes that were killed meanwhile included, and their scores."""
    with Scorer(FAULTY, Scoring(workers=2, cpu_seconds=CPU_LIMIT)) as scorer:
        scorer.score([{**row, "id": f"warm {row['id']}", "response": "right"} for row in rows[:8]])
        workers = sum(seconds for pid, seconds in usage().items() if pid != os.getpid())
        before, began = sum(os.times()[:4]) + workers, time.perf_counter()
        scores = scorer.score(rows)
        wall = time.perf_counter() - began
    return Cost(wall, sum(os.times()[:4]) - before, 0.0), scores


def hang_ratios(count: int) -> dict[str, Any]:
    """Of `hangs`."""
    honest = [
        {"domain": "faulty", "id": str(n), "prompt": "p", "response": f"burn {HONEST_SECONDS}"} for n in range(count)
    ]
    hanging = [{**row, "response": "spin"} if n % 100 == 50 else row for n, row in enumerate(honest)]
    hangs = sum(row["response"] == "spin" for row in hanging)
    clean, _ = faulty(honest)
    faults, scores = faulty(hanging)
    judged, limits = sum(score.value == 1.0 for score in scores), sum(score.is_limit for score in scores)
    if (judged, limits) != (count - hangs, hangs):
        raise SystemExit(
            f"of {count - hangs} honest rows {judged} were judged, of {hangs} hanging ones {limits} stopped"
        )
    lost = faults.cpu - clean.cpu + hangs * HONEST_SECONDS
    print(f"hangs: {clean.wall:.2f} s without, {faults.wall:.2f} s with {hangs} of {count}, {lost:.2f} s of CPU lost")
    return {
        "hangs": hangs,
        "hang_wall_to_expected": round(faults.wall / faults.cpu * clean.cpu / clean.wall, 2),
        "hang_cpu_seconds_each": round(lost / hangs, 2),
    }


def peak_mib(pids: Sequence[int]) -> float:
    """The largest resident memory that the processes had, added up."""
    kib = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        kib += int(status.partition("VmHWM:")[2].split()[0])
    return kib / 1024


def lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        row = {"domain": "faulty", "id": f"task-{number}", "prompt": "p", "answer": "right", "response": "right"}
        yield dump(row).encode() + b"\n"


def stream(count: int) -> dict[str, float]:
    """Judges a file of so many rows in this process."""
    with tempfile.TemporaryDirectory() as name, Scorer(FAULTY, Scoring(workers=2)) as scorer:
        source, out = Path(name) / "rows.jsonl", Path(name) / "rows.scored.jsonl"
        with source.open("wb") as file:
            file.writelines(lines(count))
        summaries: list[Any] = []
        spent = cost(lambda: summaries.append(score_file(source, out, scorer)))
        (cell,) = summaries[0].cells
        if (cell.tasks, cell.scored, cell.value) != (count, count, 1.0):
            raise SystemExit(f"of {count} rows {cell.scored} were judged, value {cell.value}")
        own = psutil.Process()
        memory = peak_mib([own.pid, *(child.pid for child in own.children(recursive=True))])
    return {"rows": count, "wall": spent.wall, "cpu": spent.cpu, "peak_mib": memory}


def stream_ratios(sizes: Sequence[int]) -> dict[str, Any]:
    """Of `stream`."""
    found = []
    for size in sizes:
        command = [sys.executable, __file__, "--only-stream", str(size)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found.append(json.loads(told.splitlines()[-1]))
        one = found[-1]
        print(f"stream: {size} rows, {size / one['wall']:.0f} a second, {one['peak_mib']:.1f} MiB at most")
    return {
        "stream_rows": list(sizes),
        "stream_rows_per_second": round(sizes[-1] / found[-1]["wall"]),
        "stream_rows_per_cpu_second": round(sizes[-1] / found[-1]["cpu"]),
        "stream_peak_mib": [round(one["peak_mib"], 1) for one in found],
        "stream_memory_ratio": round(found[-1]["peak_mib"] / found[0]["peak_mib"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500, help="rows of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hang-rows", type=int, default=1500, help="rows of which one in a hundred hangs")
    parser.add_argument("--stream", default="100000,1000000", help="two sizes of a file")
    parser.add_argument("--only-stream", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, str(EXTENSION))
    if args.only_stream:
        print(json.dumps(stream(args.only_stream)))
        return
    logging.getLogger("math_verify").setLevel(logging.ERROR)  # its own time-outs, on a busy machine
    result = math_ratios(args.rows, args.rounds)
    result.update(hang_ratios(args.hang_rows))
    result.update(stream_ratios([int(size) for size in args.stream.split(",")]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
