"""Responses on disk: kept as they come, gone on with, never mixed with others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.completions import opened
from cascade_core.errors import RunChanged, RunLocked

PINS = {"model": "small", "seed": 1}
TASKS = [{"id": "a"}, {"id": "b"}]


def add(path, *keys):
    with opened(path, PINS) as completions:
        for key in keys:
            completions.add(key, {"response": f"{key}"})


def test_what_is_there_is_not_missing(tmp_path):
    path = tmp_path / "d" / "test.jsonl"
    add(path, ("b", 0), ("a", 1))
    with opened(path, PINS) as completions:
        assert completions.missing(TASKS, 2) == [("a", 0), ("b", 1)]
        assert completions.found["b", 0] == {"id": "b", "sample": 0, "response": "('b', 0)"}


@given(cut=st.integers(1, 40))
def test_a_file_cut_anywhere_keeps_its_whole_lines_and_is_gone_on_with(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "test.jsonl"
    add(path, ("a", 0), ("b", 0))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with opened(path, PINS) as completions:
        assert completions.missing(TASKS, 1) == [("b", 0)]
        completions.add(("b", 0), {"response": "('b', 0)"})
    assert path.read_bytes() == whole


def test_other_pins_are_refused_with_both_values(tmp_path):
    path = tmp_path / "test.jsonl"
    add(path, ("a", 0))
    with (
        pytest.raises(RunChanged, match="begun with seed 1, now 2; use the same again"),
        opened(path, {**PINS, "seed": 2}),
    ):
        pass


def test_where_nothing_was_kept_other_pins_are_taken(tmp_path):
    path = tmp_path / "test.jsonl"
    add(path)
    with opened(path, {**PINS, "seed": 2}) as completions:
        assert completions.found == {}


@pytest.mark.parametrize("damage", ["", "[]", "{"])
def test_a_missing_or_damaged_lock_is_refused(tmp_path, damage):
    path = tmp_path / "test.jsonl"
    add(path, ("a", 0))
    lock = tmp_path / "test.lock.json"
    lock.write_text(damage) if damage else lock.unlink()
    with pytest.raises(RunChanged, match="missing or damaged"), opened(path, PINS):
        pass


@pytest.mark.parametrize("line", ["no json", "[]", '{"id": 1}', '{"id": "a", "sample": 0, "response": null}', "3"])
def test_a_line_that_is_no_completion_is_refused_and_kept(tmp_path, line):
    path = tmp_path / "test.jsonl"
    add(path, ("a", 0))
    text = path.read_text() + line + "\n"
    path.write_text(text)
    with pytest.raises(RunChanged, match="test.jsonl:2 is no completion"), opened(path, PINS):
        pass
    assert path.read_text() == text


def test_two_commands_cannot_write_one_file(tmp_path):
    path = tmp_path / "test.jsonl"
    with opened(path, PINS), pytest.raises(RunLocked), opened(path, PINS):
        pass
