"""What an instruction family is: `Instruction`, its arguments (`Argument`), and how arguments are read.

Arguments come from data sets as JSON: unused ones are null, numbers are at times strings. A missing, null, mistyped or
unknown argument is an error of the task that names the instruction and the argument: nothing is drawn at random, and
nothing passes unchecked.
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, NoReturn

from cascade_core.errors import TaskError
from cascade_plugin_if.reading import Reading

Args = Mapping[str, Any]

# IFEval uses the first two; the others appear in data sets derived from it and have one meaning only.
RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "at least": operator.ge,
    "less than": operator.lt,
    "at most": operator.le,
    "more than": operator.gt,
    "exactly": operator.eq,
}


def holds(count: int, relation: str, bound: int) -> bool:
    """Whether `count` stands in the relation to `bound`."""
    return RELATIONS[relation](count, bound)


def counted(count: int, noun: str) -> str:
    """`1 word`, `2 words`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True)
class Argument:
    """One argument: its name in the public data, and `read`, which checks a JSON value and returns it.

    `read` raises `ValueError` with what is allowed.
    """

    name: str
    read: Callable[[Any], Any]


def whole(least: int) -> Callable[[Any], int]:
    """Reads a whole number of at least `least`; `"5"` and `5.0` are 5, `True` is none."""

    def read(value: Any) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"a whole number of at least {least}")
        return value

    return read


def between(least: int, most: int) -> Callable[[Any], int]:
    """Reads a whole number from `least` to `most`."""
    any_whole = whole(least)

    def read(value: Any) -> int:
        try:
            number = any_whole(value)
        except ValueError:
            number = most + 1
        if number > most:
            raise ValueError(f"a whole number from {least} to {most}")
        return number

    return read


def text(value: Any) -> str:
    """Reads a text in which there is something to read; it is cleaned as answers are, so that the two can be compared."""
    read = Reading(value if isinstance(value, str) else "")
    if read.is_blank:
        raise ValueError("a text that is not blank")
    return read.text


def texts(value: Any) -> list[str]:
    """Reads a list of texts, at least one; a lone text is a list of one."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not items:
        raise ValueError("a list of texts that are not blank")
    return [text(item) for item in items]


def lone_text(value: Any) -> str:
    """Reads a text; a list of one text is that text."""
    return text(value[0] if isinstance(value, list | tuple) and len(value) == 1 else value)


def relation(value: Any) -> str:
    """Reads a relation."""
    name = value.strip().casefold() if isinstance(value, str) else value
    if not isinstance(name, str) or name not in RELATIONS:
        raise ValueError("one of " + ", ".join(map(repr, RELATIONS)))
    return name


def character(value: Any) -> str:
    """Reads a single character."""
    one = unicodedata.normalize("NFC", text(value)[:8])
    if len(one) != 1:
        raise ValueError("a single character")
    return one


@dataclass(frozen=True)
class Instruction:
    """One family.

    Attributes:
        id: the public id, `group:name`.
        arguments: every argument; all are needed.
        check: whether a reading of a text that is not blank follows the instruction.
        describe: the instruction as a sentence for the model.
        edit: changes a draft so that it follows the instruction; used to build references, in the order of `stage`. None
            where the instruction is for evaluation only.
        stage: edits of a low stage write the body, of a high one wrap or rewrite the whole.
        clash: what is wrong with arguments that are each fine, for people; `""` if nothing.
    """

    id: str
    arguments: tuple[Argument, ...]
    check: Callable[[Reading, Args], bool]
    describe: Callable[[Args], str]
    edit: Callable[[str, Args, Random], str] | None = None
    stage: int = 0
    clash: Callable[[Args], str] = lambda args: ""

    def read(self, kwargs: Any) -> dict[str, Any]:
        """The arguments, checked; arguments that are null count as absent.

        Raises:
            TaskError: one is missing, unknown or of a wrong kind.
        """
        given = {} if kwargs is None else kwargs
        if not isinstance(given, Mapping):
            raise TaskError(f"instruction {self.id!r} needs an object of arguments, found {str(kwargs)[:80]!r}")
        given = {name: value for name, value in given.items() if value is not None}
        if given.keys() != self._names:
            self._refuse(given)
        args = {argument.name: self._read(argument, given[argument.name]) for argument in self.arguments}
        if clash := self.clash(args):
            raise TaskError(f"instruction {self.id!r}: {clash}")
        return args

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(argument.name for argument in self.arguments)

    def _refuse(self, given: Args) -> NoReturn:
        names = [argument.name for argument in self.arguments]
        for name in names:
            if name not in given:
                found = ", ".join(map(repr, given)) or "none"
                raise TaskError(f"instruction {self.id!r} lacks its argument {name!r}, found {found}")
        unknown = next(name for name in given if name not in names)
        allowed = ", ".join(map(repr, names)) or "none"
        raise TaskError(f"instruction {self.id!r} knows no argument {unknown!r}, allowed are {allowed}")

    def _read(self, argument: Argument, value: Any) -> Any:
        try:
            return argument.read(value)
        except ValueError as cause:
            raise TaskError(
                f"argument {argument.name!r} of instruction {self.id!r} must be {cause}, found {str(value)[:80]!r}"
            ) from None
