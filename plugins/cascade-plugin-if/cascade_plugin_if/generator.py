"""The generator: tasks of 1 to 10 instructions that do not conflict, each with a reference that follows them all.

Four levels. `tiny` (`tiny.py`) is for a model of half a million parameters; `easy` puts one to three short instructions
on a base prompt; `full` up to ten of IFEval's 25 families; `wide` up to ten of those and the 29 that IFBench's authors train
on. What IFBench evaluates with is never drawn. The same settings, split and seed give the same tasks; the test
split is the same whatever the seed, and shares no prompt with the training split.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from random import Random
from typing import Any, Literal

from cascade_core import Task
from cascade_core.errors import UsageError
from cascade_plugin_if import tiny

LEVELS: Mapping[str, tuple[int, int]] = {"tiny": (1, 10), "easy": (1, 3), "full": (1, 10), "wide": (1, 10)}


@dataclass(frozen=True)
class Settings:
    """What the option `generator` says.

    Attributes:
        level: `tiny`, `easy`, `full` or `wide`.
        constraints: the least and the most instructions of a task; the default is that of the level, see `LEVELS`.
        families: ids (`keywords:existence`) or groups (`keywords`) to draw from; empty draws from all of the level.
        size: how many tasks of a split; 0 is as many as there are.

    Raises:
        UsageError: a value is not allowed; names what is.
    """

    level: Literal["tiny", "easy", "full", "wide"] = "easy"
    constraints: tuple[int, int] | None = None
    families: tuple[str, ...] = ()
    size: int = 0

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UsageError(f"domain 'if': generator level must be one of {', '.join(LEVELS)}, found {self.level!r}")
        if self.constraints is not None and not _is_range(self.constraints):
            raise UsageError(
                f"domain 'if': generator constraints must be [least, most] within [1, 10], found {self.constraints!r}"
            )
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 0:
            raise UsageError(f"domain 'if': generator size must be a whole number of at least 0, found {self.size!r}")
        if self.families:
            object.__setattr__(self, "families", _families(self.families, self.level))

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Settings:
        """The settings from JSON, checked.

        Raises:
            UsageError: a key or value is not allowed.
        """
        names = [field.name for field in fields(cls)]
        for key in options:
            if key not in names:
                near = difflib.get_close_matches(str(key), names, n=1)
                hint = f", nearest is {near[0]!r}" if near else ""
                raise UsageError(f"domain 'if': generator has no setting {key!r}, allowed are {', '.join(names)}{hint}")
        return cls(**options)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the most instructions of a task."""
        return LEVELS[self.level] if self.constraints is None else (self.constraints[0], self.constraints[1])


def _is_range(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return all(isinstance(number, int) for number in value) and 1 <= value[0] <= value[1] <= 10


def _families(value: Any, level: str) -> tuple[str, ...]:
    """Ids, from ids and groups of the level."""
    from cascade_plugin_if.registry import EVALUATION, IFEVAL, TRAINING

    if not isinstance(value, list | tuple):
        raise UsageError(f"domain 'if': generator families must be a list of ids or groups, found {value!r}")
    pool = TRAINING if level == "wide" else IFEVAL
    found: list[str] = []
    for name in value:
        ids = [id for id in pool if name in (id, id.split(":")[0])]
        if name in EVALUATION:
            raise UsageError(
                f"domain 'if': generator families has {name!r}, which is for evaluation only, as all of IFBench"
            )
        if not ids:
            groups = sorted({id.split(":")[0] for id in pool})
            near = difflib.get_close_matches(str(name), [*groups, *pool], n=1)
            hint = f"nearest is {near[0]!r}" if near else f"groups are {', '.join(groups)}"
            hint = "which level 'wide' draws from" if name in TRAINING else hint
            raise UsageError(f"domain 'if': generator families has {name!r}, no id or group of level {level!r}, {hint}")
        found += ids
    return tuple(dict.fromkeys(found))


def tasks(settings: Settings, split: str, seed: int) -> Iterator[Task]:
    """The tasks of a split, each once."""
    for number, fields_ in enumerate(_rows(settings, split, seed), 1):
        yield _task(settings.level, fields_)
        if number == settings.size:
            return


def _rows(settings: Settings, split: str, seed: int) -> Iterator[Mapping[str, Any]]:
    least, most = settings.bounds
    if settings.level == "tiny":
        for recipe in tiny.recipes(split, seed, settings.families):
            if least <= len(recipe.instructions) <= most:
                yield tiny.task_fields(recipe)
        return
    from cascade_plugin_if import composer

    yield from composer.compose(settings, split, seed)


def _task(level: str, row: Mapping[str, Any]) -> Task:
    answer = {name: row[name] for name in ("instruction_id_list", "kwargs", "reference")}
    return Task(row["key"], row["prompt"], answer, source=f"generated-{level}", meta={"level": level})


def spoilt(task: Task, reference: str, rng: Random) -> str:
    """An answer that breaks one of the task's instructions, or more where one cannot be broken alone."""
    if task.meta.get("level") == "tiny":
        return tiny.Recipe.parse(task.id).spoil(rng)
    from cascade_plugin_if import composer

    return composer.spoil(task.answer, reference, rng)
