"""Scorers of any task: the response is JSON that says what each of them is going to say of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cascade_core import BatchStats, Domain, Group, Response, Score, Task
from cascade_core.errors import TaskError


@dataclass
class Said(Domain):
    """`{"rule": 1}` is value 1 where `key` is `rule`; a number out of [0, 1] is the reward, and `null` cannot be judged.

    Text that is no JSON object is 0 if it says `key`, else 1. `"spin"` never ends, `"note"` tells what was seen.

    Args:
        key: whose part of the response this scorer reads.
    """

    name: ClassVar[str] = "said"
    key: str = ""

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        return [Task(f"{split}-{i}", f"{split} question {i}") for i in range(8)]

    def reference(self, task: Task) -> str:
        return json.dumps({self.key: 1})

    def score(self, task: Task, response: Response) -> Score:
        try:
            said = json.loads(response.text)[self.key]
        except (ValueError, TypeError):
            return Score(float(self.key not in response.prefill + response.text), metrics={"seen": len(response.text)})
        if said is None:
            raise TaskError(f"{self.key} cannot tell")
        while said == "spin":
            math.sqrt(2)
        value = min(max(float(said), 0.0), 1.0)
        return Score(value, reward=float(said), note=f"{self.key} says {said}")


@dataclass
class Preferred(Said):
    """The sigmoid of the group's z-score, and waits."""

    name: ClassVar[str] = "preferred"
    lane: ClassVar[str] = "io"

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        raw = [score.trained for score in group.scores]
        mean = math.fsum(raw) / len(raw)
        spread = math.sqrt(math.fsum((one - mean) ** 2 for one in raw) / max(len(raw) - 1, 1))
        return [1 / (1 + math.exp(-((one - mean) / spread if spread > 1e-9 else 0.0))) for one in raw]
