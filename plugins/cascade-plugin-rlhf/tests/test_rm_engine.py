"""The queue of one model: one verdict for each item whatever a batch does, whole requests, bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from cascade_plugin_rlhf.serving.engine import Engine, Full, Verdict
from cascade_plugin_rlhf.serving.metrics import Metrics, Numbers
from cascade_plugin_rlhf.serving.model import Encoded
from hypothesis import given, settings
from hypothesis import strategies as st

POISON = 13


def fake(batch: Sequence[Encoded]) -> list[float]:
    """A score is the sum of the tokens; one token breaks the batch that holds it."""
    if any(POISON in one.ids for one in batch):
        raise RuntimeError("device-side\nassert")
    return [math.nan if sum(one.ids) == 0 else float(sum(one.ids)) for one in batch]


@contextmanager
def engine(most_tokens: int = 50, most_waiting: int = 10_000, run=fake) -> Iterator[Engine]:
    made = Engine(run, most_tokens, most_waiting, Numbers(Metrics(), "m"))
    try:
        yield made
    finally:
        made.close()


@given(st.lists(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=20), max_size=12), max_size=8))
@settings(max_examples=50, deadline=None)
def test_each_item_gets_its_own_verdict(requests: list[list[list[int]]]) -> None:
    with engine() as made:
        futures = []
        for request in requests:
            made.reserve(len(request))
            futures.append(made.submit([Encoded(ids, None, len(ids)) for ids in request]))
        for request, future in zip(requests, futures, strict=True):
            found = future.result(60)
            assert len(found) == len(request)
            for ids, verdict in zip(request, found, strict=True):
                if POISON in ids:
                    assert verdict.score is None and "RuntimeError: device-side assert" in verdict.error
                elif sum(ids) == 0:
                    assert verdict == Verdict(None, len(ids), False, "the model's score is nan")
                else:
                    assert verdict == Verdict(float(sum(ids)), len(ids))
        assert made.waiting == 0


def test_a_request_is_taken_whole_or_not_at_all() -> None:
    began, goes_on = threading.Event(), threading.Event()

    def slow(batch: Sequence[Encoded]) -> list[float]:
        began.set()
        goes_on.wait(60)
        return fake(batch)

    with engine(most_waiting=3, run=slow) as made:
        made.reserve(2)
        future = made.submit([Encoded([1]), Encoded([2])])
        assert began.wait(60)
        with pytest.raises(Full):
            made.reserve(2)
        made.reserve(1)
        made.release(1)
        goes_on.set()
        assert [one.score for one in future.result(60)] == [1.0, 2.0]
        assert made.waiting == 0
        made.reserve(3)


def test_what_came_first_is_run_first() -> None:
    order: list[int] = []

    def noting(batch: Sequence[Encoded]) -> list[float]:
        order.extend(one.ids[0] for one in batch)
        return [0.5] * len(batch)

    with engine(most_tokens=10, run=noting) as made:
        made.reserve(101)
        long = made.submit([Encoded([1] * 9)])
        futures = [made.submit([Encoded([2])]) for _ in range(100)]
        for future in (long, *futures):
            future.result(60)
    assert order.index(1) < 90  # short ones that came later do not keep a long one waiting for ever


def test_what_is_closed_takes_nothing() -> None:
    with engine() as made:
        pass
    with pytest.raises(Full):
        made.reserve(1)
