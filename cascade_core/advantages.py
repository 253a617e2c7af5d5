"""Rewards of a group to finished advantages, and what a token weighs in the loss: the one place, for every trainer.

`advantages` turns the rewards of one group (the responses to one task) into numbers that a trainer multiplies with
log-probabilities and changes no more. `soft_overlong` is the length penalty, `token_weights` the denominators of the
three losses. Plain floats and the standard library; batches, files and masks' reasons are `judge.py`'s.

A masked sample (`None`) could not be judged, or is left out on purpose: it enters neither mean nor standard deviation,
gets advantage 0 and weight 0, and everything else is as if it had never been sampled.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from cascade_core.errors import ContractError

LARGEST_REWARD = 1e100
"""Rewards past this size are refused: their squares would leave the range of a float."""


def advantages(
    rewards: Sequence[float | None], *, std: str = "sample", epsilon: float = 1e-4, shaping: str = "none"
) -> list[float]:
    """The advantage of every sample of one group.

    A_i = (r_i - mean(r)) / (std(r) + epsilon), the group-normalised advantage of GRPO (arXiv 2402.03300, section
    4.1.1; arXiv 2512.13607, section 4.1.2), the same for all tokens of a response. Neither paper says which standard
    deviation and which epsilon, so both are settings. Exactly 0 for all where the rewards are equal, and for a lone
    judged sample, whatever epsilon.

    Args:
        rewards: finite numbers; `None` is a masked sample.
        std: `"sample"` (divides by n - 1), `"population"` (by n), or `"none"`: A_i = r_i - mean(r), as Dr. GRPO does
            (arXiv 2503.20783).
        epsilon: added to the standard deviation, at least 0.
        shaping: `"none"`, or `"tanh"`: tanh of the z-score, into [-1, 1] (arXiv 2512.13607, section 6.3, item 3).

    >>> advantages([1.0, 0.0, None, 0.5], std="none")
    [0.5, -0.5, 0.0, 0.0]

    Raises:
        ContractError: a reward that is not finite or larger than `LARGEST_REWARD`, or an unknown setting.
    """
    if std not in ("sample", "population", "none") or shaping not in ("none", "tanh") or not epsilon >= 0:
        raise ContractError(f"no advantage is defined for std={std!r}, epsilon={epsilon!r}, shaping={shaping!r}")
    judged = [reward for reward in rewards if reward is not None]
    for reward in judged:
        if not abs(reward) <= LARGEST_REWARD:
            raise ContractError(f"a reward must be a finite number of size at most 1e100, found {reward!r}")
    if not judged or min(judged) == max(judged):
        return [0.0] * len(rewards)
    mean = math.fsum(judged) / len(judged)
    scale = _deviation(judged, mean, std) + epsilon if std != "none" else 1.0
    # Deviations too small for a float to square are no deviation.
    shaped = (0.0 if reward is None or scale == 0 else (reward - mean) / scale for reward in rewards)
    return [math.tanh(value) if shaping == "tanh" else value for value in shaped]


def _deviation(judged: Sequence[float], mean: float, std: str) -> float:
    squares = math.fsum((reward - mean) ** 2 for reward in judged)
    return math.sqrt(squares / (len(judged) - (1 if std == "sample" else 0)))


def soft_overlong(tokens: int, limit: int, buffer: int, factor: float = 1.0) -> float:
    """What is added to the reward of a response of `tokens` tokens, from -`factor` to 0.

    Nothing up to `limit - buffer` tokens, then linearly down to -`factor` at `limit` and beyond (arXiv 2503.14476,
    equation 13).

    Raises:
        ContractError: `buffer` is not in 1 … `limit`.
    """
    if not 1 <= buffer <= limit:
        raise ContractError(f"overlong buffer must lie in 1 … {limit} (the length limit, tokens), found {buffer!r}")
    past = tokens - (limit - buffer)
    return -factor * min(max(past / buffer, 0.0), 1.0)


def token_weights(
    tokens: Sequence[int], groups: Sequence[Hashable], masked: Sequence[bool], loss: str = "token"
) -> list[float]:
    """What one token of each sample weighs: loss = -Σ_i weight_i · A_i · Σ_t log-prob-term(i, t).

    With |o_i| the tokens of sample i, over the samples that are not masked:

    - `"token"`: 1 / Σ_j |o_j| over the whole step. Every token weighs the same (arXiv 2503.14476, equation 12; verl's
      `token-mean`).
    - `"token-group"`: 1 / (P · Σ_{j in i's group} |o_j|), P the number of groups: the denominator of
      arXiv 2512.13607, equation 1, averaged over prompts.
    - `"sequence"`: 1 / (N · |o_i|), N the number of samples: mean in the sample, then over samples (arXiv 2402.03300,
      equation 3; the fall-back of arXiv 2512.13607, section 6.3, item 2).

    In each, Σ_i weight_i · |o_i| is 1 when no response is empty.

    Args:
        tokens: response tokens of each sample, at least 0.
        groups: which group each sample is of.
        masked: samples that have no part in the loss; their weight is 0. A group of which all are masked is no group.

    Raises:
        ContractError: the three sequences differ in length, or `loss` is unknown.
    """
    if not len(tokens) == len(groups) == len(masked):
        raise ContractError(f"token weights of {len(tokens)} lengths, {len(groups)} groups, {len(masked)} masks")
    live = [index for index, left_out in enumerate(masked) if not left_out]
    totals: dict[Hashable, int] = {}
    for index in live:
        totals[groups[index]] = totals.get(groups[index], 0) + tokens[index]
    if loss == "token":
        denominators = {index: sum(totals.values()) for index in live}
    elif loss == "token-group":
        denominators = {index: len(totals) * totals[groups[index]] for index in live}
    elif loss == "sequence":
        denominators = {index: len(live) * tokens[index] for index in live}
    else:
        raise ContractError(f"no loss is called {loss!r} (allowed: token, token-group, sequence)")
    return [1.0 / denominators[index] if denominators.get(index) else 0.0 for index in range(len(tokens))]
