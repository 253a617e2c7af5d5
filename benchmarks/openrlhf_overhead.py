"""What a step costs when `cascade run` drives OpenRLHF, beside OpenRLHF alone with a reward that costs nothing.

Both are the real OpenRLHF with Ray, vLLM and DeepSpeed, on the CPU under the shim of `cascade rehearse`: the same model, prompts, sizes and
flags. OpenRLHF alone samples, judges with a function of four lines from a file (its `--reward.remote_url`), and trains; ours
has its agent ask the service of the stage for tasks and advantages, and verdicts of the domain math in a process of their own. The two jobs run side
by side, so that their steps lie between each other and a busy machine slows both; after the first steps, what each step cost is
the CPU time of all processes of its side from one step's end to the next: the program, Ray's daemons and workers, engines, and, of ours, `cascade
run` itself with its service and scoring processes. Steps count that lie where both sides made steps that count, since a step costs
something else when the other side is not at work.

vLLM's processes ask each other for work without a pause for a second after the last, on a CPU even in an engine of one device, where there is one process on a
GPU. What they use so is not work, and is as much as the cores have left while their side does something else; a plugin of vLLM's counts it
(`COUNTER`), on both sides, and it is told apart.

    python benchmarks/openrlhf_overhead.py [--python .openrlhf/bin/python] [--steps 40] [--prompts 8] [--samples 4]

The last line is one JSON object: the medians, their `ratio` (wanted: at most 1.10) and that without vLLM's waiting (`work_ratio`), and
what each kind of process used in a step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from cascade_core.initial import make
from cascade_core.rows import read
from cascade_core.rows import write as write_rows
from cascade_core.settings import Engine, InitModel, Stage
from cascade_core.spec import load
from cascade_core.trainers import openrlhf_args
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_log import plain, step_numbers

SKIPPED = 3
"""Steps at the start, in which things are loaded and compiled."""
LONGEST_SECONDS = 3600
SPEC = """
name: overhead
seed: 1
trainer: openrlhf
engine: {{python: {python}, cpu: true, stall_seconds: 900}}
model: {model}
domains: {{math: {{generator: {{name: arithmetic, max_a: 99, max_b: 11}}}}}}
stages:
  - name: math
    domains: math
    steps: {steps}
    save_every: 0
    micro_batch: {samples}
    rollout: {{prompts_per_step: {prompts}, samples_per_prompt: {samples}, max_response_tokens: 16}}
    optim: {{lr: 1e-6}}
evaluation: {{benchmarks: []}}
scoring: {{workers: 1}}
"""
REWARD = """
import hashlib
def reward_func(queries, prompts, labels):
    value = hashlib.sha256(queries[0].encode()).digest()[0] / 255.0
    return {"rewards": value, "scores": value, "extra_logs": {}}
"""

WAITING = "vLLM's engine, waiting"
COUNTER = """
import mmap, os, pathlib, threading, time
from contextlib import contextmanager

cells, lock = {}, threading.Lock()

def add(seconds):
    with lock:
        name = str(os.getpid())  # processes are forked
        if name not in cells:
            with open(pathlib.Path(__file__).with_name(name), "w+b") as file:
                file.write(bytes(8))
                file.flush()
                cells[name] = memoryview(mmap.mmap(file.fileno(), 8)).cast("d")
        cells[name][0] += seconds

def register():
    from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
    acquire_read = MessageQueue.acquire_read

    @contextmanager
    def counted(self, *args, **named):
        begun = time.thread_time()
        with acquire_read(self, *args, **named) as found:
            add(time.thread_time() - begun)
            yield found

    MessageQueue.acquire_read = counted
"""
"""CPU seconds that a process of vLLM's has waited for messages, in a file of its number beside this module."""


@dataclass(frozen=True)
class Mark:
    """The end of a step: its number, when it was seen, and the CPU seconds that its side had used by then, by kind of process."""

    step: int
    at: float
    cpu: Mapping[str, float]


def per_step(marks: Sequence[Mark], since: float, until: float) -> list[dict[str, float]]:
    """What each step after the first ones used, of those that began at `since` or later and had ended by `until`.

    A step whose end was only seen together with that of the next is left out, and so is the next.
    """
    return [
        {kind: now.cpu[kind] - before.cpu.get(kind, 0.0) for kind in now.cpu}
        for before, now in pairwise(marks)
        if now.step == before.step + 1 and before.step >= SKIPPED and since <= before.at and now.at <= until
    ]


