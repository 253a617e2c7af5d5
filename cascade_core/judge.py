"""The sampled rows of one optimiser step to finished advantages: what every trainer calls, and nothing else.

One step goes through: `Scorer` (verdicts), `Domain.rewards` (group and batch), `composition.py` (several scorers to one reward),
the length rule of the stage, the control, and `advantages`. The *value* of a verdict is never changed on the way; only the reward that is trained on is. A sample that could
not be judged is masked, counted, and stops the stage when there are too many. Every step is stored, before anything can
stop it, in `rollouts/step-00007.jsonl`.

The rules, in this order: `Domain.rewards` sees all judged samples of the group, also those that the length rule will mask or
zero, since their text is as real as any (arXiv 2512.13607, 4.4: the z-score is over all rollouts of the group). The batch
statistics are those of the domain's own judged samples of the step, whose scale it knows. So it is with every scorer that the
stage names. Then the stage's `reward`, then `code_switch`; then `overlong`; then the permutation of the control; then mean and
standard deviation over what is not masked.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from cascade_core.advantages import advantages, soft_overlong
from cascade_core.composition import Composition, Sample
from cascade_core.correlation import within
from cascade_core.domain import SURFACE, Score
from cascade_core.errors import ContractError, TooManyFailures
from cascade_core.opinion import Opinion, settle
from cascade_core.request import Handed
from cascade_core.rows import Row, read, score_json, write
from cascade_core.scoring import Scorer
from cascade_core.settings import Soft, Stage
from cascade_core.verdict import Verdict

_WINDOW = 500  # samples of a domain over which its failures are counted, at least
_WHOLE_STEP = 20  # a step with so many samples of a domain, all failed, stops the stage at once


@dataclass(frozen=True)
class Judged:
    """Rows as given, each with `score`, `reward` (trained; `None` if not judged), `advantage` and `masked`.

    `masked` is `""`, `"error"` or `"overlong"`. `metrics` has only what exists: no mean over nothing, never a NaN.
    """

    rows: list[Row]
    metrics: Mapping[str, float]


@dataclass
class _Failures:
    """Failed and all samples of one domain, step by step, as far back as the window reaches."""

    steps: deque[tuple[int, int]] = field(default_factory=deque)
    failed: int = 0
    total: int = 0

    def add(self, failed: int, total: int) -> None:
        self.steps.append((failed, total))
        self.failed, self.total = self.failed + failed, self.total + total
        while self.total - self.steps[0][1] >= _WINDOW:
            old_failed, old_total = self.steps.popleft()
            self.failed, self.total = self.failed - old_failed, self.total - old_total


class Judge:
    """The judge of one stage.

    Args:
        seed: of the stage; the control's permutation depends on it, the stage's name and the step alone.
        folder: the stage's folder; rollouts go to `rollouts/` in it. `None` stores nothing.
        max_error_rate: the share of a domain's samples that may fail to be judged.
    """

    def __init__(self, scorer: Scorer, stage: Stage, seed: int, folder: Path | None, max_error_rate: float) -> None:
        self._scorer, self._stage, self._seed = scorer, stage, seed
        self._composition = Composition(stage)
        self._rollouts = folder / "rollouts" if folder else None
        self._max_error_rate = max_error_rate
        self._failures: dict[str, _Failures] | None = None
        self._handed: Handed = {}

    @property
    def scorer(self) -> Scorer:
        """Who gives the verdicts."""
        return self._scorer

    def hand_over(self, row: Row) -> None:
        """Begins to judge a row of the step that `judge` is called for next, while others are still being generated; does not wait.

        `judge` then finds its verdict by the fields that a verdict may depend on (task, `response`, `prefill`, `truncated`): a
        row that agrees in them gets that verdict, whatever else it says, and any other is judged as if nothing had been
        handed over. So rewards do not depend on it. Safe from several threads.

        Raises:
            ScoringError: the scorer is closed.
        """
        for one in self.asked([row]):
            self._scorer.hand_over(one, self._handed)

    def asked(self, rows: Sequence[Row]) -> list[Row]:
        """The rows whose verdicts a step of `rows` is judged by: themselves, then those that other scorers judge beside them."""
        return [*rows, *(one for row in rows for one in self._composition.beside(row).values())]

    def judge(self, step: int, rows: Sequence[Row], verdicts: Sequence[Future[Verdict]] | None = None) -> Judged:
        """Judges one step and stores it.

        Args:
            step: optimiser step, from 0.
            rows: task fields, `response`, `prefill`, `truncated`, `tokens` (of the response), `sample`, and `group`: the
                same text for the responses to one task drawn once, wherever they stand.
            verdicts: those of `asked(rows)`, where somebody else has begun them and counts them; waited for.

        Raises:
            TooManyFailures: more than `max_error_rate` over a domain's last 500 samples or more, or a whole step of at
                least 20, could not be judged.
            ContractError: a row without `group` or `tokens`.
            ScoringError: the scorer is closed.
        """
        for row in rows:
            if not isinstance(row.get("group"), str) or type(row.get("tokens")) is not int:
                raise ContractError(
                    f"a sampled row needs a text 'group' and an integer 'tokens', found {str(row)[:200]}"
                )
        start, handed = time.monotonic(), self._handed
        self._handed = {}
        samples = self._heard(rows, handed, verdicts)
        opinions = [*samples, *(one for sample in samples for one in sample.beside.values())]
        groups: dict[str, list[Sample]] = {}
        for sample in samples:
            groups.setdefault(str(sample.row["group"]), []).append(sample)
        settle(self._scorer, opinions)
        self._composition.apply(samples)
        seconds = time.monotonic() - start
        for sample in samples:
            self._apply_length(sample)
        if self._stage.control == "permuted-rewards":
            _permute(samples, random.Random(f"{self._stage.name}/{self._seed}/{step}"))
        for group in groups.values():
            settings = self._stage.advantage
            found = advantages(
                [sample.trained for sample in group],
                std=settings.std,
                epsilon=settings.epsilon,
                shaping=settings.shaping,
            )
            for sample, advantage in zip(group, found, strict=True):
                sample.advantage = advantage
        judged = [_row(sample) for sample in samples]
        if self._rollouts:
            write(self._rollouts / f"step-{step:05d}.jsonl", ({**row, "step": step} for row in judged))
        self._check(step, len(samples), opinions)
        times = {**_times(opinions, start), "verify_seconds": round(seconds, 3)}
        told = {**_metrics(samples, groups.values()), **self._composition.metrics(samples), **times}
        return Judged(judged, told)

    def _heard(self, rows: Sequence[Row], handed: Handed, begun: Sequence[Future[Verdict]] | None) -> list[Sample]:
        """The verdicts of the rows' own domains, and of the scorers beside them."""
        if begun is None:
            verdicts = iter(self._scorer.verdicts(self.asked(rows), handed))
        else:
            wait(begun)  # once, not once for each
            verdicts = iter([one.result() for one in begun])
        samples = [Sample(row, one.score, one) for row, one in zip(rows, verdicts, strict=False)]
        for sample, row in zip(samples, rows, strict=True):
            for (name, beside), one in zip(self._composition.beside(row).items(), verdicts, strict=False):
                sample.beside[name] = Opinion(beside, one.score, one)
        return samples

    def _apply_length(self, sample: Sample) -> None:
        """`overlong`: mask (neither mean nor loss), zero, keep, or soft (a response that was cut pays in full)."""
        overlong, truncated = self._stage.overlong, bool(sample.row.get("truncated"))
        if sample.reward is None:
            sample.masked = "error"
        elif isinstance(overlong, Soft):
            limit, soft = self._stage.rollout.max_response_tokens, overlong.soft
            tokens = limit if truncated else int(str(sample.row["tokens"]))
            sample.reward += soft_overlong(tokens, limit, soft.buffer, soft.factor)
        elif truncated and overlong == "mask":
            sample.masked = "overlong"
        elif truncated and overlong == "zero":
            sample.reward = 0.0

    def _check(self, step: int, size: int, opinions: Sequence[Opinion]) -> None:
        """Counts what each scorer could not judge of a step of `size` samples."""
        if self._failures is None:
            self._failures = self._remembered(step, size)
        for domain in dict.fromkeys(one.domain for one in opinions):
            own = [one for one in opinions if one.domain == domain]
            errors = [one for one in own if not one.score.is_judged]
            seen = self._failures.setdefault(domain, _Failures())
            seen.add(len(errors), len(own))
            enough = seen.total >= _WINDOW or len(errors) == len(own) >= _WHOLE_STEP
            if enough and seen.failed > self._max_error_rate * seen.total:
                raise TooManyFailures(
                    f"{seen.failed} of the last {seen.total} samples of domain {domain!r} could not be judged"
                    f" (allowed: {self._max_error_rate:.1%}); {_commonest(errors)}"
                    + (f"; see {self._rollouts}" if self._rollouts else "")
                )

    def _remembered(self, step: int, size: int) -> dict[str, _Failures]:
        """The failures of the steps before, where an earlier process judged them: a kill does not reset the count."""
        failures: dict[str, _Failures] = {}
        if not self._rollouts:
            return failures
        for earlier in range(max(0, step - 1 - _WINDOW // max(1, size)), step):
            path = self._rollouts / f"step-{earlier:05d}.jsonl"
            said: dict[str, list[bool]] = {}
            for row in read(path) if path.exists() else ():
                beside = {name: one for name, one in row.get("components", {}).items() if name != row["domain"]}
                for domain, verdict in {row["domain"]: row["score"], **beside}.items():
                    said.setdefault(str(domain), []).append("error" in verdict)
            for domain, failed in said.items():
                failures.setdefault(domain, _Failures()).add(sum(failed), len(failed))
        return failures


def _commonest(errors: Sequence[Opinion]) -> str:
    if not errors:
        return "none of them in the last step"
    error, count = Counter(sample.score.error for sample in errors).most_common(1)[0]
    example = next(sample.row.get("id") for sample in errors if sample.score.error == error)
    return f"{count} times, task {example!r} among them: {error}"


def _permute(samples: Sequence[Sample], chance: random.Random) -> None:
    """The control: rewards change places over the whole batch, so that they say nothing about their responses."""
    trained = [sample for sample in samples if sample.trained is not None]
    rewards = [sample.reward for sample in trained]
    chance.shuffle(rewards)
    for sample, reward in zip(trained, rewards, strict=True):
        sample.reward = reward


def _row(sample: Sample) -> Row:
    return {
        **sample.row,
        "score": score_json(sample.score),
        "reward": sample.reward,
        "advantage": sample.advantage,
        "masked": sample.masked,
        **({"components": sample.components} if sample.components else {}),
    }


def _metrics(samples: Sequence[Sample], groups: Iterable[Sequence[Sample]]) -> dict[str, float]:
    trained = [[sample.trained for sample in group if sample.trained is not None] for group in groups]
    rewards = [reward for group in trained for reward in group]
    judged = [sample for sample in samples if sample.score.is_judged]
    tokens = [int(str(sample.row["tokens"])) for sample in samples]
    metrics: dict[str, float] = {
        "scored": len(judged),
        "limit": sum(sample.score.is_limit for sample in judged),
        "failed": len(samples) - len(judged),
        "total": len(samples),
        "masked": sum(bool(sample.masked) for sample in samples),
        "masked_groups": sum(not group for group in trained),
        "truncated": sum(bool(sample.row.get("truncated")) for sample in samples),
    }
    if samples:
        metrics["zero_variance"] = sum(len(set(group)) < 2 for group in trained) / len(trained)
        metrics["response_tokens_mean"] = sum(tokens) / len(tokens)
        metrics["response_tokens_max"] = max(tokens)
    metrics |= _means("reward_mean", rewards) | _means("value_mean", [sample.score.value for sample in judged])
    if len(rewards) > 1:
        mean = metrics["reward_mean"]
        metrics["reward_std"] = math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1))
    for domain in dict.fromkeys(sample.domain for sample in judged):
        metrics |= _means(f"value/{domain}", [sample.score.value for sample in judged if sample.domain == domain])
    for domain, told in _told(samples).items():
        for name in dict.fromkeys(name for _, score in told for name in score.metrics):
            found = [score.metrics[name] for _, score in told if name in score.metrics]
            metrics |= _means(f"metric/{domain}/{name}", found)
        metrics |= _surfaces(domain, told)
    return metrics


