"""What a worker's answer says: a score, what the verdict took, or the environment's next turn.

An `Answer` is the domain's own JSON, a limit that was used up, or what went wrong. Here these become the values that callers
of `scoring.Scorer` meet; who is asked, and when, is decided there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cascade_core.domain import Score
from cascade_core.errors import ScoringError
from cascade_core.rows import json_score
from cascade_core.seat import Answer, Job


@dataclass(frozen=True)
class Verdict:
    """A score, and what it took in seconds of the clock: in the queue (a try that failed counts there), and to be judged.

    `ended` is a reading of the monotonic clock.
    """

    score: Score
    queue_seconds: float
    run_seconds: float
    ended: float

    @classmethod
    def of(cls, found: Score | Job) -> Verdict:
        """Of a job when it is done; of a score that took no job, with no time."""
        if isinstance(found, Score):
            return cls(found, 0.0, 0.0, 0.0)
        return cls.read(found.queued, found.future.result())

    @classmethod
    def read(cls, queued: float, answer: Answer) -> Verdict:
        """Of the answer to a job that was queued then, on the monotonic clock."""
        begun = answer.begun or answer.ended
        return cls(score_of(answer), begun - queued, answer.ended - begun, answer.ended)


@dataclass(frozen=True)
class Look:
    """One verdict with what it cost: seconds of the clock and of CPU time, bytes that its process held afterwards.

    `explanation` is the domain's own, `trouble` why there is none. Without a verdict of the domain (a limit, a failure) nothing
    was measured: the numbers are `None`.
    """

    score: Score
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    held_bytes: int | None = None
    explanation: Mapping[str, Any] | None = None
    trouble: str = ""

    @classmethod
    def of(cls, answer: Answer) -> Look:
        """Of the answer to a request for a look (`worker.REQUEST`)."""
        if answer.error or answer.limit:
            return cls(score_of(answer), trouble=answer.error or answer.limit)
        found = json.loads(answer.body)
        return cls(**{**found, "score": json_score(found["score"])})


def score_of(answer: Answer) -> Score:
    """The score that an answer gives a sample: what went wrong is its `error`, a limit is a verdict."""
    if answer.error:
        return Score.failed(answer.error)
    return Score(0.0, note=answer.limit) if answer.limit else json_score(json.loads(answer.body))


def replied(domain: str, answer: Answer) -> Any:
    """What a domain said in a conversation.

    Raises:
        ScoringError: it said nothing: a limit, or a failure.
    """
    if answer.limit or answer.error:
        raise ScoringError(f"{domain}: a turn of a conversation: {answer.limit or answer.error}")
    return json.loads(answer.body)
