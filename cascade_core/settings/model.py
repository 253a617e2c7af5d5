"""`model:`, what the first stage starts from: a folder, a hub name, or a small model made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from cascade_core.settings.scalars import Positive
from cascade_core.strict import Settings


class InitTokenizer(Settings):
    """A tokenizer that the run makes itself: single characters, and the listed phrases as one token each."""

    phrases: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[], description="strings that are one token each, longest match first"
    )


class InitModel(Settings):
    """A small Llama with random weights, made from the run's seed."""

    hidden_size: Positive = Field(128, description="width; a multiple of 2 × heads")
    layers: Positive = Field(3, description="transformer blocks")
    heads: Positive = Field(4, description="attention heads")
    context: Positive = Field(128, description="longest prompt plus response, tokens")
    tokenizer: InitTokenizer = Field(InitTokenizer(), description="the tokenizer that goes with it")

    @model_validator(mode="after")
    def _heads_divide(self) -> InitModel:
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size {self.hidden_size} must be a multiple of 2 × heads ({2 * self.heads})")
        return self


Modes = Literal["switch", "flags", "prefill", "none"]


def is_path(model: str) -> bool:
    """Whether a model's name cannot be one on the hub (`owner/model`), and so means a folder."""
    return model.startswith((".", "/", "~")) or model.count("/") > 1


def home(model: str | None) -> str | None:
    """A model's folder with `~` written out; any other name as it is."""
    return str(Path(model).expanduser()) if model and model.startswith("~") else model


class Model(Settings):
    """The model that the first stage starts from: a path or hub name, or `init:`."""

    path: Annotated[str, Field(min_length=1)] | None = Field(None, description="a local folder or a hub name")
    init: InitModel | None = Field(None, description="make a small model with random weights instead")
    modes: Modes = Field(
        "switch",
        description="how a task's mode (think, no_think) reaches the model: as the chat template's own switch enable_thinking, as flags behind the user's turns, as a prefill of its answer, or not at all",
    )

    @field_validator("path")
    @classmethod
    def _home(cls, value: str | None) -> str | None:
        return home(value)

    @model_validator(mode="after")
    def _exactly_one(self) -> Model:
        if (self.path is None) == (self.init is None):
            raise ValueError("give either a path (or hub name) or init, and not both")
        return self
