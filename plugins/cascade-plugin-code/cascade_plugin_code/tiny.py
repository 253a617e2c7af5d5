"""Small tasks with exact references for a model of half a million parameters: `print the max plus 3 of a,b: `.

A program reads two integers from one line and prints what is asked: one of five operations, then one or two steps with a
constant, done from left to right. The reference is one line, `a,b=map(int,input().split());print(max(a,b)+3)`; what is
expected is computed here, not by running it. There are 3,000 prompts, one in five of them held out by the hash split; the tests are
four inputs on which no two different results of the generator agree everywhere.

`noise` spoils a share of the demonstrations: one part is another than asked. It is a setting of a teaching example, which
leaves reinforcement learning something to teach; real data has no use for it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cascade_core.errors import UsageError
from cascade_core.nearest import suggestion
from cascade_core.sources import is_held_out
from cascade_plugin_code.problems import Problem

SOURCE = "generated-tiny"
READS = "a,b=map(int,input().split());"
INPUTS = ((7, 2), (-4, 6), (3, 5), (11, 11))
_OPERATIONS: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "sum": ("a+b", lambda a, b: a + b),
    "difference": ("a-b", lambda a, b: a - b),
    "product": ("a*b", lambda a, b: a * b),
    "max": ("max(a,b)", max),
    "min": ("min(a,b)", min),
}
_STEPS: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "plus": ("+", lambda value, number: value + number),
    "minus": ("-", lambda value, number: value - number),
    "times": ("*", lambda value, number: value * number),
}
_NUMBERS = range(2, 10)
_SUMS = ("sum", "difference")


@dataclass(frozen=True)
class Recipe:
    """What one task asks for: an operation, and steps of a word and a number."""

    operation: str
    steps: tuple[tuple[str, int], ...]

    @property
    def id(self) -> str:
        """Readable and the same in every run: `tiny-max-plus3`."""
        return "-".join(["tiny", self.operation, *(f"{word}{number}" for word, number in self.steps)])

    @classmethod
    def parse(cls, name: str) -> Recipe:
        """The recipe of an `id`."""
        _, operation, *steps = name.split("-")
        return cls(operation, tuple((step[:-1], int(step[-1])) for step in steps))

    @property
    def prompt(self) -> str:
        """The request."""
        return f"print the {self.operation}{''.join(f' {word} {number}' for word, number in self.steps)} of a,b: "

    @property
    def program(self) -> str:
        """The reference, in one line."""
        text, is_sum = _OPERATIONS[self.operation][0], self.operation in _SUMS
        for word, number in self.steps:
            if word == "times" and is_sum:
                text = f"({text})"
            text, is_sum = f"{text}{_STEPS[word][0]}{number}", word != "times"
        return f"{READS}print({text})"

    def value(self, a: int, b: int) -> int:
        """What is expected for one input."""
        value = _OPERATIONS[self.operation][1](a, b)
        for word, number in self.steps:
            value = _STEPS[word][1](value, number)
        return value

    @property
    def results(self) -> tuple[int, ...]:
        """What is expected for each of the inputs."""
        return tuple(self.value(*given) for given in INPUTS)

    def spoilt(self, rng: random.Random) -> Recipe:
        """One that differs in one part, and in its results."""
        while True:
            place = rng.randrange(len(self.steps) + 1)
            other = replace(self, operation=rng.choice(list(_OPERATIONS)))
            if place:
                steps = list(self.steps)
                word, number = steps[place - 1]
                steps[place - 1] = rng.choice([(rng.choice(list(_STEPS)), number), (word, rng.choice(_NUMBERS))])
                other = replace(self, steps=tuple(steps))
            if other.results != self.results:
                return other


@dataclass(frozen=True)
class Tiny:
    """What the option `generator` says: `level` is `tiny`, `noise` the share of spoilt demonstrations.

    Raises:
        UsageError: another level, a share outside of 0 to 1.
    """

    level: str = "tiny"
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.level != "tiny":
            raise UsageError(f"domain 'code': generator level must be 'tiny', found {self.level!r}")
        if isinstance(self.noise, bool) or not isinstance(self.noise, int | float) or not 0 <= self.noise <= 1:
            raise UsageError(f"domain 'code': generator noise must lie in [0, 1], found {self.noise!r}")

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Tiny:
        """The settings, from the option.

        Raises:
            UsageError: an unknown setting, or an impossible value.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise UsageError(f"domain 'code': generator has no setting {name!r}{suggestion(str(name), known)}")
        return cls(**options)

    def problems(self, split: str, seed: int) -> Iterator[Problem]:
        """Each problem of the split once: of `train` in an order drawn from the seed, of `test` in one fixed order."""
        recipes = [recipe for recipe in _every() if is_held_out(recipe.prompt) == (split == "test")]
        random.Random("tiny test" if split == "test" else f"tiny {split} {seed}").shuffle(recipes)
        return map(_problem, recipes)

    def demonstrated(self, name: str, rng: random.Random) -> str:
        """The program that a demonstration of the task shows: the reference, unless `noise` strikes."""
        recipe = Recipe.parse(name)
        return (recipe.spoilt(rng) if rng.random() < self.noise else recipe).program


def _every() -> Iterator[Recipe]:
    steps = list(itertools.product(_STEPS, _NUMBERS))
    for operation in _OPERATIONS:
        for one in steps:
            yield Recipe(operation, (one,))
        for both in itertools.product(steps, steps):
            yield Recipe(operation, both)


def _problem(recipe: Recipe) -> Problem:
    tests = [
        {"stdin": f"{a} {b}\n", "stdout": f"{result}\n"} for (a, b), result in zip(INPUTS, recipe.results, strict=True)
    ]
    answer = {"kind": "stdin", "language": "python", "tests": tests}
    return Problem(recipe.id, recipe.prompt, answer, SOURCE, solution=recipe.program)
