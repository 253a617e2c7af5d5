"""The typed settings of a run: what `spec.yaml` says, checked. `spec.py` reads the file into these.

Neutral words: every trainer translates them into its own flags. Unknown keys and impossible values are refused.
Defaults of the RL settings are those of the recipe (arXiv 2512.13607, section 4.1.2 and appendix D).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Positive = Annotated[int, Field(gt=0)]
NonNegative = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]


class Settings(BaseModel):
    """Strict and frozen: a key that is not listed is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class InitTokenizer(Settings):
    """A tokenizer that the run makes itself: single characters, and the listed phrases as one token each."""

    phrases: list[str] = Field(default=[], description="strings that are one token each, longest match first")


class InitModel(Settings):
    """A small Llama with random weights, made from the run's seed."""

    hidden_size: Positive = 128
    layers: Positive = 3
    heads: Positive = 4
    context: Positive = Field(128, description="longest prompt plus response, tokens")
    tokenizer: InitTokenizer = InitTokenizer()

    @model_validator(mode="after")
    def _heads_divide(self) -> InitModel:
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size {self.hidden_size} must be a multiple of 2 × heads ({2 * self.heads})")
        return self


class Model(Settings):
    """The model that the first stage starts from: a path or hub name, or `init:`."""

    path: str | None = Field(None, description="a local folder or a hub name")
    init: InitModel | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Model:
        if (self.path is None) == (self.init is None):
            raise ValueError("give either a path (or hub name) or init, and not both")
        return self


class Sampling(Settings):
    """How a response is sampled. `top_k: 0` and `top_p: 1` switch the cut-offs off."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: NonNegative = 0
    max_response_tokens: Positive = 1024


class Rollout(Sampling):
    """One rollout batch: `prompts_per_step` groups of `samples_per_prompt` responses."""

    prompts_per_step: Positive = 128
    samples_per_prompt: Annotated[int, Field(ge=2)] = 8


class Optim(Settings):
    """AdamW. The paper states betas and lr; warm-up, schedule, decay and clipping are not stated there."""

    lr: Annotated[float, Field(gt=0)] = 2e-6
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    warmup_steps: NonNegative = 0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    decay_steps: NonNegative = Field(
        0, description="linear only: the last steps over which lr falls to 0; 0 means all after warm-up"
    )
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0

    @field_validator("betas", mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class SoftOverlong(Settings):
    """DAPO's soft punishment: from `limit - buffer` tokens on, up to `factor` is taken from the reward."""

    buffer: Positive
    factor: Annotated[float, Field(gt=0)] = 1.0


class Soft(Settings):
    """`overlong: {soft: {buffer: …, factor: …}}`."""

    soft: SoftOverlong


class Advantage(Settings):
    """How rewards of a group become advantages (RECIPE 2; the paper leaves std type and epsilon open)."""

    std: Literal["sample", "population", "none"] = "sample"
    epsilon: Annotated[float, Field(ge=0)] = 1e-4
    shaping: Literal["none", "tanh"] = "none"


class Stage(Settings):
    """One training job, from the checkpoint of the one before."""

    name: Name
    kind: Literal["sft", "rl"] = "rl"
    domains: dict[str, Annotated[float, Field(gt=0)]] = Field(description="name to share; a name or a list is accepted")
    steps: Positive
    seed: int | None = Field(None, description="default: the run's seed")
    optim: Optim = Optim()
    batch_size: Positive = Field(64, description="sft only: demonstrations per update")
    rollout: Rollout = Rollout()
    loss: Literal["token", "token-group", "sequence"] = "token"
    kl: Annotated[float, Field(ge=0)] = 0.0
    entropy: Annotated[float, Field(ge=0)] = Field(0.0, description="only 0 is supported by trl")
    overlong: Literal["mask", "zero", "keep"] | Soft = "zero"
    advantage: Advantage = Advantage()
    control: Literal["none", "permuted-rewards"] = Field(
        "none", description="permuted-rewards: a control run, whose rewards are permuted across each batch"
    )
    save_every: NonNegative = Field(10, description="steps between checkpoints inside the stage; 0 for none")
    micro_batch: Positive | None = Field(None, description="responses per backward pass; default: all of the step")
    trainer: str | None = None
    trainer_args: dict[str, Any] = {}

    @field_validator("domains", mode="before")
    @classmethod
    def _shares(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: 1.0}
        if isinstance(value, list):
            return dict.fromkeys(value, 1.0)
        return (
            {name: float(share) if type(share) is int else share for name, share in value.items()}
            if isinstance(value, dict)
            else value
        )


class Scoring(Settings):
    """The worker processes that judge responses."""

    workers: NonNegative = Field(0, description="processes; 0 means one per core")
    cpu_seconds: Annotated[float, Field(gt=0)] = Field(
        10.0, description="CPU time of one verdict; past it the response is wrong (limit)"
    )
    wall_seconds: Annotated[float, Field(gt=0)] = Field(
        120.0, description="backstop per verdict; past it the sample could not be judged"
    )
    memory_mib: Positive = Field(1024, description="memory of one verdict beyond the worker's own")
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.02


class Evaluation(Settings):
    """What is measured of the starting model and after every stage."""

    sampling: Sampling = Sampling()
    benchmarks: list[str] | None = Field(
        None, description="names `domain/benchmark`; default: all of every domain in the spec"
    )
    limit: Positive | None = Field(None, description="at most so many tasks per benchmark")
    samples: Positive | None = Field(None, description="responses per task; default: the benchmark's own")
    batch_size: Positive = 256
    seed: int = Field(0, description="sampling seed; apart from the run's, so that stages and runs meet the same draws")


class Spec(Settings):
    """A whole run."""

    name: Name
    seed: int = 0
    model: Model
    trainer: str = "trl"
    domains: dict[str, dict[str, Any]] = Field(description="domain name to its options")
    stages: Annotated[list[Stage], Field(min_length=1)]
    scoring: Scoring = Scoring()
    evaluation: Evaluation = Evaluation()

    @field_validator("domains", mode="before")
    @classmethod
    def _options(cls, value: Any) -> Any:
        return {name: options or {} for name, options in value.items()} if isinstance(value, dict) else value

    @field_validator("model", mode="before")
    @classmethod
    def _path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value
