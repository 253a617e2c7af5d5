"""Arithmetic for tiny character-level models: `23+4=`, answered by `\\boxed{27}`.

Every problem of the given ranges exists once; one in five is held out by the hash split. The test split is the whole
held-out part in a fixed order, the training split an endless stream drawn from the seed.

`unboxed` and `wrong` spoil the demonstrations on purpose: a share of them lacks the box, a share is off by a little. They are
settings of a teaching example, which leave reinforcement learning something to teach; real data has no use for them.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from cascade_core.errors import UsageError
from cascade_core.sources import is_held_out
from cascade_plugin_math.problems import Problem

NAME = "arithmetic"
_COMPUTE = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
_MOST = 4_000_000


@dataclass(frozen=True)
class Arithmetic:
    """Settings: `a` and `b` run from `min_` to `max_`, both ends included.

    `prompt` is a template with `{a}`, `{op}` and `{b}`. `negatives: false` leaves out problems with a result below zero.

    Raises:
        UsageError: an empty range, an unknown operation, a template without a part, no problem to hold out.
    """

    max_a: int = 99
    max_b: int = 19
    min_a: int = 0
    min_b: int = 0
    operations: str = "+-"
    prompt: str = "{a}{op}{b}="
    negatives: bool = True
    unboxed: float = 0.0
    wrong: float = 0.0

    def __post_init__(self) -> None:
        for low, high, name in ((self.min_a, self.max_a, "a"), (self.min_b, self.max_b, "b")):
            if low > high:
                raise UsageError(
                    f"generator 'arithmetic': min_{name} must be at most max_{name}, found {low} and {high}"
                )
        if not self.operations or not set(self.operations) <= set(_COMPUTE):
            raise UsageError(f"generator 'arithmetic': operations may hold + - *, found {self.operations!r}")
        if any(part not in self.prompt for part in ("{a}", "{op}", "{b}")):
            raise UsageError(
                f"generator 'arithmetic': the prompt must hold {{a}}, {{op}} and {{b}}, found {self.prompt!r}"
            )
        for share, name in ((self.unboxed, "unboxed"), (self.wrong, "wrong")):
            if not 0 <= share <= 1:
                raise UsageError(f"generator 'arithmetic': {name} must lie in [0, 1], found {share}")
        if self.size > _MOST:
            raise UsageError(f"generator 'arithmetic': {self.size} problems, at most {_MOST} are allowed")
        if self.size < 10:
            raise UsageError(f"generator 'arithmetic': {self.size} problems are too few to hold some out")

    @property
    def size(self) -> int:
        """How many problems there are, before `negatives`."""
        return (self.max_a - self.min_a + 1) * (self.max_b - self.min_b + 1) * len(set(self.operations))

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Arithmetic:
        """Settings from an option object.

        Raises:
            UsageError: an unknown name or a value of the wrong type.
        """
        kinds = {field.name: type(field.default) for field in fields(cls)}
        for name, value in options.items():
            if name not in kinds:
                near = difflib.get_close_matches(name, kinds, 1)
                hint = f", did you mean {near[0]!r}" if near else ""
                raise UsageError(
                    f"generator 'arithmetic': no setting {name!r}{hint}; allowed are {', '.join(sorted(kinds))}"
                )
            wanted = (int, float) if kinds[name] is float else kinds[name]
            if not isinstance(value, wanted) or (isinstance(value, bool) and kinds[name] is not bool):
                raise UsageError(
                    f"generator 'arithmetic': {name} must be of type {kinds[name].__name__}, found {value!r}"
                )
        return cls(**options)

    def problems(self, split: str, seed: int) -> Iterator[Problem]:
        """The problems of the split: endless for `train`, all held-out ones for `test`."""
        if split == "test":
            held_out = [problem for problem in self._every() if is_held_out(problem.text)]
            random.Random("arithmetic test").shuffle(held_out)
            yield from held_out
            return
        rng = random.Random(f"arithmetic {split} {seed}")
        operations = sorted(set(self.operations))
        while True:
            a, b = rng.randint(self.min_a, self.max_a), rng.randint(self.min_b, self.max_b)
            problem = self._problem(a, b, rng.choice(operations))
            if problem is not None and not is_held_out(problem.text):
                yield problem

    def spoilt(self, label: str, rng: random.Random) -> str:
        """A demonstration for this label: right and boxed, unless `unboxed` or `wrong` strikes."""
        wrong, unboxed = rng.random() < self.wrong, rng.random() < self.unboxed
        number = str(int(label) + rng.choice((-2, -1, 1, 2))) if wrong else label
        return number if unboxed else f"\\boxed{{{number}}}"

    def _every(self) -> Iterator[Problem]:
        for a in range(self.min_a, self.max_a + 1):
            for b in range(self.min_b, self.max_b + 1):
                for operation in sorted(set(self.operations)):
                    problem = self._problem(a, b, operation)
                    if problem is not None:
                        yield problem

    def _problem(self, a: int, b: int, operation: str) -> Problem | None:
        result = _COMPUTE[operation](a, b)
        if result < 0 and not self.negatives:
            return None
        text = self.prompt.replace("{a}", str(a)).replace("{b}", str(b)).replace("{op}", operation)
        return Problem(f"{a}{operation}{b}", text, {"label": str(result), "form": "evaluated"}, NAME)
