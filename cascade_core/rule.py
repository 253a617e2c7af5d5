"""What a stage may say of rewards that several scorers have a part in: `reward:` and `code_switch:`, as settings.

A named scorer is a name of the spec's `domains:`. This module holds the two settings and what their keys must say together;
`composition.py` does what they say, and compares the ranges of the scorers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from cascade_core.nearest import suggestion
from cascade_core.strict import Settings

CODE_SWITCH = "code-switch"
"""The domain whose verdict `code_switch:` follows: 1 for one language, 0 where another appears in the answer to an English prompt."""


def _names(value: Any) -> Any:
    """One name, or a list of different ones."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and len({str(name) for name in value}) < len(value):
        raise PydanticCustomError("named_twice", "must name each scorer once; what counts more gets a weight")
    return value


Scorers = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(max_length=32),
    BeforeValidator(_names, json_schema_input_type=str | list[str]),
]
Weight = Annotated[float, Field(ge=-1e6, le=1e6)]


class Reward(Settings):
    """`r = [every gate's value is 1] · (Σ wᵢ xᵢ, or min wᵢ xᵢ)`, xᵢ what the scorer i alone would train on."""

    gate: Scorers = Field([], description="scorers whose value must be 1: else the reward is 0")
    sum: Scorers = Field([], description="scorers whose rewards are added up")
    min: Scorers = Field([], description="scorers of whose rewards the smallest counts, in place of sum")
    weights: dict[str, Weight] = Field({}, description="what a scorer's reward is multiplied with; default: 1")

    @model_validator(mode="after")
    def _one_of_both(self) -> Reward:
        if bool(self.sum) == bool(self.min):
            raise ValueError("must name scorers under either sum or min, and not under both")
        return self

    @property
    def terms(self) -> list[str]:
        """The scorers whose rewards are added up, or of which the smallest counts."""
        return self.sum or self.min

    @property
    def names(self) -> list[str]:
        """All scorers, gates first, each once."""
        return list(dict.fromkeys([*self.gate, *self.terms]))

    def weight(self, name: str) -> float:
        """What the reward of a term is multiplied with."""
        return self.weights.get(name, 1.0)

    def problems(self, known: Collection[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """(path of keys, what is wrong), given the names of the spec's domains."""
        for key, names in (("gate", self.gate), ("sum", self.sum), ("min", self.min)):
            for index, name in enumerate(names):
                if name not in known:
                    yield (
                        (key, index),
                        f"scorer {name!r} is not among the spec's domains{suggestion(name, known)}",
                    )
        if len(self.min) == 1:
            yield ("min",), f"must name two scorers at least, found {self.min[0]!r} alone; of one it is the sum"
        for name, weight in self.weights.items():
            if name not in self.terms:
                yield (
                    ("weights", name),
                    f"{name!r} has a weight and no reward that is summed{suggestion(name, self.terms)}",
                )
            elif weight <= 0 and (name in self.gate or self.min):
                what = (
                    "a gate, whose passing would then cost"
                    if name in self.gate
                    else "one of min, which it would turn round"
                )
                yield ("weights", name), f"must be above 0, found {weight:g}: {name!r} is {what}"
            elif weight == 0:
                yield ("weights", name), f"must not be 0: leave {name!r} out of the sum"


class CodeSwitch(Settings):
    """What becomes of the reward of a response that mixes languages (arXiv 2512.13607, section 4)."""

    assign: Annotated[float, Field(ge=-1e6, le=1e6)] | None = Field(
        None, description="the reward itself, whatever it was: -1 in the paper's math stage, 0 in its code stage"
    )
    below_batch: Annotated[float, Field(gt=0, le=1e6)] | None = Field(
        None, description="so far below the smallest reward of the step's batch: 10 in the paper's RLHF stage"
    )
    parts: Literal["all", "answer"] = Field(
        "all", description="what is looked at: thought and answer, or only what follows the thought"
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> CodeSwitch:
        if (self.assign is None) == (self.below_batch is None):
            raise ValueError("give either assign or below_batch, and not both")
        return self
