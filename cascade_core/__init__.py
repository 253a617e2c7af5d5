"""cascade-rl: reinforcement learning of language models in sequential, domain-wise stages.

The public names; importing this package loads no torch, no trainer and no verifier.
"""

from cascade_core.domain import (
    BatchStats,
    Benchmark,
    Demonstration,
    Domain,
    DomainRef,
    Estimate,
    Group,
    Message,
    Pair,
    Response,
    Score,
    Task,
)
from cascade_core.hookspecs import hookimpl
from cascade_core.resource import Resource
from cascade_core.secret import Secret
from cascade_core.tracker import RunInfo, Tracker

__all__ = [
    "BatchStats",
    "Benchmark",
    "Demonstration",
    "Domain",
    "DomainRef",
    "Estimate",
    "Group",
    "Message",
    "Pair",
    "Resource",
    "Response",
    "RunInfo",
    "Score",
    "Secret",
    "Task",
    "Tracker",
    "hookimpl",
]
