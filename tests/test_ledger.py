"""Sums per task: the same as in a dictionary, for any number of tasks, in bounded memory."""

import errno
import math
import sqlite3
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import ledger
from cascade_core.ledger import Ledger

PLACES = st.sampled_from([("math", ""), ("math", "web"), ("if", "")])
SAMPLES = st.lists(st.tuples(PLACES, st.text(max_size=3), st.none() | st.sampled_from([0.0, 0.25, 1.0])), max_size=60)


def plainly(samples):
    """What the ledger must find, the short way."""
    drawn, values = {}, {}
    for place, task, value in samples:
        drawn.setdefault(place, set()).add(task)
        own = values.setdefault(place, {})
        if value is not None:
            own.setdefault(task, []).append(value)
    return {
        place: (len(tasks), sorted(math.fsum(v) / len(v) for v in values[place].values()))
        for place, tasks in drawn.items()
    }


def kept(samples):
    book = Ledger()
    for sample in samples:
        book.add(*sample)
    return {place: (tasks, sorted(means)) for place, (tasks, means) in book.means().items()}


@given(SAMPLES)
def test_a_ledger_finds_what_a_dictionary_finds(samples):
    assert kept(samples) == plainly(samples)


@given(SAMPLES, st.integers(1, 5))
def test_tasks_that_went_to_the_database_are_found_with_those_that_did_not(samples, near):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "_NEAR", near)
        assert kept(samples) == plainly(samples)


def test_names_that_no_database_takes_are_tasks_too():
    names = ["\ud800", "a\x00b", "a\x00c", "", "x" * 2**20, "x" * 2**20 + "y"]
    tasks, means = kept([(("d", ""), name, float(place % 2)) for place, name in enumerate(names)])["d", ""]
    assert (tasks, means) == (6, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])


def test_more_can_be_added_after_the_means_were_taken():
    book = Ledger()
    book.add(("d", ""), "a", 1.0)
    assert list(book.means()["d", ""][1]) == [1.0]
    book.add(("d", ""), "a", 0.0)
    tasks, means = book.means()["d", ""]
    assert (tasks, list(means), list(means), len(means), 0.5 in means) == (1, [0.5], [0.5], 1, True)


def test_memory_does_not_grow_with_the_number_of_tasks():
    book = Ledger()
    tracemalloc.start()
    try:
        for number in range(40_000):
            book.add(("d", ""), f"task {number}", 1.0)
        ((tasks, means),) = book.means().values()
        assert (tasks, math.fsum(means)) == (40_000, 40_000.0)
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**20  # a dictionary of them takes nine
    finally:
        tracemalloc.stop()


def test_no_room_for_temporary_data_is_an_error_of_the_disk(monkeypatch):
    def small():
        far = whole()
        far.execute("PRAGMA max_page_count = 4")
        return far

    whole = ledger._database
    monkeypatch.setattr(ledger, "_database", small)
    book = Ledger()
    with pytest.raises(OSError, match="full") as caught:
        for number in range(20_000):
            book.add(("d", ""), f"task {number}", 1.0)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "temporary data in TMPDIR")
    assert isinstance(caught.value.__cause__, sqlite3.Error)
