"""The contract with authors of domains: `Task`, `Response`, `Score`, `Domain`, `Benchmark`.

A domain is one class. It loads problems (`tasks`), judges answers (`score`), and may say more: a reward that
needs the group or the batch (`rewards`), what is measured (`benchmarks`), right answers (`reference`), SFT data
(`demonstrations`). Authors write plain synchronous functions; processes, limits that kill, batching and HTTP are
the core's. Everything that crosses a process is a frozen dataclass of JSON values.

This module knows no plugin, runs nothing, and imports only the standard library.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from cascade_core.errors import ContractError

# A tag between two backticks (`</think>`) is talk about the tag, not the tag. The literal stands first: it is found fast.
_OPEN = re.compile(r"<think>(?:(?<!`<think>)|(?!`))")
_CLOSE = re.compile(r"</think>(?:(?<!`</think>)|(?!`))")


SURFACE = "surface_"
"""How the name of a metric begins that is of the form of an answer (`Score`)."""


class Message(TypedDict):
    """One turn of a conversation; `role` is `system`, `user`, `assistant` or `tool`."""

    role: str
    content: str


@dataclass(frozen=True)
class Task:
    """One problem; crosses processes as JSON.

    `id` is unique in the domain and the same in every run. `answer` is whatever `Domain.score` needs, a JSON value.
    `mode` is `"think"`, `"no_think"` or `""`; `source` names the data set it came from and is kept to the last table.
    """

    id: str
    prompt: str | list[Message]
    answer: Any = None
    mode: str = ""
    source: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The text of the last user turn: what the response answers."""
        if isinstance(self.prompt, str):
            return self.prompt
        return next((turn["content"] for turn in reversed(self.prompt) if turn["role"] == "user"), "")


@dataclass(frozen=True)
class Response:
    """One sampled answer: `text` is all that the model generated, special tokens removed, `<think>` kept.

    `prefill` is what the chat template had already put into the assistant's turn (Qwen3 and R1 templates open
    `<think>` there). `truncated` means cut by the length limit. `turns` are the earlier turns of a conversation, the model's
    and the environment's, after the task's prompt.

    Examples:
        >>> said = Response("2 and 2</think>4", prefill="<think>")
        >>> said.thinking, said.answer
        ('2 and 2', '4')
        >>> Response("<think>2 and", truncated=True).answer is None
        True
    """

    text: str
    prefill: str = ""
    mode: str = ""
    truncated: bool = False
    turns: tuple[Message, ...] = ()

    @property
    def thinking(self) -> str:
        """What was thought: everything before the `</think>` that ends the thought, tags removed; `""` if none."""
        whole, cut = self._cut()
        if cut is None:
            return _OPEN.sub("", whole) if self.answer is None else ""
        return _OPEN.sub("", whole[:cut]).removesuffix("</think>")

    @property
    def answer(self) -> str | None:
        """What follows the last `</think>`; all of the text where nothing was thought.

        `None` where a thought is open at the end, or where `mode` is `"think"` and no `</think>` came: an
        unfinished thought has no answer.
        """
        whole, cut = self._cut()
        if cut is None:
            return None if _OPEN.search(whole) or self.mode == "think" else self.text
        return None if _OPEN.search(whole, cut) else whole[cut:]

    def _cut(self) -> tuple[str, int | None]:
        """The whole assistant turn, and where its answer begins; `None` without a `</think>`."""
        whole = self.prefill + self.text
        closes = [match.end() for match in _CLOSE.finditer(whole)]
        return whole, closes[-1] if closes else None


