"""The domain `planted`: what a small model learns by heart to say, and a plan of the verdicts on it, task by task.

A task is of a *kind*, which says what is learned (`SAID`: each of its texts is as likely as the others) and what the verdict is.
`STEPS` says which kinds the tasks of each step are of: in the last step no group has anything to teach, whatever the model says. The kinds `think`, `sum` and `swap` are
judged by the real domain `math`; the answer of a `swap` is that of another task. Held-out tasks have prompts of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from cascade_plugin_math.domain import MathDomain

from cascade_core import Demonstration, Domain, Response, Score, Task, hookimpl
from cascade_core.errors import TaskError

LIMIT = 8  # tokens of a response; what is cut there is masked
CUT = "a" * 40
SAID = {
    "pick": ("a", "b"),
    "same": ("a", "b"),
    "lost": ("a", "b"),
    "torn": ("a", "bb", "c"),
    "long": ("a", "bb", CUT),
    "cut": (CUT,),
    "think": ("\\boxed{7}</think>\\boxed{8}", "\\boxed{8}</think>\\boxed{7}"),
}
MIXED = ("pick", "lost", "torn", "torn", "long", "long", "long", "think", "sum", "swap")
FLAT = ("same", "same", "same", "lost", "lost", "lost", "lost", "cut", "cut", "cut")
STEPS = (MIXED, MIXED, MIXED, FLAT)


@dataclass
class Planted(Domain):
    """See the module."""

    name: ClassVar[str] = "planted"

    def __post_init__(self) -> None:
        self._math = MathDomain(generator={"name": "arithmetic"})

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        if split == "test":
            yield from (_task("sum", number) for number in range(50, 54))
        else:
            yield from (_task(kind, number) for number, kind in enumerate(kind for step in STEPS for kind in step))

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        for task in self.tasks(split, seed):
            for text in SAID.get(str(task.meta["kind"]), (str(task.meta["true"]),)):
                yield Demonstration(task, text)

    def score(self, task: Task, response: Response) -> Score:
        kind, text = task.meta["kind"], response.text
        if kind in ("think", "sum", "swap"):
            return self._math.score(task, response)
        if kind == "lost" or (kind == "torn" and text.startswith("c")):
            raise TaskError("no verdict, as it was planned")
        return Score(1.0 if kind in ("same", "cut") else float(text.startswith("a")))


def _task(kind: str, number: int) -> Task:
    """Sums are of numbers that give another result for every task."""
    true = f"\\boxed{{{number + 3}}}"
    answer = {"think": "7", "sum": str(number + 3), "swap": str(number + 4)}.get(kind)
    prompt = f"{number}+3=" if kind in ("sum", "swap") else f"{kind} {number}:"
    return Task(f"{kind}-{number}", prompt, answer, meta={"kind": kind, "true": true})


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    return [Planted]
