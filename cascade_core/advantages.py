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
    mean = _mean(judged)
    scale = _deviation(judged, mean, std) + epsilon if std != "none" else 1.0
    # Deviations too small for a float to square are no deviation.
    shaped = (0.0 if reward is None or scale == 0 else _away(reward, mean) / scale for reward in rewards)
    return [math.tanh(value) if shaping == "tanh" else value for value in shaped]


def grid(group: Sequence[float]) -> list[float]:
    """The finished advantages of one group as nearby numbers whose sum is exactly 0 in 32-bit floats, in any order.

    For a trainer that takes the group's mean away once more (OpenRLHF's `dr_grpo`): it then takes away 0. All become multiples of one
    power of two, so fine that Σ |A_i| is at most 2^23 of them: every partial sum has 24 bits. What rounding leaves over is
    taken from those that were rounded furthest; each moves by less than one step, and an exact 0 (a masked sample) stays.

    >>> grid([0.1, 0.2, -0.3]) == [0.1, 0.2, -0.3], sum(grid([0.1, 0.2, -0.3]))
    (False, 0.0)

    Advantages that do not sum to 0 (`shaping="tanh"` makes such) only become multiples: a trainer that takes their mean away
    changes them, and must not be given any.

    Raises:
        ContractError: they are too large for 32-bit floats.
    """
    size = math.fsum(abs(value) for value in group)
    if not size < 2.0**127:
        raise ContractError(f"advantages must fit into 32-bit floats, found sizes that sum to {size:g}")
    step = 2.0 ** max(math.frexp(size)[1] - 23, -126)
    units = [round(value / step) for value in group]
    rest = sum(units) if abs(math.fsum(group)) <= 1e-9 * size else 0
    sign = 1 if rest > 0 else -1
    furthest = sorted(range(len(units)), key=lambda index: sign * (group[index] / step - units[index]))
    for index in furthest[: abs(rest)]:
        units[index] -= sign
    return [unit * step for unit in units]


def _mean(judged: Sequence[float]) -> tuple[float, float]:
    """The mean as a float and what rounding took from it: of rewards that differ in their last digit alone, that is all."""
    mean = math.fsum(judged) / len(judged)
    left = math.fsum(reward - mean for reward in judged) / len(judged)
    return mean, left if abs(left) > 1e-12 * max(abs(reward - mean) for reward in judged) else 0.0


def _away(reward: float, mean: tuple[float, float]) -> float:
    return reward - mean[0] - mean[1]


def _deviation(judged: Sequence[float], mean: tuple[float, float], std: str) -> float:
    squares = math.fsum(_away(reward, mean) ** 2 for reward in judged)
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