@dataclass(frozen=True)
class Score:
    """The verdict on one response.

    `value` runs from 0.0 (wrong) to 1.0 (right) and is what evaluation averages. `reward` is what training
    maximises, any finite number; `None` means `value`. `note` is one line for people. `error` says that the response
    could not be judged: that is not a wrong answer, and no mean may contain it.
    A metric whose name begins with `surface_` is of the form of an answer, not of what it says (its length, say): how it goes with the
    trained reward inside the groups is logged beside its mean.

    Examples:
        >>> Score(0.0, reward=0.2, note="right, without a box").trained
        0.2
        >>> Score.failed("the label does not parse").is_judged
        False

    Raises:
        ContractError: a value that is not a number of the stated range.
    """

    value: float
    reward: float | None = None
    note: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "reward"):
            number = getattr(self, name)
            if number is None and name == "reward":
                continue
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise ContractError(f"Score.{name} must be a finite number, found {number!r}")
            object.__setattr__(self, name, float(number))
        if not 0.0 <= self.value <= 1.0:
            raise ContractError(f"Score.value must lie in [0, 1], found {self.value!r}")
        for key, number in self.metrics.items():
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise ContractError(f"Score.metrics[{key!r}] must be a finite number, found {number!r}")

    @classmethod
    def failed(cls, error: str) -> Score:
        """A verdict that says: could not be judged, because of `error`."""
        return cls(0.0, error=error or "could not be judged, no reason given")

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict at all."""
        return not self.error

    @property
    def is_limit(self) -> bool:
        """Whether the response used up its time or memory: a verdict (wrong), counted apart."""
        return self.is_judged and self.note.startswith("limit")

    @property
    def trained(self) -> float:
        """The reward of this sample before group and batch had their say."""
        return self.value if self.reward is None else self.reward


@dataclass(frozen=True)
class Demonstration:
    """A task and a response worth imitating: one example of supervised fine-tuning."""

    task: Task
    response: str


@dataclass(frozen=True)
class Pair:
    """A preference: for `task`, `chosen` is better than `rejected`."""

    task: Task
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Group:
    """The judged responses to one task, in the order they were sampled; those that failed are left out."""

    task: Task
    responses: Sequence[Response]
    scores: Sequence[Score]


@dataclass(frozen=True)
class BatchStats:
    """Count, minimum, mean and maximum of the judged rewards of one optimiser step; final, never running."""

    count: int
    min: float
    mean: float
    max: float


@dataclass(frozen=True)
class Estimate:
    """A measured number: its standard error and how many tasks it rests on."""

    value: float
    stderr: float
    n: int


Figures = Mapping[str, Estimate]
"""What a benchmark was summarised as: names to estimates."""


@dataclass(frozen=True)
class Benchmark:
    """An eval hook: which tasks (`split`, the first `limit`), how many samples of each, and how they are sampled.

    `sampling` may hold `temperature`, `top_p`, `top_k`, `max_response_tokens`; what is absent comes from the spec.
    """

    name: str
    split: str = "test"
    samples: int = 1
    sampling: Mapping[str, float] = field(default_factory=dict)
    mode: str = ""
    of: str = "policy"
    limit: int | None = None

    def summarise(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Estimate]:
        """Scored rows of this benchmark to named estimates; the default is `avg@k` and unbiased `pass@k`."""
        from cascade_core.estimates import summarise

        return summarise(rows)


class Domain(ABC):
    """A domain: what is asked, and what a good answer is. Subclass it as a dataclass; its fields are its options.

    `lane` says what a score spends its time on: `"cpu"` computes, `"io"` waits for a sandbox, a reward model, a judge, and may
    use the network. Either is judged one at a time in a process that is killed at its limits; there are `scoring.workers`
    processes for the one and `scoring.concurrency` for the other, so that neither waits for its neighbour.
    `needs` names resources (`resource.py`) that run beside the domain and are handed to `open` by address: `"sandbox"`, say; where
    options decide, `__post_init__` sets it on the instance.
    `needs_batch` says that `rewards` uses the statistics of the whole batch.
    `reward_range` are the ends of what it trains on (`Score.reward`, `rewards`), `None` without bounds: a stage that puts the
    rewards of several scorers together (`reward:`) is refused where they do not fit. An instance may have its own.
    `bounded_by` is the option under which a domain without bounds has some, as it stands in a spec (`reward: sigmoid_z`): that refusal names it.
    `judges_any` says that `score` gives a verdict on tasks of any domain, whatever their `answer` and `meta` hold, as a reward model does: only
    such a domain may be named in the `reward:` of a stage that trains another.
    `passes` says that a good answer has a value of exactly 1. Of a domain whose value is a degree that hardly ever is, as a reward model's, it is
    `False`: such a domain is no `gate` of a reward.
    `most_turns` ends a conversation (`reply`) after so many turns of the model, whatever the environment would say.
    """

    name: ClassVar[str]
    lane: ClassVar[str] = "cpu"
    needs: ClassVar[tuple[str, ...]] = ()
    needs_batch: ClassVar[bool] = False
    reward_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded_by: ClassVar[str] = ""
    judges_any: ClassVar[bool] = False
    passes: ClassVar[bool] = True
    most_turns: ClassVar[int] = 8

    def open(self, resources: Mapping[str, str]) -> None:
        """Called once in every process that scores, before the first `score`; `resources` maps what is needed to addresses.

        A connection may be kept, and must be made anew when it breaks. A resource that does not answer is no verdict: let the
        exception out of `score`, and the sample is tried once more in a fresh process before it counts as not judged.
        """
        return None

    def close(self) -> None:
        """Called once when the process that scores ends."""
        return None

    @abstractmethod
    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """The prompt loader. `"test"` gives the same tasks whatever the seed, and shares no prompt with `"train"`.

        A generator may be endless; whoever calls takes what is needed. `seed` is any whole number from 0 on, in a run of
        63 bits: more than `numpy.random.seed` takes.
        """

    @abstractmethod
    def score(self, task: Task, response: Response) -> Score:
        """The verdict on one sample.

        Raises:
            TaskError: the task itself is broken; the core turns this, and any other exception, into `Score.error`.
        """

    def explain(self, task: Task, response: Response) -> Mapping[str, Any] | None:
        """Why `score` says what it says, as JSON values for people: what was read, and which rule decided; the default is `None`.

        Called only where somebody asks (`cascade explain`), under the limits of `score`; no verdict depends on it.
        """
        return None

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        """The rewards of one group, one per judged response; the default is each score's own reward."""
        return [score.trained for score in group.scores]

    def benchmarks(self) -> Sequence[Benchmark]:
        """What is measured after every stage; the default is the test split, one sample a task."""
        return (Benchmark("test"),)

    def reference(self, task: Task) -> str | None:
        """A response that must score 1.0, or `None` where none is known."""
        return None

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """Data for supervised fine-tuning; the default is every task that has a reference.

        Raises:
            ContractError: 10,000 tasks in a row have none: an endless generator without references would never end.
        """
        without = 0
        for task in self.tasks(split, seed):
            reference = self.reference(task)
            if reference is not None:
                without = 0
                yield Demonstration(task, reference)
            elif (without := without + 1) >= 10_000:
                raise ContractError(
                    f"domain {self.name!r} has no reference for {without:,} tasks in a row, so no demonstrations"
                )

    def pairs(self, split: str, seed: int) -> Iterable[Pair]:
        """Preference pairs for a reward model; the default is none."""
        return ()

    def warnings(
        self, steps: Sequence[Mapping[str, float]], now: Mapping[str, Figures], before: Mapping[str, Figures]
    ) -> Iterable[str]:
        """What a person should look at after a stage, a line each; the default is nothing.

        `steps` are the means and correlations of this domain's scores in each step of the stage by their plain names (`metric/NAME`,
        `correlation/NAME`, `value`), none where the stage neither trained it nor asked it as a scorer. `now` and `before` are the estimates of its benchmarks, by
        benchmark and name, after this stage and after the one before. Told in the run's output, its events and its report;
        it stops nothing.
        """
        return ()

    def reply(self, task: Task, turns: Sequence[Message]) -> str | None:
        """The environment's next turn in a conversation; `None` ends it. A domain that overrides it holds conversations.

        `turns` is what was said after the task's prompt, the model's turns as `assistant` (prefill included) and the environment's
        as `user`; the last is the model's. It runs where `score` does, under the same limits, and may be asked the same again:
        what it says must follow from task and turns. `score` then gets the model's last turn as `text`, and those before it
        as `turns`.
        """
        return None


@dataclass(frozen=True)
class DomainRef:
    """How a domain crosses processes: it is rebuilt there from the entry points, never pickled. `lane` is the domain's own."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    distribution: str = ""
    version: str = ""
    lane: str = "cpu"
