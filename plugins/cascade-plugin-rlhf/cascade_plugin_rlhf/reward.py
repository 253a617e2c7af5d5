"""What a reward model's scores become: what it is asked about, the value of a score, and the reward inside a group.

A Bradley-Terry score has neither unit nor zero: only differences mean something, and `sigmoid` of a difference is the
probability that the one answer is preferred to the other (arXiv 2512.13607, section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cascade_core.domain import Response

EPSILON = 1e-6
"""Added to the standard deviation, so that a group without spread gives z = 0 and not a division by zero."""


def judged_text(response: Response) -> str:
    """What of a response is shown to the reward model (arXiv 2512.13607, section 4.3).

    What follows the last `</think>`. Where an open thought was never closed, or the mode asks for a thought and no `</think>` came,
    all of it as it stands, the template's prefill included: such a text scores low, which teaches to finish. White space around
    an answer is the template's, not part of it.

    >>> judged_text(Response("so 4</think>\\n\\n4.", prefill="<think>")), judged_text(Response("so 4, or", prefill="<think>"))
    ('4.', '<think>so 4, or')
    """
    answer = response.answer
    return response.prefill + response.text if answer is None else answer.strip()


def sigmoid(number: float) -> float:
    """1 / (1 + e^-x), in [0, 1], without overflow for any finite number."""
    if number >= 0:
        return 1.0 / (1.0 + math.exp(-min(number, 700.0)))
    return math.exp(max(number, -700.0)) / (1.0 + math.exp(max(number, -700.0)))


def z_scores(scores: Sequence[float]) -> list[float]:
    """How many standard deviations each score lies from the group's mean.

    z_i = (s_i - mean(s)) / (std(s) + 1e-6) over all judged responses of a group, passing and failing alike. The paper (section 4.4) states neither
    the kind of deviation nor an epsilon: this is the sample deviation (n - 1), as the trainer that its authors name computes
    group statistics. One judged response, or none that differs, gives 0.

    >>> [round(z, 3) for z in z_scores([1.0, 2.0, 3.0])], z_scores([7.5])
    ([-1.0, 0.0, 1.0], [0.0])
    """
    if len(scores) < 2 or min(scores) == max(scores):
        return [0.0] * len(scores)
    size = max(map(abs, scores)) or 1.0  # squares of what remains cannot leave the range of a float
    scaled = [score / size for score in scores]
    mean = math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scaled) / (len(scaled) - 1))
    return [(score - mean) / (deviation + EPSILON / size) for score in scaled]
