"""`Tidy` keeps the contract of a domain, but for the one thing that its option `fault` names."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cascade_core import BatchStats, Benchmark, Domain, Group, Response, Score, Task
from cascade_core.errors import TaskError


@dataclass
class Tidy(Domain):
    """Say a word backwards."""

    name: ClassVar[str] = "tidy"
    fault: str = ""
    size: int = 40
    anything: Any = None

    def __post_init__(self) -> None:
        if self.fault == "stranger":
            self.__dict__["judges_any"] = True

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        if self.fault == "raises":
            raise FileNotFoundError("words.txt")
        if self.fault == f"no {split}":
            return
        if self.fault == "small seeds" and seed >= 2**32:
            raise ValueError("Seed must be between 0 and 2**32 - 1")
        for i in itertools.count() if split == "train" else range(self.size):
            word = f"{split}{i}"
            if self.fault == "random":
                word += os.urandom(4).hex()
            if self.fault == "seeded test" and split == "test":
                word += str(seed)
            task: Any = Task(
                id="same" if self.fault == "ids" else word,
                prompt="Say it." if self.fault == "overlap" else f"Say {word} backwards.",
                answer=(word[::-1],) if self.fault == "tuple" else word[::-1],
                mode="thinking" if self.fault == "mode" else "",
            )
            yield {"id": word} if self.fault == "no task" else task

    def score(self, task: Task, response: Response) -> Score:
        said = response.text if self.fault == "thought" else (response.answer or "")
        self._fault(said)
        wanted = task.answer[0] if isinstance(task.answer, list | tuple) else task.answer
        right = wanted in said or (self.fault == "blank" and not said.strip())
        if self.fault == "echo":
            right = right or any(word in said for word in task.question.split())
        if self.fault == "length" and len(said) > 1000:
            right = True
        value = float(right)
        if self.fault == "chance":
            value *= int.from_bytes(os.urandom(4), "big") / 2**32
        if self.fault == "process":
            value *= 1 / os.getpid()
        return Score(value)

    def _fault(self, said: str) -> None:
        if self.fault == "surrogates":
            said.encode()
        if self.fault == "nul" and "\x00" in said:
            raise TaskError("NUL")
        if self.fault == "slow":
            time.sleep(0.06)
        if self.fault == "network":
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", 9), 0.01).close()

    def reference(self, task: Task) -> str | None:
        if self.fault == "reference type":
            return 7  # type: ignore[return-value]
        if self.fault == "reference":
            return "sdrawkcab"
        return None if self.fault == "no reference" else str(task.answer)

    def benchmarks(self) -> Sequence[Benchmark]:
        if self.fault == "benchmarks":
            return (Benchmark("test"), Benchmark("test", samples=2))
        return (Benchmark("empty", split="none"),) if self.fault == "empty benchmark" else (Benchmark("test"),)

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        own = [score.trained for score in group.scores]
        return own[1:] if self.fault == "rewards" else own
