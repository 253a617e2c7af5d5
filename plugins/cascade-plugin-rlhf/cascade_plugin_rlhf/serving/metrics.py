"""Numbers of the server for Prometheus, in a registry of its own; `GET /metrics` shows them.

Padding is what `cascade_rm_padded_tokens_total` has over `cascade_rm_tokens_total`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counters; one instance a server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.items = Counter("cascade_rm_items", "items by model and outcome", ["model", "outcome"], registry=registry)
        self.tokens = Counter("cascade_rm_tokens", "tokens of sequences that were run", ["model"], registry=registry)
        self.padded = Counter("cascade_rm_padded_tokens", "the same with their padding", ["model"], registry=registry)
        self.sizes = Histogram(
            "cascade_rm_batch_items", "sequences of a batch", ["model"], buckets=_SIZES, registry=registry
        )
        self.seconds = Histogram(
            "cascade_rm_seconds", "seconds of a request", ["model"], buckets=_SECONDS, registry=registry
        )
        self.refused = Counter("cascade_rm_refused", "requests refused for want of room", ["what"], registry=registry)
        self.requests = Counter(
            "cascade_rm_requests", "requests by endpoint and status", ["endpoint", "status"], registry=registry
        )

    def watch(self, waiting: Callable[[], int], held: Callable[[], int]) -> None:
        """Where the numbers of now come from: items that wait, bytes held by requests."""
        for name, what, ask in (
            ("cascade_rm_waiting", "items that wait for their score", waiting),
            ("cascade_rm_held_bytes", "bytes of requests that are being answered", held),
        ):
            Gauge(name, what, registry=self._registry).set_function(ask)

    def text(self) -> bytes:
        """Prometheus's text format."""
        return generate_latest(self._registry)


class Numbers:
    """What one model counts."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._metrics, self._model = metrics, model

    def batch(self, lengths: Sequence[int]) -> None:
        """One batch was run."""
        self._metrics.tokens.labels(self._model).inc(sum(lengths))
        self._metrics.padded.labels(self._model).inc(max(lengths) * len(lengths))
        self._metrics.sizes.labels(self._model).observe(len(lengths))

    def done(self, seconds: float) -> None:
        """One request was answered."""
        self._metrics.seconds.labels(self._model).observe(seconds)

    def told(self, outcome: str, count: int) -> None:
        """So many items were `scored`, `truncated` (and scored) or `failed`."""
        self._metrics.items.labels(self._model, outcome).inc(count)
