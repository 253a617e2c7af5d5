"""What one scorer says of one sample, and what the scorer's own `rewards` makes of all that it says in a step.

The scorer of a sample is its own domain, or one that a stage names beside it (`composition.py`); either goes through `settle`
in the same way. Length rules, controls and advantages are `judge.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cascade_core.advantages import LARGEST_REWARD
from cascade_core.domain import BatchStats, Score
from cascade_core.errors import ScoringError
from cascade_core.rows import score_json
from cascade_core.scoring import Scorer
from cascade_core.verdict import Verdict


@dataclass
class Opinion:
    """One row, whose `domain` names the scorer, and its verdict; `reward` is `None` where there is none."""

    row: Mapping[str, object]
    score: Score
    verdict: Verdict
    reward: float | None = None

    @property
    def domain(self) -> str:
        """The name under which the scorer is known."""
        return str(self.row.get("domain"))

    def fail(self, error: str) -> None:
        """There is no verdict after all."""
        self.score, self.reward = Score.failed(error), None


def settle(scorer: Scorer, opinions: Sequence[Opinion]) -> None:
    """Each judged sample's own reward, then what scorers with a `rewards` of their own make of it, group by group.

    The statistics of the batch are over all that a scorer judged in the step, and nothing else: it knows their scale.
    """
    groups: dict[str, dict[str, list[Opinion]]] = {}
    for opinion in opinions:
        own = groups.setdefault(opinion.domain, {})
        if opinion.score.is_judged:
            opinion.reward = opinion.score.trained
            _bound(opinion)  # before it enters anybody's statistics
        if opinion.reward is not None:
            own.setdefault(str(opinion.row["group"]), []).append(opinion)
    for domain, live in groups.items():
        if live and scorer.overrides_rewards(domain):
            batch = statistics([one.score.trained for group in live.values() for one in group])
            _regroup(scorer, domain, list(live.values()), batch)
            for opinion in (one for group in live.values() for one in group):
                _bound(opinion)


def statistics(rewards: Sequence[float]) -> BatchStats:
    """Of at least one reward; final, since all of them are there."""
    return BatchStats(len(rewards), min(rewards), math.fsum(rewards) / len(rewards), max(rewards))


def _bound(opinion: Opinion) -> None:
    if opinion.reward is not None and abs(opinion.reward) > LARGEST_REWARD:
        opinion.fail(f"reward {opinion.reward:g} is out of range (allowed: up to 1e100 in size)")


def _regroup(scorer: Scorer, domain: str, groups: Sequence[list[Opinion]], batch: BatchStats) -> None:
    rows = [[{**one.row, "score": score_json(one.score)} for one in group] for group in groups]
    for group, found in zip(groups, scorer.group_rewards(domain, rows, batch), strict=True):
        if isinstance(found, ScoringError):
            for one in group:
                one.fail(str(found))
        else:
            for one, reward in zip(group, found, strict=True):
                one.reward = reward
