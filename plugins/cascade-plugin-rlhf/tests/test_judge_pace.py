"""The rate at which a judge is asked, kept by several processes together."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from pathlib import Path

import pytest
from cascade_plugin_rlhf.pace import Pace
from hypothesis import example, given
from hypothesis import strategies as st

from cascade_core.errors import ResourceError

APART = 0.01


def taken(path: str, count: int) -> list[float]:
    """When the turns of one process begin."""
    pace = Pace(60 / APART, path)
    return [pace.take() for _ in range(count)]


def test_turns_of_three_processes_are_all_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "pace")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        begins = sorted(begin for turns in pool.starmap(taken, [(path, 50)] * 3, chunksize=1) for begin in turns)
    assert len(begins) == 150
    assert min(later - earlier for earlier, later in itertools.pairwise(begins)) >= APART - 1e-5


def test_one_that_comes_late_does_not_wait_for_turns_that_nobody_took(tmp_path: Path) -> None:
    for path in ("", str(tmp_path / "pace")):
        pace = Pace(60 / APART, path)
        pace.take()
        time.sleep(3 * APART)
        assert pace.take() <= time.monotonic()


def test_without_a_limit_every_turn_is_now_and_no_file_is_made(tmp_path: Path) -> None:
    pace = Pace(0, str(tmp_path / "pace"))
    assert all(pace.take() <= time.monotonic() for _ in range(100)) and not list(tmp_path.iterdir())


@given(st.binary(max_size=64))
@example(b"inf")
@example(b"nan")
@example(b"9e99")
@example(b"-5")
def test_a_file_that_holds_anything_else_never_stops_the_turns(
    tmp_path_factory: pytest.TempPathFactory, held: bytes
) -> None:
    path = tmp_path_factory.mktemp("pace") / "pace"
    path.write_bytes(held)
    pace = Pace(60 / APART, str(path))
    first = pace.take()
    assert first <= time.monotonic() + 60 and pace.take() >= first + APART - 1e-5


def test_a_file_that_cannot_be_used_is_an_error_and_no_turn(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path, tmp_path / "no" / "pace", tmp_path / "link"):
        with pytest.raises(ResourceError, match="the judge's rate is kept in"):
            Pace(60, str(path)).take()
    assert not (tmp_path / "elsewhere").exists()
