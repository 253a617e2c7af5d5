"""What a slow verifier adds to a training step when responses are judged as they end, and when they are judged after the last.

The trainer `trl` generates 32 × 8 responses of up to 96 tokens from a model of random weights; a verdict on every second of
them takes some CPU time in one worker process, as much in all as generation takes, so that two cores are wanted. The same
stage runs twice a round, once with `Judge.hand_over` made to do nothing; rewards are the same. Seconds are of the clock, the
median over steps. The last line is one JSON object.

    OMP_NUM_THREADS=1 python benchmarks/overlap.py
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cascade_core import rows as rowfile
from cascade_core.domain import DomainRef
from cascade_core.events import Events
from cascade_core.initial import make
from cascade_core.judge import Judge, Judged
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.settings import InitModel, InitTokenizer, Optim, Rollout, Scoring, Stage
from cascade_core.trainers import Job
from cascade_core.trainers.trl import TrlTrainer

EXTENSION = Path(__file__).parents[1] / "tests" / "extension"
SAMPLES, LIMIT = 8, 96
PARTS = ("generate_seconds", "verify_seconds", "update_seconds")


class Slow:
    """The stage's judge, for rows whose response says how long a verdict takes."""

    def __init__(self, judge: Judge, burn: float, early: bool) -> None:
        self._judge, self._burn, self._early = judge, burn, early

    def _slow(self, row: Row) -> Row:
        """Every second response is right, after CPU time; the others are wrong at once. None is the same sample as another."""
        is_right = hashlib.sha256(str(row["response"]).encode()).digest()[0] % 2
        said = f"burn {self._burn}" if is_right else "wrong"
        return {**row, "response": said, "id": f"{row['id']}-{row['group']}-{row['sample']}"}

    def hand_over(self, row: Row) -> None:
        if self._early:
            self._judge.hand_over(self._slow(row))

    def judge(self, step: int, rows: Sequence[Row]) -> Judged:
        return self._judge.judge(step, [self._slow(row) for row in rows])


def stage_seconds(start: Path, prompts: int, steps: int, burn: float, early: bool) -> list[Mapping[str, float]]:
    """Generation, verification (what a step waits for) and update of each step but the first."""
    stage = Stage(
        name="overlap",
        domains={"faulty": 1.0},
        steps=steps,
        save_every=0,
        optim=Optim(lr=1e-5),
        rollout=Rollout(prompts_per_step=prompts, samples_per_prompt=SAMPLES, max_response_tokens=LIMIT),
        micro_batch=SAMPLES,
        overlong="keep",
    )
    tasks = [
        {"domain": "faulty", "id": f"t{i}", "prompt": f"say {i}", "answer": "right"} for i in range(prompts * steps)
    ]
    with (
        tempfile.TemporaryDirectory() as name,
        Scorer({"faulty": DomainRef("faulty")}, Scoring(workers=1)) as scorer,
    ):
        folder = Path(name)
        rowfile.write(folder / "prompts.jsonl", tasks)
        judge: Any = Slow(Judge(scorer, stage, 0, folder, 1.0), burn, early)
        events = Events(folder / "events.jsonl")
        TrlTrainer().train(Job(stage, 0, folder, start, folder / "out", folder / "prompts.jsonl", events, judge))
        told = map(json.loads, (folder / "events.jsonl").read_text("utf-8").splitlines())
        return [{part: event[part] for part in PARTS} for event in told if event["kind"] == "step"][1:]


def summary(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median seconds of each part, of a whole step, and the share of it that verification is."""
    found = {part: statistics.median(step[part] for step in steps) for part in PARTS}
    whole = statistics.median(sum(step.values()) for step in steps)
    return {**found, "step_seconds": whole, "verify_share": found["verify_seconds"] / whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--burn", type=float, default=0.03, help="CPU seconds of every second verdict")
    given = parser.parse_args()
    sys.path.insert(0, str(EXTENSION))
    steps: dict[bool, list[Mapping[str, float]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as name:
        start = Path(name) / "model"
        make(InitModel(hidden_size=192, layers=4, heads=4, context=128, tokenizer=InitTokenizer()), 0, start)
        for _ in range(given.rounds):
            for early in (True, False):
                steps[early] += stage_seconds(start, given.prompts, given.steps, given.burn, early)
    overlapping, after = summary(steps[True]), summary(steps[False])
    for label, found in (("as they end", overlapping), ("after the last", after)):
        print(f"judged {label}: " + ", ".join(f"{key} {value:.3f}" for key, value in found.items()))
    ratio = overlapping["step_seconds"] / after["step_seconds"]
    print(json.dumps({"overlapping": overlapping, "after": after, "step_ratio": ratio}))


if __name__ == "__main__":
    main()
