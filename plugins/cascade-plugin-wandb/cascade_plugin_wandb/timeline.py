"""Events to what W&B knows: one step count for the whole run, flat names, numbers. Imports no wandb.

The model before training is step 0. The first stage's steps are 1 … n, the next stage's go on from there, and a stage is
measured at the count of its last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EVALUATION = ("stage", "benchmark", "metric", "value", "stderr", "scored", "limit", "failed", "total")
# What places an event is no curve.
_PLACE = frozenset({"kind", "stage", "step", "time"})


class Timeline:
    """Where events lie in the whole run.

    Args:
        stages: name to steps, in order.

    Examples:
        >>> line = Timeline({"sft": 10, "rl": 5})
        >>> line.step({"kind": "step", "stage": "02-rl", "step": 0})
        11
        >>> line.step({"kind": "eval", "stage": "02-rl"})
        15
        >>> line.step({"kind": "data", "stage": "02-rl"})
    """

    def __init__(self, stages: Mapping[str, int]) -> None:
        self._spans = {"00-start": (0, 0)}
        done = 0
        for index, (name, steps) in enumerate(stages.items(), 1):
            self._spans[f"{index:02d}-{name}"] = (done, done + steps)
            done += steps

    def step(self, event: Mapping[str, Any]) -> int | None:
        """The step of the whole run that an event belongs to; `None` for an event that is no curve."""
        span = self._spans.get(str(event.get("stage")))
        if span is None:
            return None
        if event.get("kind") == "step" and isinstance(event.get("step"), int):
            return span[0] + int(event["step"]) + 1
        return span[1] if event.get("kind") == "eval" else None


def numbers(event: Mapping[str, Any]) -> dict[str, float]:
    """The curves of an event: `02-rl/reward` of a step, `eval/math/test/avg@4` of an evaluation, and how sure that is."""
    if event.get("kind") == "eval":
        name = f"eval/{event['benchmark']}/{event['metric']}"
        found = {name: event.get("value"), f"{name} stderr": event.get("stderr")}
    else:
        found = {f"{event['stage']}/{key}": value for key, value in event.items() if key not in _PLACE}
    return {
        key: value for key, value in found.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def evaluation_row(event: Mapping[str, Any]) -> list[Any]:
    """An evaluation as a row of the table `EVALUATION`."""
    return [event.get(column) for column in EVALUATION]
