"""Scoring workers on the nodes of a Ray cluster: the same `pool.Pool` on every node, and one queue here.

`cluster.py` is the cluster: its nodes, whether they judge as this machine would, and whether they reach what domains need.
`courier.py` runs on a node, as an actor: it carries jobs to that node's own pool and answers back. `fleet.py` is the driver's side and
looks to `scoring.Scorer` like a pool. Limits, retries on a fresh process and everything that a verdict depends on are the
pool's, so that a verdict is the same wherever it is given.

Ray is imported by nothing here before `scoring: {workers: ray}` asks for it (`pip install 'cascade-rl[ray]'`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cascade_core.domain import DomainRef
from cascade_core.settings import RayWorkers, Scoring

if TYPE_CHECKING:
    from cascade_core.fleet.fleet import Fleet

__all__ = ["fleets"]


def fleets(
    lanes: Mapping[str, tuple[Mapping[str, DomainRef], Scoring]], resources: Mapping[str, str], where: RayWorkers
) -> dict[str, Fleet]:
    """A fleet for every lane that has domains, on one cluster; lanes without domains are left out.

    Args:
        lanes: domains and limits of each; that of lane `io` has `concurrency` processes on a node, twice the workers where it is 0.
        resources: names to addresses, for `Domain.open`.

    Raises:
        ScoringError: Ray is not installed, no cluster answers, no node has cores, a node judges with another version or does
            not answer, or an address is good on this machine alone.
    """
    from cascade_core.fleet.cluster import Cluster
    from cascade_core.fleet.fleet import Fleet

    cluster = Cluster(where)
    try:
        every = [ref for domains, _ in lanes.values() for ref in domains.values()]
        nodes = cluster.ready(every, resources)
        return {
            lane: Fleet(domains, resources, settings, cluster.share(), nodes, waits=lane == "io")
            for lane, (domains, settings) in lanes.items()
            if domains
        }
    finally:
        cluster.close()
