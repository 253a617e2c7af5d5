"""The typed settings of a run: what `spec.yaml` says, checked. `spec.py` reads the file into these.

Neutral words: every trainer translates them into its own flags. Unknown keys and impossible values are refused here;
what several keys must say together is `consistency.py`'s. Defaults of the RL settings are those of the recipe
(arXiv 2512.13607, section 4.1.2 and appendix D).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cascade_core.rule import CodeSwitch, Reward
from cascade_core.strict import Settings as Settings

Positive = Annotated[int, Field(gt=0, lt=2**31)]
NonNegative = Annotated[int, Field(ge=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(gt=0)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]


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


class Sampling(Settings):
    """How a response is sampled. `top_k: 0` and `top_p: 1` switch the cut-offs off."""

    temperature: Annotated[float, Field(ge=0)] = Field(1.0, description="0 takes the likeliest token")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="nucleus: the likeliest tokens of this mass")
    top_k: NonNegative = Field(0, description="the k likeliest tokens; 0 for all")
    max_response_tokens: Positive = Field(
        1024, description="a response that is longer is cut, and counted as truncated"
    )


class Rollout(Sampling):
    """One rollout batch: `prompts_per_step` groups of `samples_per_prompt` responses."""

    temperature: Annotated[float, Field(gt=0)] = Field(
        1.0, description="above 0: a group of equal responses teaches nothing"
    )
    prompts_per_step: Positive = Field(128, description="groups per step")
    samples_per_prompt: Annotated[int, Field(ge=2)] = Field(8, description="responses per group")


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


class RayWorkers(Settings):
    """Judging on a Ray cluster that runs already: processes on every node."""

    address: Annotated[str, Field(min_length=1)] = Field(
        "auto",
        description="`host:port` of the cluster; auto: `RAY_ADDRESS`, or the cluster that this machine is part of",
    )
    per_node: Annotated[int, Field(ge=0, le=1024)] = Field(
        0, description="processes on every node that offers CPUs; 0 means one per CPU that it offers"
    )

    @field_validator("address")
    @classmethod
    def _joined(cls, value: str) -> str:
        if not re.fullmatch(r"auto|[^\s/@?#]+:\d{1,5}", value):
            raise ValueError(f"must be auto or where a Ray cluster is joined, such as head:6379, found {value[:80]!r}")
        return value


class OnRay(Settings):
    """`workers: ray`, or `workers: {ray: {…}}`."""

    ray: RayWorkers = Field(RayWorkers(), description="which cluster, and how many processes")


def _workers(value: Any) -> Any:
    """`ray`, and `ray:` with nothing after it, mean its defaults."""
    if value in ("ray", {"ray": None}):
        return {"ray": {}}
    if isinstance(value, str):
        raise PydanticCustomError(
            "workers", "must be a whole number or ray, found text {shown}", {"shown": repr(value)}
        )
    return value


Workers = Annotated[
    Annotated[Annotated[int, Field(ge=0, le=1024)], Tag("number")] | Annotated[OnRay, Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict | OnRay) else "number"),
    BeforeValidator(_workers, json_schema_input_type=Annotated[int, Field(ge=0, le=1024)] | Literal["ray"] | OnRay),
]


class Scoring(Settings):
    """The worker processes that judge responses."""

    workers: Workers = Field(
        0, description="processes for domains that compute; 0 means one per core; ray: on the nodes of a Ray cluster"
    )
    concurrency: Annotated[int, Field(ge=0, le=1024)] = Field(
        0,
        description="further processes for domains that wait (io): so many verdicts at once; 0 means twice the workers; on Ray of each node",
    )
    cpu_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        10.0, description="CPU time of one verdict; past it the response is wrong (limit)"
    )
    wall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        120.0, description="backstop per verdict; past it the sample could not be judged"
    )
    io_wall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        600.0, description="the same for domains that wait (io)"
    )
    memory_mib: Annotated[int, Field(gt=0, le=2**24)] = Field(
        1024, description="memory of one verdict beyond the worker's own"
    )
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        0.02, description="share of samples that may fail to be judged before the run stops"
    )


class Engine(Settings):
    """Where a trainer runs that is a program of its own; `trl` has no use for it."""

    python: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="interpreter of the environment that has OpenRLHF; default: the one that runs `cascade`"
    )
    nodes: Positive = Field(1, description="machines that a stage uses; more than one need `ray`")
    gpus: Positive = Field(1, description="GPUs of each machine that a stage uses")
    tensor_parallel_size: Positive = Field(1, description="GPUs that one sampling engine is spread over")
    ray: str | None = Field(
        None,
        description="dashboard of a Ray cluster that runs already, such as http://head:8265; default: a Ray is started for each stage and ended with it",
    )
    host: str | None = Field(
        None,
        description="name or address of this machine by which the cluster's machines reach it; default: the one from which it reaches the cluster",
    )
    cpu: bool = Field(False, description="try everything without a GPU: slow, and for small models only")
    stall_seconds: Annotated[float, Field(gt=0, le=604_800)] = Field(
        3600.0, description="a stage of which nothing comes for so long is ended; it takes in loading the model"
    )

    @field_validator("ray")
    @classmethod
    def _dashboard(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s/@?#]+/?", value):
            raise ValueError(f"must be the address of Ray's dashboard, such as http://head:8265, found {value[:80]!r}")
        return value.rstrip("/") if value else value

    @field_validator("host")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", value):
            raise ValueError(f"must be a machine's name or address, without a port, found {value[:80]!r}")
        return value


class Evaluation(Settings):
    """What is measured of the starting model and after every stage."""

    sampling: Sampling = Field(Sampling(), description="where a benchmark does not say its own")
    benchmarks: list[str] | None = Field(
        None, description="names `domain/benchmark`; default: all of every domain in the spec"
    )
    limit: Positive | None = Field(None, description="at most so many tasks per benchmark")
    samples: Positive | None = Field(None, description="responses per task; default: the benchmark's own")
    sampler: Literal["transformers", "vllm"] | None = Field(
        None,
        description="who samples: transformers in the run's own process, or vLLM in one of its own, with the interpreter of engine.python; default: vllm where a stage's trainer is openrlhf, else transformers",
    )
    batch_size: Positive = Field(256, description="transformers only: responses sampled at once")
    tensor_parallel_size: Positive | None = Field(
        None,
        description="vllm only: GPUs that the model is spread over; default: as many as in the stages' own engines",
    )
    vllm_args: dict[str, Any] = Field(
        {}, description="vllm only: vLLM's own engine arguments, passed through under its own names"
    )
    seed: Seed = Field(
        0, description="sampling seed; apart from the run's, so that stages and runs meet the same draws"
    )


def _options(value: Any) -> Any:
    """`math:` with nothing after it means no options."""
    if isinstance(value, dict):
        return {name: {} if options is None else options for name, options in value.items()}
    return value


def _choice(value: Any) -> Any:
    """What provides a resource: text, or one name with its options, where `docker:` with nothing after it has none."""
    if isinstance(value, dict):
        if len(value) != 1:
            raise PydanticCustomError("one_choice", "must be one name with its options, found {n}", {"n": len(value)})
        return _options(value)
    if isinstance(value, str) and value.strip():
        return value
    raise PydanticCustomError(
        "choice",
        "must be a name, an address or a mapping of one name to its options, found {shown}",
        {"shown": repr(value)},
    )


Choice = Annotated[
    str | dict[str, dict[str, Any]],
    BeforeValidator(_choice, json_schema_input_type=str | dict[str, dict[str, Any] | None]),
]


def _path(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class Spec(Settings):
    """A whole run."""

    name: Name = Field(description="the run's folder is `runs/<name>` unless told otherwise")
    seed: Seed = Field(0, description="drawing, initial weights and sampling of all stages follow from it")
    model: Annotated[Model, BeforeValidator(_path, json_schema_input_type=Model | str)] = Field(
        description="what the first stage starts from; text is short for `path`"
    )
    trainer: str = Field("trl", description="who updates weights; `cascade plugins` lists those that are installed")
    domains: Annotated[
        dict[Name, dict[str, Any]],
        Field(min_length=1),
        BeforeValidator(_options, json_schema_input_type=dict[str, dict[str, Any] | None]),
    ] = Field(description="domain name to its options; all that are listed are measured after every stage")
    resources: dict[str, Choice] = Field(
        {},
        description="what provides what domains need, such as `sandbox: docker`: a name, a name with its options, or an address; default: what is installed as the default",
    )
    stages: Annotated[list[Stage], Field(min_length=1, max_length=99)] = Field(description="in the order of training")
    trackers: Annotated[
        dict[Name, dict[str, Any]],
        BeforeValidator(_options, json_schema_input_type=dict[str, dict[str, Any] | None]),
    ] = Field({}, description="who is told what happens: tracker name to its options; of no effect on what happens")
    scoring: Scoring = Field(Scoring(), description="limits of the verifiers")
    engine: Engine = Field(Engine(), description="where a trainer runs that is a program of its own")
    evaluation: Evaluation = Field(Evaluation(), description="what is measured")

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        from cascade_core.consistency import problems

        found = list(problems(self))
        if found:
            text = "; ".join(f"{'.'.join(map(str, where))}: {what}" for where, what in found)
            raise PydanticCustomError("inconsistent", "{text}", {"text": text, "problems": found})
        return self
