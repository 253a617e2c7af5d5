"""What a reward model or a judge says of one item: a score, or why there is none; never 0 in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cascade_core.domain import Message
from cascade_core.errors import ResourceError

Item = tuple[str | Sequence[Message], str]
"""A prompt (a text or a conversation), and the response to it."""


class RewardModelError(ResourceError):
    """A reward model or judge gave no answer that can be read, however often it was asked; says which and what it answered."""


@dataclass(frozen=True)
class Scored:
    """A finite score; how many tokens there were, `None` where nobody says, and whether they were more than the model reads, and cut."""

    score: float
    tokens: int | None = None
    truncated: bool = False


@dataclass(frozen=True)
class Unjudged:
    """Why an item has no score."""

    reason: str


def read_score(value: Any, tokens: int | None = None, truncated: bool = False) -> Scored | Unjudged:
    """A score as some server wrote it; only a finite number is one.

    >>> read_score("0.5")
    Unjudged(reason="the score is the text '0.5', not a number")
    """
    if isinstance(value, str):
        return Unjudged(f"the score is the text {value[:40]!r}, not a number")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Unjudged("there is no score" if value is None else f"the score is {value!r:.40}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return Scored(number, tokens, truncated) if math.isfinite(number) else Unjudged(f"the score is {number}")
