"""One of `stages:`: what is trained on, how long, and how its rewards become updates of the weights.

Defaults of the RL settings are those of the recipe (arXiv 2512.13607, section 4.1.2 and appendix D). How the rewards of several
scorers become one is `rule.py`'s.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

from cascade_core.rule import CodeSwitch, Reward
from cascade_core.settings.model import home
from cascade_core.settings.sampling import Rollout
from cascade_core.settings.scalars import Name, NonNegative, Positive, Seed
from cascade_core.strict import Settings

Share = Annotated[float, Field(gt=0)]
Beta = Annotated[float, Field(ge=0, lt=1)]


def _pair(value: Any) -> Any:
    if isinstance(value, list) and len(value) != 2:
        raise PydanticCustomError("pair", f"must be a list of two numbers, found {len(value)}")
    return tuple(value) if isinstance(value, list) else value


class Optim(Settings):
    """AdamW. The paper states betas and lr; warm-up, schedule, decay and clipping are not stated there."""

    lr: Annotated[float, Field(gt=0)] = Field(2e-6, description="peak learning rate")
    betas: Annotated[tuple[Beta, Beta], BeforeValidator(_pair, json_schema_input_type=list[float])] = Field(
        (0.9, 0.95), description="decay of AdamW's two moments"
    )
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="decoupled, as in AdamW")
    warmup_steps: NonNegative = Field(0, description="steps over which lr rises from 0")
    schedule: Literal["constant", "linear", "cosine"] = Field("constant", description="what lr does after warm-up")
    decay_steps: NonNegative = Field(
        0, description="linear only: the last steps over which lr falls to 0; 0 means all after warm-up"
    )
    max_grad_norm: Annotated[float, Field(gt=0)] = Field(1.0, description="gradients are clipped to this norm")


class SoftOverlong(Settings):
    """DAPO's soft punishment: from `limit - buffer` tokens on, up to `factor` is taken from the reward."""

    buffer: Positive = Field(description="tokens before the limit at which it begins")
    factor: Annotated[float, Field(gt=0)] = Field(1.0, description="what is taken at the limit")


class Soft(Settings):
    """`overlong: {soft: {buffer: …, factor: …}}`."""

    soft: SoftOverlong = Field(description="the reward falls over the last tokens before the limit")


def _overlong_kind(value: Any) -> str:
    return "soft" if isinstance(value, dict | Soft) else "word"


Overlong = Annotated[
    Annotated[Literal["mask", "zero", "keep"], Tag("word")] | Annotated[Soft, Tag("soft")],
    Discriminator(_overlong_kind),
]


class Advantage(Settings):
    """How rewards of a group become advantages (the paper leaves std type and epsilon open)."""

    std: Literal["sample", "population", "none"] = Field("sample", description="which standard deviation divides")
    epsilon: Annotated[float, Field(ge=0)] = Field(1e-4, description="added to the standard deviation")
    shaping: Literal["none", "tanh"] = Field("none", description="what is done to the finished advantage")


def _shares(value: Any) -> Any:
    """One name, a list of names or a mapping, as a mapping of names to shares."""
    if isinstance(value, str):
        return {value: 1.0}
    if isinstance(value, list):
        if len({str(name) for name in value}) < len(value):
            raise PydanticCustomError(
                "domains_twice", "a domain is listed twice; give shares instead: {{name: 2, other: 1}}"
            )
        if not all(isinstance(name, str) for name in value):
            raise PydanticCustomError("domains_names", "must be a list of domain names")
        return dict.fromkeys(value, 1.0)
    return value


class Stage(Settings):
    """One training job, from the checkpoint of the one before."""

    name: Name = Field(description="unique in the spec; the stage's folder is its number and this name")
    kind: Literal["sft", "rl", "reward_model"] = Field(
        "rl", description="imitate demonstrations, maximise rewards, or learn from pairs which response is better"
    )
    domains: Annotated[
        dict[str, Share],
        Field(min_length=1),
        BeforeValidator(_shares, json_schema_input_type=str | list[str] | dict[str, float]),
    ] = Field(description="name to share; a name or a list is accepted")
    steps: Positive = Field(description="updates of the weights")
    seed: Seed | None = Field(None, description="default: the run's seed")
    optim: Optim = Field(Optim(), description="the optimizer")
    mode: Literal["think", "no_think", "half"] | None = Field(
        None,
        description="the mode of the stage's tasks; half: exactly half of every step's prompts in each; default: what a task says",
    )
    batch_size: Positive = Field(64, description="sft and reward_model only: demonstrations, or pairs, per update")
    model: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="reward_model only: a local folder or a hub name to start from; default: the policy before the stage",
    )
    rollout: Rollout = Field(Rollout(), description="rl only: what is sampled for one update")
    loss: Literal["token", "token-group", "sequence"] = Field(
        "token",
        description="rl only: the mean over all tokens of the step, of each group, or of each response",
    )
    kl: Annotated[float, Field(ge=0)] = Field(
        0.0, description="rl only: weight of the KL term to the stage's first model"
    )
    entropy: Annotated[float, Field(ge=0)] = Field(
        0.0, description="rl only: entropy bonus; only 0 is supported by trl"
    )
    reward: Reward | None = Field(
        None, description="rl only: the reward from several scorers, names of `domains`; default: the domain's own"
    )
    code_switch: CodeSwitch | None = Field(
        None, description="rl only: what becomes of the reward of a response that mixes languages; default: nothing"
    )
    overlong: Overlong = Field("zero", description="rl only: what becomes of a response that was cut")
    advantage: Advantage = Field(Advantage(), description="rl only: rewards of a group to advantages")
    control: Literal["none", "permuted-rewards"] = Field(
        "none",
        description="rl only; permuted-rewards: a control run, whose rewards are permuted across each batch",
    )
    save_every: NonNegative = Field(10, description="steps between checkpoints inside the stage; 0 for none")
    micro_batch: Positive | None = Field(None, description="responses per backward pass; default: all of the step")
    trainer: str | None = Field(None, description="default: the run's trainer")
    trainer_args: dict[str, Any] = Field({}, description="the trainer's own flags, passed through under its own names")

    @field_validator("model")
    @classmethod
    def _home(cls, value: str | None) -> str | None:
        return home(value)
