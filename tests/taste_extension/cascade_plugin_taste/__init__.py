"""A domain of preferences, judged by what a resource makes of a stage's checkpoint."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cascade_core import Benchmark, Domain, Pair, Resource, Response, Score, Task, hookimpl

NEED = "taste-shelf"


@dataclass
class Taste(Domain):
    """Red is better than blue. With `alone` nothing else is needed; `spoilt` of ten pairs teach nothing."""

    name: ClassVar[str] = "taste"
    needs: ClassVar[tuple[str, ...]] = (NEED,)
    alone: bool = False
    spoilt: int = 0
    size: int = 60
    same: bool = False

    def __post_init__(self) -> None:
        if self.alone:
            self.needs = ()  # type: ignore[misc]

    def open(self, resources: Mapping[str, str]) -> None:
        self._model = Path(resources[NEED].removeprefix("shelf:")) if self.needs else None

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        draw = random.Random(f"{split}{seed if split == 'train' else 0}")
        name = "" if self.same else split[:1]
        return [
            Task(f"{split}-{i}", f"{name}{i} " + "?" * (not self.same and draw.randrange(4)), source=f"s{i % 2}")
            for i in range(self.size)
        ]

    def score(self, task: Task, response: Response) -> Score:
        if self._model is not None:
            config = json.loads((self._model / "config.json").read_text())
            assert config["architectures"] == ["LlamaForSequenceClassification"]
        return Score(float("r" in response.text))

    def pairs(self, split: str, seed: int) -> Iterable[Pair]:
        for number, task in enumerate(self.tasks(split, seed)):
            times, is_spoilt = 1 + number % 3, number % 10 < self.spoilt
            chosen = "" if is_spoilt and number % 2 else "red" * times
            yield Pair(task, chosen, chosen if is_spoilt and not number % 2 else "blue" * times)

    def benchmarks(self) -> tuple[Benchmark, ...]:
        return (
            Benchmark("test"),
            Benchmark("pairs", of="reward_model"),
            Benchmark("halves", of="reward_model", limit=8),
        )


@dataclass
class Shelf(Resource):
    """Holds a model's folder for whoever asks; `log` is told when it starts and ends."""

    name: ClassVar[str] = "shelf"
    provides: ClassVar[str] = NEED
    default: ClassVar[bool] = True
    free: ClassVar[tuple[str, ...]] = ("log",)
    model: str
    log: str = ""
    more: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not Path(self.model).is_dir():
            raise ValueError(f"no folder is at {self.model!r}")

    def start(self) -> str:
        self._tell("start")
        return f"shelf:{self.model}"

    def stop(self) -> None:
        self._tell("stop")

    def _tell(self, what: str) -> None:
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{what} {self.model}\n")


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    return [Taste]


@hookimpl
def cascade_resources() -> list[type[Resource]]:
    return [Shelf]
