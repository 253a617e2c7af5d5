"""The domain `rlhf`: answers are judged by a reward model, or by a language model as judge.

Prompts and preferences come from files, hub data sets or the generator `tiny` (`data.py`). A score asks the resource `reward_model`
for the raw score of (question, final answer) in the model's own template; which text that is, and what becomes of a score, is
`reward.py`'s. What cannot be judged is an error of the sample, never a number. The domain takes tasks of other domains too, as
a scorer beside theirs. Importing this module loads no model, no HTTP library and no data library.
"""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cascade_core import Benchmark, Demonstration, Domain, Response, Score, Task
from cascade_core.domain import BatchStats, Figures, Group, Pair
from cascade_core.errors import ResourceError, TaskError, UsageError
from cascade_core.sources import OnBadRow, digest
from cascade_plugin_rlhf import tiny
from cascade_plugin_rlhf.data import ARENA, REWARD_BENCH, Data, reference_of
from cascade_plugin_rlhf.questions import JUDGED, Fields
from cascade_plugin_rlhf.reward import judged_text, sigmoid, z_scores
from cascade_plugin_rlhf.surface import surface

if TYPE_CHECKING:
    from cascade_plugin_rlhf.client import RewardClient, VllmClient
    from cascade_plugin_rlhf.judge import Judge
    from cascade_plugin_rlhf.verdict import Scored

_REMEMBERED = 10_000  # scores of references; the texts themselves are not kept
TEST_TASKS, TEST_PAIRS = 400, 600
"""How many held-out tasks and pairs of the generator a benchmark takes unless told otherwise."""


