"""A few tasks of the domain itself: what a thing is for, to be said in English, with a word that a right answer holds.

They let `cascade check` see right and wrong answers. They train nothing that matters: the domain judges other domains' tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random

from cascade_core import Task
from cascade_core.errors import UsageError

_KEY = "code_switch_word"
# fmt: off
_THINGS: Mapping[str, tuple[str, str]] = {
    "kettle": ("water", "A kettle heats water."), "bridge": ("river", "A bridge leads people over a river."),
    "lamp": ("light", "A lamp gives light in the evening."), "key": ("door", "A key opens a locked door."),
    "plough": ("soil", "A plough turns the soil before sowing."), "umbrella": ("rain", "An umbrella keeps the rain off."),
    "oven": ("bread", "An oven bakes bread and cakes."), "saw": ("wood", "A saw cuts wood."),
    "clock": ("time", "A clock shows the time."), "needle": ("thread", "A needle pulls thread through cloth."),
    "anchor": ("ship", "An anchor holds a ship in its place."), "mirror": ("face", "A mirror shows your own face."),
    "bell": ("sound", "A bell makes a clear sound."), "scarf": ("neck", "A scarf keeps the neck warm."),
    "broom": ("floor", "A broom sweeps the floor."), "pillow": ("head", "A pillow supports the head at night."),
    "compass": ("north", "A compass points to the north."), "sail": ("wind", "A sail catches the wind."),
    "spade": ("dig", "A spade is there to dig holes."), "candle": ("burn", "A candle will burn for hours."),
}
# fmt: on
_FORMS = ("What is a {} for? Answer in a sentence.", "Tell a child what people use a {} for.")


def tasks(split: str, seed: int) -> Iterator[Task]:
    """The tasks of a split; every fourth thing is held out, and training tasks come in an order drawn from the seed.

    Raises:
        UsageError: `split` is neither `train` nor `test`.
    """
    if split not in ("train", "test"):
        raise UsageError(f"split must be 'train' or 'test', found {split!r}")
    things = [name for place, name in enumerate(_THINGS) if (place % 4 == 3) == (split == "test")]
    if split == "train":
        Random(f"code-switch-{seed}").shuffle(things)
    for place, form in enumerate(_FORMS):
        for name in things:
            yield Task(
                f"{name}-{place}", form.format(name), {_KEY: _THINGS[name][0], "thing": name}, source="code-switch"
            )


def reference(task: Task) -> str | None:
    """The right answer to one of these tasks, `None` for any other."""
    name = str(task.answer.get("thing")) if _is_own(task) else ""
    return _THINGS[name][1] if name in _THINGS else None


def missing(task: Task, answer: str | None) -> str:
    """What an answer to one of these tasks lacks; `""` for any other task."""
    if not _is_own(task):
        return ""
    word = str(task.answer[_KEY])
    if answer is None:
        return "no answer: the thought is not finished"
    return "" if re.search(rf"(?i)\b{re.escape(word)}", answer) else f"the answer does not say {word!r}"


def _is_own(task: Task) -> bool:
    return isinstance(task.answer, Mapping) and _KEY in task.answer
