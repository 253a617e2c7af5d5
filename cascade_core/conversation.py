"""Whether a domain holds conversations: one that overrides `Domain.reply`.

Such a domain is trained where the trainer leads conversations (`Trainer.converses`); elsewhere it is refused before anything starts,
because a single turn of it would be something else. Who leads them is `openrlhf_agent.py`, who asks the environment `scoring.py`.
"""

from __future__ import annotations

from cascade_core.domain import Domain


def converses(domain: Domain) -> bool:
    """Whether the environment of the domain answers the model."""
    return type(domain).reply is not Domain.reply
