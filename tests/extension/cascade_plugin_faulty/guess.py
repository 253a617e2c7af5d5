"""A conversation: the model guesses a number, and the environment says whether it is higher or lower."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cascade_core import Benchmark, Demonstration, Domain, Message, Response, Score, Task

_NUMBER = re.compile(r"\d+")


def guessed(text: str) -> int | None:
    """The last number in a text."""
    found = _NUMBER.findall(text)
    return int(found[-1][:9]) if found else None


@dataclass
class Guess(Domain):
    """A number from 0 to `largest`. A guess that says `raise`, `spin` or `number` makes the environment fail in that way.

    Args:
        largest: the largest number.
        measured: whether there is a benchmark.
    """

    name: ClassVar[str] = "guess"
    most_turns: ClassVar[int] = 4
    largest: int = 9
    measured: bool = False

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        draw = random.Random(f"{split}/{0 if split == 'test' else seed}")
        for number in range(1000):
            answer = draw.randint(0, self.largest)
            yield Task(f"{split}-{number}", f"{split} {number}: 0 to {self.largest}?", answer)

    def benchmarks(self) -> Sequence[Benchmark]:
        return (Benchmark("test", limit=4),) if self.measured else ()

    def reply(self, task: Task, turns: Sequence[Message]) -> Any:
        said = turns[-1]["content"]
        if "raise" in said:
            raise ValueError("the environment has no answer")
        if "number" in said:
            return 7
        while "spin" in said:
            time.process_time()
        guess = guessed(said)
        if guess == task.answer:
            return None
        return "a number" if guess is None else "higher" if guess < task.answer else "lower"

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """How a guess looks, right or not."""
        draw = random.Random(seed)
        for task in self.tasks(split, seed):
            yield Demonstration(task, str(draw.randint(0, self.largest)))

    def score(self, task: Task, response: Response) -> Score:
        """Right is 1; the reward falls with the turns that it took. `turns` are counted so that a test sees them."""
        right = guessed(response.text) == task.answer
        earlier = len(response.turns) // 2
        return Score(float(right), reward=right / (1 + earlier), metrics={"turns": 1 + earlier})