def _told(samples: Sequence[Sample]) -> dict[str, list[tuple[Sample, Score]]]:
    """What each domain said of its own samples, and what a scorer that has none of its own said of those it was asked about."""
    found: dict[str, list[tuple[Sample, Score]]] = {}
    owners = {sample.domain for sample in samples}
    for sample in samples:
        beside = [one for name, one in sample.beside.items() if name not in owners]
        for one in (sample, *beside):
            if one.score.is_judged:
                found.setdefault(one.domain, []).append((sample, one.score))
    return found


def _surfaces(domain: str, told: Sequence[tuple[Sample, Score]]) -> dict[str, float]:
    """How the trained reward goes with each metric of the surface of answers, inside groups: a reward that is mostly length teaches length."""
    groups: dict[str, list[tuple[float, Score]]] = {}
    for sample, score in told:
        if sample.trained is not None:
            groups.setdefault(str(sample.row["group"]), []).append((sample.trained, score))
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for _, score in told for name in score.metrics if name.startswith(SURFACE)):
        pairs = [
            [(trained, float(score.metrics[name])) for trained, score in group if name in score.metrics]
            for group in groups.values()
        ]
        if (one := within(pairs)) is not None:
            found[f"correlation/{domain}/{name}"] = one[0]
    return found


def _times(opinions: Sequence[Opinion], start: float) -> dict[str, float]:
    """Seconds by domain: of a verdict in the queue and under judgement, the longest judgement, and how long the step waited.

    That wait runs from `start`, when all responses were there, to the domain's last verdict: what is left of its judging where
    rows were handed over before.
    """
    found: dict[str, float] = {}
    for domain in dict.fromkeys(one.domain for one in opinions):
        own = [one.verdict for one in opinions if one.domain == domain]
        runs = [verdict.run_seconds for verdict in own]
        found |= _means(f"queue_seconds/{domain}", [verdict.queue_seconds for verdict in own])
        found |= _means(f"run_seconds/{domain}", runs)
        found[f"run_max_seconds/{domain}"] = max(runs)
        found[f"wait_seconds/{domain}"] = max(0.0, max(verdict.ended for verdict in own) - start)
    return {name: round(value, 6) for name, value in found.items()}


def _means(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: math.fsum(values) / len(values)} if values else {}
