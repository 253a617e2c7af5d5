"""A synthetic run folder that looks like a real one: tasks of differing difficulty, a skill per stage and domain, sampled answers.

The files are written as the run writes them, and their numbers come from `cascade_core.estimates`, so that a report of this folder
shows what a report of a real one would. The same arguments give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cascade_core.estimates import counts, paired, summarise
from cascade_core.rows import dump, write, write_json, write_text

DOMAINS = ("if", "math", "code", "swe", "rlhf")
BEGIN = 1_764_495_000.0
KINDS = {"generate_seconds": 1.1, "verify_seconds": 0.35, "update_seconds": 0.6}


@dataclass(frozen=True)
class Shape:
    """How large the run is. `domains` beyond the first `len(DOMAINS)` are numbered."""

    rl_stages: Sequence[str] = ("if", "math")
    steps: int = 40
    tasks: int = 120
    samples: int = 4
    benchmarks_per_domain: int = 1
    seed: int = 0

    @property
    def stages(self) -> list[dict[str, Any]]:
        sft = {
            "name": "sft",
            "kind": "sft",
            "domains": dict.fromkeys(self.domains, 1.0),
            "steps": self.steps,
            "control": "none",
        }
        rl = [
            {
                "name": f"{d}{'' if i < 5 else i}",
                "kind": "rl",
                "domains": {d: 1.0},
                "steps": self.steps,
                "control": "none",
            }
            for i, d in enumerate(self.rl_stages)
        ]
        return [sft, *rl]

    @property
    def domains(self) -> list[str]:
        return list(dict.fromkeys(self.rl_stages))

    @property
    def benchmarks(self) -> list[str]:
        return [
            f"{d}/{'test' if i == 0 else f'hard-{i}'}" for d in self.domains for i in range(self.benchmarks_per_domain)
        ]


def make_run(folder: Path, shape: Shape = Shape()) -> Path:
    """Writes a finished run and returns its folder."""
    names = ["start", *(stage["name"] for stage in shape.stages)]
    spec = {
        "name": "quickstart",
        "seed": shape.seed,
        "model": {
            "path": None,
            "init": {"hidden_size": 128, "layers": 3, "heads": 4, "context": 128, "tokenizer": {"phrases": []}},
        },
        "trainer": "trl",
        "domains": {domain: {} for domain in shape.domains},
        "stages": shape.stages,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_text(
        folder / "spec.yaml",
        "# the run of the quickstart\nname: quickstart\nstages:\n" + "".join(f"  - {name}\n" for name in names[1:]),
    )
    write_json(
        folder / "lock.json",
        {
            "python": "3.11.2",
            "spec": spec,
            "plugins": {"domain if": {"distribution": "cascade-plugin-if", "version": "0.1.0"}},
        },
    )
    log = _Log()
    log.add("run_start", "", name="quickstart")
    before: dict[str, list[dict[str, Any]]] = {}
    for index, name in enumerate(names):
        before = _stage(folder, shape, index, name, before, log)
    log.add("run_end", "")
    write_text(folder / "events.jsonl", "".join(log.lines))
    return folder


class _Log:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.time = BEGIN

    def add(self, kind: str, stage: str, step: int | None = None, *, seconds: float = 0.5, **fields: Any) -> None:
        self.time += seconds
        event = {"kind": kind, "stage": stage, "step": step, "time": round(self.time, 3), **fields}
        self.lines.append(dump({key: value for key, value in event.items() if value is not None}) + "\n")


def _stage(
    folder: Path, shape: Shape, index: int, name: str, before: dict[str, list[dict[str, Any]]], log: _Log
) -> dict[str, list[dict[str, Any]]]:
    key = f"{index:02d}-{name}"
    setting: dict[str, Any] = shape.stages[index - 1] if index else {"kind": "start", "domains": {}, "steps": 0}
    log.add("stage_start", key, stage_kind=setting["kind"], index=index)
    train = 0.0
    if index:
        log.add("data", key, tasks=32 * shape.steps)
        for step in range(setting["steps"]):
            train += _step(shape, key, setting, step, log)
        log.add("checkpoint", key, setting["steps"])
    rows = {name: _rows(shape, index, name) for name in shape.benchmarks}
    results = {}
    for benchmark, found in rows.items():
        write(folder / "stages" / key / "eval" / f"{benchmark}.jsonl", found)
        results[benchmark] = _result(shape, benchmark, found, before.get(benchmark))
        primary = results[benchmark]["estimates"][results[benchmark]["primary"]]
        log.add(
            "eval",
            key,
            benchmark=benchmark,
            metric=results[benchmark]["primary"],
            value=primary["value"],
            stderr=primary["stderr"],
            **counts(found),
            seconds=4,
        )
    log.add("stage_end", key)
    seconds = (
        {"data_seconds": 0.4, "train_seconds": round(train * 1.1, 3), "eval_seconds": 4.2 * len(rows)}
        if index
        else {"eval_seconds": 9.1}
    )
    write_json(
        folder / "stages" / key / "metrics.json",
        {
            "stage": key,
            "name": name,
            "kind": setting["kind"],
            "index": index,
            "domains": setting["domains"],
            "steps": setting["steps"],
            "checkpoint": "0" * 64,
            "benchmarks": results,
            "seconds": seconds,
        },
    )
    return rows


def _step(shape: Shape, key: str, setting: dict[str, Any], step: int, log: _Log) -> float:
    """One step's event; returns its seconds."""
    draw = random.Random(f"{shape.seed}{key}{step}")
    part = (step + 1) / setting["steps"]
    noise = draw.gauss(0, 0.03)
    if setting["kind"] == "sft":
        seconds = {"update_seconds": round(0.2 + abs(noise), 3)}
        loss = 0.3 + 2.2 * math.exp(-5 * part) + noise
        log.add(
            "step",
            key,
            step,
            loss=round(loss, 4),
            lr=3e-3 * min(1, 10 * part),
            grad_norm=round(1 + 3 * (1 - part) + noise, 3),
            **seconds,
        )
        return sum(seconds.values())
    seconds = {kind: round(base * (1 + 0.3 * draw.random()), 3) for kind, base in KINDS.items()}
    reward = 0.3 + 0.25 * (1 - math.exp(-3 * part)) + noise
    log.add(
        "step", key, step, seconds=sum(seconds.values()),
        reward_mean=round(reward, 4), value_mean=round(reward, 4), reward_std=0.41, zero_variance=round(0.2 + 0.2 * part + noise, 3),
        masked=draw.randrange(6), scored=256 - (step == 7), limit=int(step % 11 == 3), failed=int(step == 7), total=256,
        truncated=draw.randrange(9), response_tokens_mean=round(14 - 3 * part + 10 * noise, 2), response_tokens_max=48.0,
        entropy=round(1.2 - 0.7 * part + noise / 2, 4), loss=round(noise / 10, 5), grad_norm=round(0.4 + noise, 4), lr=3e-4, **seconds,
    )  # fmt: skip
    return sum(seconds.values())