@dataclass
class RLHF(Domain):
    """Answers that people like, as a reward model says.

    Attributes:
        data: JSONL or Parquet files, or hub data sets (`name@configuration:split`), of prompts or of preferences, to train on;
            by default the prompts of `preferences`. Without any file, the generator `tiny`.
        eval_data: the same to evaluate on: one source, or several by name, each a benchmark of that name. Without it one prompt in
            five is held out.
        preferences: sources of pairs for a reward model, in the formats of HelpSteer2, HelpSteer3, UltraFeedback binarized, HH-RLHF or
            RewardBench; by default those in `data`.
        eval_preferences: the same to measure a reward model with.
        reward_bench: a source in RewardBench's format: the benchmark of that name, of a reward model.
        arena, arena_answers: ArenaHard's questions, and the file of the answers that the policy's are compared with by a judge.
        prompt_field, reference_field: names of the columns of prompts; by default the usual ones.
        on_bad_row: `fail` stops at a row that cannot be used, `skip` leaves it out and logs how many.
        reward: `raw` trains on the reward model's score as it is, `sigmoid_z` on the sigmoid of its z-score in the group.
        threshold: the score that a value of 0.5 stands for; by default that of the task's reference, and 0 where it has none.
        warn_correlation: the size of a correlation of reward with length or formatting from which a warning is given.
        warn_drift: how far from one stage to the next the mean score of the answers to a benchmark's prompts may fall, or that of their
            references move, before a warning is given, in standard deviations of the scores.
        warn_cut: the share of answers that the reward model reads only in part, being too long for it, from which a warning is given.
        eval_limit, eval_samples, eval_sampling: tasks, samples and sampling settings of each benchmark of the policy.

    Raises:
        UsageError: an option has an impossible value.
    """

    name: ClassVar[str] = "rlhf"
    lane: ClassVar[str] = "io"
    needs: ClassVar[tuple[str, ...]] = ("reward_model",)
    reward_range: ClassVar[tuple[float, float] | None] = None
    bounded_by: ClassVar[str] = "reward: sigmoid_z"
    judges_any: ClassVar[bool] = True
    passes: ClassVar[bool] = False

    data: str | list[str] = ""
    eval_data: str | list[str] | dict[str, str] = ""
    preferences: str | list[str] = ""
    eval_preferences: str | list[str] = ""
    reward_bench: str = ""
    arena: str = ""
    arena_answers: str = ""
    prompt_field: str = ""
    reference_field: str = ""
    on_bad_row: OnBadRow = "fail"
    reward: Literal["raw", "sigmoid_z"] = "raw"
    threshold: float | None = None
    warn_correlation: float = 0.8
    warn_drift: float = 1.0
    warn_cut: float = 0.05
    eval_limit: int | None = None
    eval_samples: int = 1
    eval_sampling: dict[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reward not in ("raw", "sigmoid_z"):
            raise UsageError(f"option 'reward' of domain 'rlhf' must be 'raw' or 'sigmoid_z', found {self.reward!r}")
        if self.eval_samples < 1 or (self.eval_limit is not None and self.eval_limit < 1):
            raise UsageError(
                f"'eval_samples' and 'eval_limit' of domain 'rlhf' must be at least 1, found {self.eval_samples}, {self.eval_limit}"
            )
        if not 0 < self.warn_correlation <= 1 or not 0 < self.warn_cut <= 1 or not self.warn_drift > 0:
            raise UsageError(
                "'warn_correlation' and 'warn_cut' of domain 'rlhf' must lie in (0, 1] and 'warn_drift' be larger than 0, "
                f"found {self.warn_correlation}, {self.warn_cut}, {self.warn_drift}"
            )
        if self.arena_answers and not self.arena:
            raise UsageError("domain 'rlhf' has 'arena_answers' and no 'arena', the questions that they answer")
        self._data = Data(
            _listed(self.data),
            self._tests(),
            _listed(self.preferences),
            _listed(self.eval_preferences),
            self.reward_bench,
            self.arena,
            self.arena_answers,
            Fields(self.prompt_field, self.reference_field, self.on_bad_row),
        )
        self._client: RewardClient | VllmClient | None = None
        self._judge: Judge | None = None
        self._references: OrderedDict[str, Scored] = OrderedDict()
        own = self.__dict__  # of this instance: what its options ask for
        if self.arena:
            own["needs"] = ("judge", "reward_model")
        if self.reward == "sigmoid_z":
            own["reward_range"] = (0.0, 1.0)

    def _tests(self) -> dict[str, list[str]]:
        if isinstance(self.eval_data, Mapping):
            taken = sorted({"train", ARENA, REWARD_BENCH, "pairs"} & set(self.eval_data))
            if taken:
                raise UsageError(f"a benchmark of 'eval_data' of domain 'rlhf' cannot be called {taken[0]!r}")
            return {name: [source] for name, source in self.eval_data.items()}
        return {"test": _listed(self.eval_data)} if self.eval_data else {}

    # --- data ---------------------------------------------------------------------------------------------------
    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """Prompts of `train`, `test`, or of one benchmark by its name; files in their order."""
        return self._data.tasks(split, seed)

    def pairs(self, split: str, seed: int) -> Iterable[Pair]:
        """Preferences of `train`, `test` or `reward_bench`; ties are left out, and a pair with two equal sides is refused."""
        return self._data.pairs(split, seed)

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        """The references, where tasks have one; of the generator answers of mixed quality, for which there is room above."""
        return self._data.demonstrations(split, seed)

    def benchmarks(self) -> Sequence[Benchmark]:
        """Of the policy one a name of `eval_data`, else `test`, and `arena`; of the reward model `pairs` and `reward_bench`."""
        from cascade_plugin_rlhf.figures import Arena, Pairs, RewardBench, WinRate

        limit = self.eval_limit or (TEST_TASKS if self._data.is_tiny else None)
        names = tuple(self._data.tests) or ("test",)
        found: list[Benchmark] = [
            WinRate(name, name, self.eval_samples, dict(self.eval_sampling), limit=limit) for name in names
        ]
        if self.arena:
            found.append(Arena(ARENA, ARENA, self.eval_samples, dict(self.eval_sampling), limit=self.eval_limit))
        if self._data.has_pairs("test"):
            found.append(Pairs("pairs", of="reward_model", limit=TEST_PAIRS if self._data.is_tiny else None))
        if self.reward_bench:
            found.append(RewardBench(REWARD_BENCH, REWARD_BENCH, of="reward_model"))
        return tuple(found)

    # --- verdicts -----------------------------------------------------------------------------------------------
    def open(self, resources: Mapping[str, str]) -> None:
        """Makes clients of the reward model and, for `arena`, of the judge; they connect when they are first asked."""
        connect = importlib.import_module("cascade_plugin_rlhf.client").connect
        self._client = connect(resources["reward_model"])
        if "judge" in self.needs:
            self._judge = importlib.import_module("cascade_plugin_rlhf.judge").connect_judge(resources["judge"])

    def close(self) -> None:
        """Closes what `open` made."""
        for opened in (self._client, self._judge):
            if opened is not None:
                opened.close()
        self._client = self._judge = None
        self._references.clear()  # the next to be opened may be another reward model

    def score(self, task: Task, response: Response) -> Score:
        """The reward model's word: the raw score as `reward`, its distance to the reference's (or `threshold`) as `value`.

        Raises:
            TaskError: the reward model cannot score this task's reference, or the judge has nothing to compare with.
            ResourceError: nobody answers, or there is no verdict on this response; nothing stands in its place.
        """
        if task.meta.get(JUDGED):
            return self._compared(task, response)
        text = judged_text(response)
        reference = reference_of(task) if self.threshold is None else None
        found, against = self._heard(task, text, reference)
        raw, base = found.score, self.threshold or 0.0 if against is None else against.score
        distance = raw - base
        metrics = {"raw": raw, "distance": distance, "cut": float(found.truncated), **surface(text)}
        if against is not None:
            metrics |= {"reference_raw": base, "win": 0.5 if distance == 0 else float(distance > 0)}
            metrics["reference_cut"] = float(against.truncated)
        if (request := tiny.request(task.question)) is not None:
            metrics["quality"] = request.quality(text)
        note = f"score {raw:.4g}, {base:.4g} of {'the threshold' if against is None else 'its reference'}"
        if response.answer is None:
            note += "; unfinished, and scored whole"
        note += _cut("", found) + (_cut("the reference: ", against) if against else "")
        return Score(sigmoid(distance), reward=raw, note=note, metrics=metrics)

    def _compared(self, task: Task, response: Response) -> Score:
        """The judge's word on the answer beside the reference, in both orders: win 1, tie a half, loss 0, the mean of the two."""
        from cascade_plugin_rlhf.judge import Comparison

        reference = reference_of(task)
        if reference is None:
            raise TaskError(f"task {task.id}: there is no reference answer for the judge to compare with")
        if self._judge is None:
            raise ResourceError("domain 'rlhf' was not opened, or without 'arena': no judge is known")
        if response.answer is None:
            return Score(0.0, note="no answer: the thought is not finished, and nothing was compared")
        text = judged_text(response)
        (found,) = self._judge.compare([(task.prompt, text, reference)])
        if not isinstance(found, Comparison):
            raise ResourceError(f"task {task.id}: the judge gives no verdict: {found.reason}")
        metrics = {"consistent": float(found.is_consistent), **surface(text)}
        return Score(found.value, note=f"judge: {found.forward:+d} as A, {found.backward:+d} as B", metrics=metrics)

    def warnings(
        self, steps: Sequence[Mapping[str, float]], now: Mapping[str, Figures], before: Mapping[str, Figures]
    ) -> Iterable[str]:
        """Reward that goes with the surface of answers, scores of fixed prompts that have moved, answers read in part: see `health.py`."""
        from cascade_plugin_rlhf.health import correlated, cut, drifted

        yield from correlated(steps, self.warn_correlation)
        yield from drifted(now, before, self.warn_drift)
        yield from cut(steps, now, self.warn_cut)

    def _heard(self, task: Task, text: str, reference: str | None) -> tuple[Scored, Scored | None]:
        """The verdict on the text, and on its reference if there is one, which is scored once, in one request with its first text."""
        key = digest(json.dumps([task.prompt, reference]))  # not by id: those of two sources may be the same
        known = None if reference is None else self._references.get(key)
        items: list[tuple[Any, str]] = [(task.prompt, text)]
        if reference is not None and known is None:
            items.append((task.prompt, reference))
        found = self._asked(task, items)
        if len(found) > 1:
            self._references[key] = known = found[1]
            if len(self._references) > _REMEMBERED:
                self._references.popitem(last=False)
        return found[0], known

    def _asked(self, task: Task, items: Sequence[tuple[Any, str]]) -> list[Scored]:
        from cascade_plugin_rlhf.verdict import Scored

        if self._client is None:
            raise ResourceError("domain 'rlhf' was not opened: no reward model is known")
        found: list[Scored] = []
        for place, verdict in enumerate(self._client.scores(items)):
            if not isinstance(verdict, Scored):
                what = f"task {task.id}: {'the reference' if place else 'the response'} has no score: {verdict.reason}"
                raise TaskError(what) if place else ResourceError(what)
            found.append(verdict)
        return found

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        """The raw scores; with `sigmoid_z` the sigmoid of each one's z-score over all judged responses of the group."""
        raw = [score.trained for score in group.scores]
        return raw if self.reward == "raw" else [sigmoid(z) for z in z_scores(raw)]


def _cut(whose: str, found: Scored) -> str:
    """What a note says of a text that the reward model did not read whole; `""` where it did."""
    size = "its tokens" if found.tokens is None else f"its {found.tokens} tokens"
    return f"; {whose}cut, the reward model read only the end of {size}" if found.truncated else ""


def _listed(sources: str | Sequence[str]) -> list[str]:
    return ([sources] if sources else []) if isinstance(sources, str) else list(sources)
