"""The learning rate of every update of a stage, as a share of `optim.lr`.

Updates count from 0. Warm-up rises from 1/w to 1, so that the first update already moves the weights (transformers'
own schedules give it a rate of 0); `linear` and `cosine` fall towards 0, which is reached after the last update.
"""

from __future__ import annotations

import math

from cascade_core.settings import Optim


def factor(step: int, steps: int, optim: Optim) -> float:
    """The share, in (0, 1], of the peak rate that update `step` of `steps` uses."""
    if step < optim.warmup_steps:
        return (step + 1) / optim.warmup_steps
    if optim.schedule == "constant":
        return 1.0
    span = optim.decay_steps or steps - optim.warmup_steps
    done = step - (steps - span)  # updates of the falling part before this one
    if done <= 0:
        return 1.0
    left = max(0.0, 1.0 - done / span)
    return left if optim.schedule == "linear" else 0.5 * (1.0 - math.cos(math.pi * left))