def _skill(shape: Shape, index: int, domain: str) -> float:
    """How able the model is in a domain after stage `index`: SFT gives a base, its own stage a step, later ones cost a little."""
    if index == 0:
        return -4.0
    own = [
        i
        for i, stage in enumerate(shape.stages, 1)
        if stage["kind"] == "rl" and domain in stage["domains"] and i <= index
    ]
    return -0.9 + 1.1 * len(own) - 0.12 * sum(i < index for i in own) * (index - own[0] if own else 0)


def _rows(shape: Shape, index: int, benchmark: str) -> list[dict[str, Any]]:
    domain, rows = benchmark.split("/")[0], []
    skill = _skill(shape, index, domain)
    for number in range(shape.tasks):
        task = random.Random(f"{shape.seed}{benchmark}{number}")
        a, b, hard = task.randrange(10, 90), task.randrange(10, 90), task.gauss(0, 1.6)
        prompt: Any = (
            f"What is {a} + {b}? Put the answer in \\boxed{{}}."
            if domain != "if"
            else [
                {"role": "system", "content": "Follow every instruction."},
                {
                    "role": "user",
                    "content": f"Write about {task.choice(['rain', 'bread', 'ships'])} in lower case, with {a % 5 + 1} bullet points.",
                },
            ]
        )
        chance = 1 / (1 + math.exp(hard - skill))
        for sample in range(shape.samples):
            one = random.Random(f"{shape.seed}{index}{benchmark}{number}{sample}")
            is_right = one.random() < chance
            score = _score(one, is_right)
            answer = a + b if is_right else a + b + one.randrange(1, 9)
            text = (
                f"{a} + {b} is \\boxed{{{answer}}}"
                if domain != "if"
                else "* " + "\n* ".join(["rain falls on the roof"] * (a % 5 + is_right))
            )
            if index == 0:
                text = "".join(one.choice("abc <>&+\\{}7") for _ in range(24))
            rows.append(
                {"domain": domain, "id": f"{benchmark}-{number:04d}", "prompt": prompt, "answer": str(a + b) if domain != "if" else {"bullets": a % 5 + 1},
                 "mode": "", "source": "synthetic", "response": text, "prefill": "", "truncated": one.random() < 0.01, "tokens": len(text) // 3 + 1,
                 "sample": sample, "score": score}
            )  # fmt: skip
    return rows


def _score(draw: random.Random, is_right: bool) -> dict[str, Any]:
    luck = draw.random()
    if luck < 0.002:
        return {"value": 0.0, "error": "the worker was lost twice: killed by signal 9"}
    if luck < 0.005:
        return {"value": 0.0, "note": "limit: 10 s of CPU time"}
    return {"value": 1.0} if is_right else {"value": 0.0, "note": "the last box holds another number"}


def _result(
    shape: Shape, benchmark: str, rows: list[dict[str, Any]], before: list[dict[str, Any]] | None
) -> dict[str, Any]:
    estimates = summarise(rows)
    domain, _, name = benchmark.partition("/")
    result: dict[str, Any] = {
        "domain": domain, "benchmark": name, "samples": shape.samples, "sampling": {"temperature": 1.0},
        "estimates": {key: asdict(estimate) for key, estimate in estimates.items()}, "primary": next(iter(estimates)), **counts(rows),
        "truncated": sum(row["truncated"] for row in rows), "response_tokens": round(sum(row["tokens"] for row in rows) / len(rows), 3),
    }  # fmt: skip
    change = paired(before, rows) if before is not None else None
    if change is not None:
        result["change"] = asdict(change)
    return result


def edit(path: Path, **fields: Any) -> None:
    """Changes fields of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