def compared(marks: Mapping[str, Sequence[Mark]]) -> dict[str, Any]:
    """The figures of two sides, `ours` and `alone`.

    Raises:
        SystemExit: one was done before the other had begun.
    """
    since = max(next(mark.at for mark in each if mark.step >= SKIPPED) for each in marks.values())
    until = min(each[-1].at for each in marks.values())
    steps = {side: per_step(each, since, until) for side, each in marks.items()}
    if not all(steps.values()):
        raise SystemExit("one side was done before the other had made a step that counts; give more --steps")
    middle = {side: statistics.median(sum(step.values()) for step in each) for side, each in steps.items()}
    work = {
        side: statistics.median(sum(step.values()) - step.get(WAITING, 0.0) for step in each)
        for side, each in steps.items()
    }
    found: dict[str, Any] = {
        "ratio": round(middle["ours"] / middle["alone"], 3),
        "work_ratio": round(work["ours"] / work["alone"], 3),
    }
    for side, each in steps.items():
        found[f"{side}_cpu_seconds"] = round(middle[side], 3)
        found[f"{side}_work_seconds"] = round(work[side], 3)
        found[f"{side}_steps"] = len(each)
        kinds = sorted({kind for step in each for kind in step})
        shares = {kind: statistics.mean(step.get(kind, 0.0) for step in each) for kind in kinds}
        found[f"{side}_by_process"] = {kind: round(share, 3) for kind, share in shares.items() if share >= 0.0005}
    return found


@dataclass
class Side:
    """A training under way: the process whose descendants it consists of, whether that one is a part of it, its log, and where `COUNTER` is."""

    root: psutil.Process
    log: Path
    counts_root: bool
    counter: Path
    marks: list[Mark] = field(default_factory=list)
    _read: int = 0

    def look(self) -> None:
        """Takes down the end of a step that the log tells since the last look."""
        if not self.log.exists():
            return
        with self.log.open("rb") as log:
            log.seek(self._read)
            whole = log.read().rpartition(b"\n")
        self._read += len(whole[0]) + len(whole[1])
        found = [step_numbers(plain(line)) for line in whole[0].decode("utf-8", "replace").splitlines()]
        if steps := [one[0] for one in found if one is not None]:
            self.marks.append(Mark(steps[-1], time.monotonic(), self._cpu()))

    def _cpu(self) -> dict[str, float]:
        """CPU seconds so far by kind of process; what has ended counts with whoever waited for it."""
        total: Counter[str] = Counter()
        for process in [self.root, *self.root.children(recursive=True)]:
            try:
                name, used = kind(process.cmdline()), process.cpu_times()
            except psutil.Error:
                continue
            total[name] += used.children_user + used.children_system
            if self.counts_root or process is not self.root:
                total[name] += used.user + used.system
            if (cell := self.counter / str(process.pid)).exists():
                (waited,) = struct.unpack("d", cell.read_bytes())
                total[WAITING] += waited
                total[name] -= waited
        return dict(total)


def kind(words: Sequence[str]) -> str:
    """What a process is, in a word or two, by its command line."""
    text = " ".join(words)
    if text.startswith("ray::"):
        return text.partition(" ")[0].partition(".")[0]
    for mark, name in (
        ("VLLM", "vLLM's engine"),
        ("train_ppo_ray", "OpenRLHF's program"),
        ("cascade_core.worker", "scoring process"),
        ("openrlhf_guard", "guard of the job"),
        ("cascade_core.cli", "cascade run and its service"),
        ("raylet", "Ray's daemons"),
        ("gcs_server", "Ray's daemons"),
        ("ray", "Ray's daemons"),
    ):
        if mark in text:
            return name
    return "others"


