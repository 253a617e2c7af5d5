"""The verdict on an answer: which instructions it follows, read strictly and loosely, and the `Score` of that.

Strict is what IFEval calls strict, and what trains: every instruction holds for the answer as it is. Loose asks each
instruction of the eight texts of `loose.py`. An answer in which there is nothing to read follows no instruction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cascade_core import Score
from cascade_core.errors import TaskError
from cascade_plugin_if.instructions import Instruction
from cascade_plugin_if.loose import variants
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.registry import lookup


class Call(NamedTuple):
    """One instruction with its checked arguments."""

    instruction: Instruction
    args: Mapping[str, Any]

    def holds(self, reading: Reading) -> bool:
        """Whether a reading follows it; a blank one follows nothing."""
        return not reading.is_blank and self.instruction.check(reading, self.args)


class Verdict(NamedTuple):
    """Per instruction, in the order of the task: its id, and whether it holds strictly and loosely."""

    ids: tuple[str, ...]
    strict: tuple[bool, ...]
    loose: tuple[bool, ...]

    def score(self, note: str = "") -> Score:
        """`value` is 1 if every instruction holds strictly; the metrics are IFEval's four figures for one prompt."""
        failed = [name for name, held in zip(self.ids, self.strict, strict=True) if not held]
        count = len(self.ids)
        return Score(
            0.0 if failed else 1.0,
            note=note or ("not followed: " + ", ".join(failed) if failed else ""),
            metrics={
                "prompt_strict": float(all(self.strict)),
                "prompt_loose": float(all(self.loose)),
                "instruction_strict": sum(self.strict) / count,
                "instruction_loose": sum(self.loose) / count,
                "instructions": float(count),
            },
        )


def calls(answer: Any) -> tuple[Call, ...]:
    """The instructions of a task: `{"instruction_id_list": [...], "kwargs": [...]}`, the public form.

    `kwargs` may be JSON text, and an entry may be null where an instruction takes no arguments.

    Raises:
        TaskError: an id is unknown, an argument is missing, unknown or of a wrong kind, or the lengths differ.
    """
    if not isinstance(answer, Mapping):
        raise TaskError(f"the answer of an IF task must be an object, found {type(answer).__name__}")
    ids, kwargs = _list(answer, "instruction_id_list"), _list(answer, "kwargs")
    if not ids:
        raise TaskError("'instruction_id_list' is empty: a task needs at least one instruction")
    if len(ids) != len(kwargs):
        raise TaskError(f"'instruction_id_list' has {len(ids)} entries and 'kwargs' {len(kwargs)}; they must match")
    found = [(lookup(name), _decoded(given)) for name, given in zip(ids, kwargs, strict=True)]
    return tuple(Call(instruction, instruction.read(given)) for instruction, given in found)


def _list(answer: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = _decoded(answer.get(name))
    if not isinstance(value, list | tuple):
        raise TaskError(f"{name!r} must be a list, found {str(value)[:80]!r}")
    return value


def _decoded(value: Any) -> Any:
    """A JSON text as what it says; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{", "null")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as cause:
        raise TaskError(f"not JSON: {value[:80]!r}") from cause


def judge(asked: Sequence[Call], text: str) -> Verdict:
    """Reads the answer strictly, and loosely where strictly it fails."""
    whole = Reading(text)
    ids = tuple([call.instruction.id for call in asked])
    strict = loose = tuple([call.holds(whole) for call in asked])
    if not all(strict) and not whole.is_blank:
        readings = [Reading(variant, whole) for variant in variants(whole.text)[1:]]
        loose = tuple([held or any(map(call.holds, readings)) for call, held in zip(asked, strict, strict=True)])
    return Verdict(ids, strict, loose)
