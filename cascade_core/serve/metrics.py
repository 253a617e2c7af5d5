"""Numbers of the service for Prometheus, in a registry of its own; `GET /metrics` shows them.

A verdict is counted once, when it is there, whoever waited for it: `cascade_verdicts_total` by domain and outcome (`scored`,
`limit`, `failed`) is what was executed, `cascade_joined_total` what needed no execution.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Metrics:
    """The counters; one instance a service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.verdicts = Counter(
            "cascade_verdicts", "verdicts by domain and outcome", ["domain", "outcome"], registry=self._registry
        )
        self.joined = Counter(
            "cascade_joined",
            "rows that joined a request in flight or got its kept answer",
            ["domain"],
            registry=self._registry,
        )
        self.refused = Counter(
            "cascade_refused", "requests refused for want of room", ["what"], registry=self._registry
        )
        self.requests = Counter(
            "cascade_requests", "requests by endpoint and status", ["endpoint", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "cascade_verdict_seconds", "seconds from a row's arrival to its verdict", ["domain"],
            buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self.slow = Counter(
            "cascade_slow", "rows that the watchdog named, by domain", ["domain"], registry=self._registry
        )

    def watch(self, waiting: Callable[[], int], kept: Callable[[], int], held: Callable[[], int]) -> None:
        """Where the numbers of now come from: rows in flight, kept answers, bytes held by requests."""
        for name, what, ask in (
            ("cascade_waiting", "rows that wait for their verdict", waiting),
            ("cascade_kept", "answers kept for retries", kept),
            ("cascade_held_bytes", "bytes of requests that are being answered", held),
        ):
            Gauge(name, what, registry=self._registry).set_function(ask)

    def text(self) -> bytes:
        """Prometheus's text format."""
        return generate_latest(self._registry)