def counting(folder: Path) -> dict[str, str]:
    """The variables of this process, and `COUNTER` installed where they say."""
    about = folder / "waited-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: waited\nVersion: 0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[vllm.general_plugins]\nwaited = waited:register\n", encoding="utf-8")
    (folder / "waited.py").write_text(COUNTER, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


@contextmanager
def ours(spec: Path, folder: Path, counter: Path) -> Iterator[Side]:
    """`cascade run` in a process of its own."""
    words = [sys.executable, "-c", "from cascade_core.cli import main; main()", "run", str(spec)]
    with (folder.parent / "ours.log").open("wb") as log:
        run = subprocess.Popen([*words, "--folder", str(folder)], env=counting(counter), stdout=log, stderr=log)
    try:
        yield Side(psutil.Process(run.pid), folder / "stages" / "01-math" / "train.log", True, counter)
    finally:
        run.terminate()
        run.wait()


@contextmanager
def alone(stage: Stage, engine: Engine, model: Path, prompts: Path, folder: Path) -> Iterator[Side]:
    """OpenRLHF on the prompts of our stage, with our flags but for the agent."""
    places = openrlhf_args.Places.of(folder, model, folder / "model")
    places.data.parent.mkdir(parents=True)
    # The model has no chat template: what it reads is the prompt as it stands.
    write_rows(places.data, ({"prompt": row["prompt"], "label": "0"} for row in read(prompts)))
    reward = folder / "reward.py"
    reward.write_text(REWARD, encoding="utf-8")

    def adapted(flags: Mapping[str, Any]) -> Mapping[str, Any]:
        kept = {name: value for name, value in flags.items() if name != "train.agent_func_path"}
        return engines.adapted(engine, {**kept, "reward.remote_url": reward, "train.num_episodes": 1})

    words = openrlhf_args.command(
        stage,
        1,
        engines.cluster(engine),
        places,
        known=engines.known(engine, "rl"),
        python=engines.interpreter(engine),
        adapt=adapted,
    )
    counter = folder / "waited"
    environment = engines.environment(counting(counter), engine, folder / "lent", "", "")
    with Running(words, environment, folder / "train.log", folder / "job.json") as job:
        guard = json.loads((folder / "job.json").read_text("utf-8"))["guard"]
        side = Side(psutil.Process(guard), folder / "train.log", False, counter)
        yield side
        job.end()


def followed(sides: Mapping[str, Side], steps: int) -> None:
    """Looks at both until each has done its steps.

    Raises:
        SystemExit: one ended before, or it takes too long.
    """
    end = time.monotonic() + LONGEST_SECONDS
    while any(not side.marks or side.marks[-1].step < steps - 1 for side in sides.values()):
        for name, side in sides.items():
            side.look()
            is_over = not side.root.is_running() or side.root.status() == psutil.STATUS_ZOMBIE
            if is_over and (not side.marks or side.marks[-1].step < steps - 1):
                told = side.log.read_text("utf-8", "replace")[-3000:] if side.log.exists() else ""
                raise SystemExit(f"{told}\nthe training of {name!r} ended before its {steps} steps")
        if time.monotonic() > end:
            raise SystemExit(f"no end after {LONGEST_SECONDS} s")
        time.sleep(0.02)


def measured(python: Path, steps: int, prompts: int, samples: int) -> dict[str, Any]:
    """Trains both ways and compares them."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        place = Path(name)
        model, spec = place / "start", place / "spec.yaml"
        make(InitModel(context=64), 1, model)
        text = SPEC.format(python=python.absolute(), model=model, steps=steps, prompts=prompts, samples=samples)
        spec.write_text(text, encoding="utf-8")
        stage, engine = load(spec).stages[0], Engine(python=str(python.absolute()), cpu=True)
        sides = {"ours": stack.enter_context(ours(spec, place / "run", place / "waited"))}
        drawn = place / "run" / "stages" / "01-math" / "prompts.jsonl"
        while not sides["ours"].log.exists():  # both jobs begin at once
            if not sides["ours"].root.is_running() or sides["ours"].root.status() == psutil.STATUS_ZOMBIE:
                raise SystemExit((place / "ours.log").read_text("utf-8", "replace")[-3000:])
            time.sleep(0.1)
        sides["alone"] = stack.enter_context(alone(stage, engine, model, drawn, place / "alone"))
        followed(sides, steps)
        return compared({name: side.marks for name, side in sides.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, default=Path(".openrlhf/bin/python"), help="that has OpenRLHF")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--prompts", type=int, default=8, help="of a step")
    parser.add_argument("--samples", type=int, default=4, help="of a prompt")
    args = parser.parse_args()
    found = measured(args.python, args.steps, args.prompts, args.samples)
    for side in ("alone", "ours"):
        print(f"{side}: {found[f'{side}_cpu_seconds']:.3f} CPU seconds a step, median of {found[f'{side}_steps']}")
        for name, seconds in sorted(found[f"{side}_by_process"].items(), key=lambda one: -one[1]):
            print(f"    {seconds:7.3f}  {name}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
