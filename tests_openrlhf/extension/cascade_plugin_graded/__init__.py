"""The domain `graded`: judged by a grader that is a service elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
from urllib.error import URLError
from urllib.request import urlopen

from cascade_core import Domain, Response, Score, Task, hookimpl
from cascade_core.errors import TaskError


@dataclass
class Graded(Domain):
    """Tasks are numbers; the grader is told the number and the response, and answers with a value.

    Args:
        grader: its address.
    """

    name: ClassVar[str] = "graded"
    lane: ClassVar[str] = "io"
    grader: str = ""

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        for number in range(1000):
            yield Task(f"{split}-{number}", f"{split} {number}: ", meta={"number": number})

    def score(self, task: Task, response: Response) -> Score:
        body = json.dumps({"number": task.meta["number"], "text": response.text}).encode()
        try:
            with urlopen(self.grader, body, timeout=200) as answer:
                return Score(float(answer.read()))
        except URLError as cause:
            raise TaskError(f"the grader does not answer: {cause}") from cause


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    return [Graded]
