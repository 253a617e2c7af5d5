"""Judging on a real Ray cluster of two nodes: the verdicts of local processes, and none lost with a node.

Drills, since starting Ray takes half a minute on two cores. Ray warns of its own open files and of its own future.
"""

from __future__ import annotations

import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty import EXTENSION, faulty_scorer, ref

from cascade_core.domain import BatchStats, Score
from cascade_core.errors import ScoringError

pytestmark = [
    pytest.mark.drill,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SMALL = {"object_store_memory": 80 * 2**20}
EVERYTHING = [
    "right", "wrong", "shown", "spin", "memory", "raise", "task", "exit", "sigkill", "nan", "none", "noise", "orphan",
    "power", "recursion", "unprintable", "systemexit", "once exit",
]  # fmt: skip


class Nodes:
    """A cluster on this machine, where the extension of the tests is installed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **SMALL}
        )
        self.workers: dict[str, Any] = {"ray": {"address": self.cluster.address}}

    def add(self, **more: Any) -> Any:
        return self.cluster.add_node(num_cpus=1, **SMALL, **more)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(EXTENSION))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Nodes()
        try:
            yield made
        finally:
            made.cluster.shutdown()


def rows(texts: list[str], domain: str = "faulty") -> list[dict[str, Any]]:
    return [
        {"domain": domain, "id": str(number), "prompt": "q", "answer": None, "response": text}
        for number, text in enumerate(texts)
    ]


def executions(log: Path) -> Counter[str]:
    """How often each task was judged."""
    words = (line.split() for line in log.read_text().splitlines())
    return Counter(word[2] for word in words if word[1] == "score")


def test_verdicts_limits_and_errors_on_ray_are_those_of_local_processes(nodes: Nodes, tmp_path: Path) -> None:
    limits = {"cpu_seconds": 1.0, "wall_seconds": 60.0}
    found: list[list[Score]] = []
    for place, workers in (("here", 2), ("ray", {"ray": {**nodes.workers["ray"], "per_node": 2}})):
        with faulty_scorer(workers=workers, log=tmp_path / place, **limits) as scorer:
            assert scorer.workers == 2
            found.append(scorer.score(rows(EVERYTHING)))
    here, there = ([(s.value, s.reward, s.note, s.metrics, s.error[:40]) for s in scores] for scores in found)
    assert there == here
    assert {score.is_limit for score in found[1]} == {score.is_judged for score in found[1]} == {True, False}
    assert executions(tmp_path / "ray") == executions(tmp_path / "here")


def test_a_response_that_hangs_loses_its_process_alone_and_its_neighbours_do_not_wait(nodes: Nodes) -> None:
    with faulty_scorer(workers={"ray": {**nodes.workers["ray"], "per_node": 2}}, wall_seconds=8.0) as scorer:
        futures = [scorer.submit(row) for row in rows(["hang", *["right"] * 50])]
        assert [future.result(200).value for future in futures[1:]] == [1.0] * 50
        assert not futures[0].done()
        assert futures[0].result(200).error == "no verdict within 8 s, twice"


def test_joining_a_cluster_leaves_the_programs_own_signals_alone(nodes: Nodes) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with faulty_scorer(workers=nodes.workers):
        assert signal.getsignal(signal.SIGTERM) is before


def test_rewards_of_groups_on_ray_are_those_of_the_domain(nodes: Nodes) -> None:
    with faulty_scorer(workers=nodes.workers) as scorer:
        group = rows(["right", "wrong"], "grouped")
        judged = [
            {**row, "score": {"value": score.value}} for row, score in zip(group, scorer.score(group), strict=True)
        ]
        assert scorer.overrides_rewards("grouped")
        assert scorer.rewards("grouped", judged, BatchStats(2, 0.0, 0.5, 1.0)) == [2.0, 0.0]


def test_a_lost_node_loses_no_verdict_and_nothing_is_judged_more_than_twice(nodes: Nodes, tmp_path: Path) -> None:
    lost, log = nodes.add(), tmp_path / "log"
    texts = [("sleep 0.1" if number % 3 else "wrong") for number in range(120)]
    with faulty_scorer(workers=nodes.workers, log=log) as scorer:
        assert scorer.workers == 2
        futures = [scorer.submit(row) for row in rows(texts)]
        pids: set[str] = set()
        while sum(future.done() for future in futures) < 40 or len(pids) < 2:
            time.sleep(0.02)
            pids = {line.split()[0] for line in log.read_text().splitlines()} if log.exists() else set()
            assert not all(future.done() for future in futures), "one node alone has judged everything"
        nodes.cluster.remove_node(lost, allow_graceful=False)
        scores = [future.result(200) for future in futures]
        assert scorer._pools["cpu"].workers == 1
    assert len(pids) == 2  # both nodes had judged by then
    assert [(score.value, score.error) for score in scores] == [(float(text != "wrong"), "") for text in texts]
    counts = executions(log)
    assert set(counts) == {str(number) for number in range(120)}
    assert set(counts.values()) <= {1, 2}
    assert counts.total() <= 120 + 8  # what the lost node had in hand


def test_a_node_that_joins_judges_and_one_with_another_plugin_is_refused_by_name(nodes: Nodes, tmp_path: Path) -> None:
    other = tmp_path / "cascade_plugin_faulty-0.0.9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: cascade-plugin-faulty\nVersion: 0.0.9\n")
    with faulty_scorer(workers=nodes.workers) as scorer:
        assert scorer.score(rows(["right"]))[0].value == 1.0
        joined = nodes.add()
        until = time.monotonic() + 120
        while scorer._pools["cpu"].workers < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert scorer._pools["cpu"].workers == 2
    nodes.cluster.remove_node(joined)
    stale = nodes.add(env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        told = (
            rf"node {socket.gethostname()} \(\w+\) has cascade-plugin-faulty 0\.0\.9, and 0\.1\.0 judges here: install"
        )
        with pytest.raises(ScoringError, match=told), faulty_scorer(workers=nodes.workers):
            pass
    finally:
        nodes.cluster.remove_node(stale)


def test_a_domain_that_waits_has_its_own_processes_on_every_node(nodes: Nodes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    slow = {"slow": replace(ref(log=str(log)), lane="io")}
    with faulty_scorer(workers=nodes.workers, concurrency=3, domains=slow) as scorer:
        assert (scorer.workers, scorer.concurrency) == (1, 3)
        waiting = [scorer.submit(row) for row in rows(["hang"] * 3, "slow")]
        until = time.monotonic() + 120
        while not (log.exists() and len(executions(log)) == 3) and time.monotonic() < until:
            time.sleep(0.05)
        assert len({line.split()[0] for line in log.read_text().splitlines()}) == 3  # all at once
        assert scorer.score(rows(["right"]))[0].value == 1.0  # and nobody else waits for them
        assert not any(future.done() for future in waiting)


def test_a_closed_scorer_leaves_no_process_and_no_connection_behind(nodes: Nodes, tmp_path: Path) -> None:
    import psutil
    import ray

    log = tmp_path / "log"
    with faulty_scorer(workers=nodes.workers, log=log) as scorer:
        future = scorer.submit(rows(["hang"])[0])
        while not (log.exists() and "score" in log.read_text()):
            time.sleep(0.05)
    with pytest.raises(ScoringError, match="closed"):
        future.result(1)
    (pid,) = {int(line.split()[0]) for line in log.read_text().splitlines()}
    assert not psutil.pid_exists(pid)
    assert not ray.is_initialized()


def test_where_no_cluster_answers_the_refusal_says_how_to_start_one() -> None:
    told = pytest.raises(ScoringError, match=r"no Ray cluster can be joined at .*ray start --head")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with told, faulty_scorer(workers={"ray": {"address": address}}):
            pass
