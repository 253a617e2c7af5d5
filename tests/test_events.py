"""The log of a run: in order, whole lines, and taken back when work is done again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.events import Events


@pytest.fixture
def events(tmp_path):
    return Events(tmp_path / "events.jsonl")


def test_events_come_back_in_order_with_their_fields(events):
    events.emit("stage_start", "01-if", index=1)
    events.emit("step", "01-if", 0, reward_mean=0.5, kl=None)
    start, step = events.read()
    assert (start["kind"], start["stage"], start["index"]) == ("stage_start", "01-if", 1)
    assert (step["step"], step["reward_mean"]) == (0, 0.5)
    assert "kl" not in step
    assert "step" not in start


def test_there_is_a_clock_on_every_event(events):
    events.emit("run_start", "")
    events.emit("run_end", "")
    first, last = (event["time"] for event in events.read())
    assert 1e9 < first <= last


def test_no_log_is_an_empty_one(events):
    assert events.read() == []
    events.rewind(lambda event: True)
    assert not events.path.exists()


def test_what_json_has_not_is_refused_and_leaves_no_line(events):
    events.emit("run_start", "")
    with pytest.raises(ValueError, match="Out of range"):
        events.emit("step", "01-if", 0, reward_mean=float("nan"))
    assert len(events.path.read_text().splitlines()) == 1


@given(cut=st.integers(1, 60))
def test_a_last_line_that_was_cut_short_is_left_out(tmp_path_factory, cut):
    events = Events(tmp_path_factory.mktemp("events") / "events.jsonl")
    events.emit("run_start", "", name="a")
    events.emit("step", "01-if", 3, note="x" * 60)
    whole = events.path.read_bytes()
    events.path.write_bytes(whole[:-cut])
    kinds = [event["kind"] for event in events.read()]
    assert kinds == (["run_start", "step"] if cut == 1 else ["run_start"])


def test_rewinding_keeps_what_will_not_be_done_again(events):
    for step in range(5):
        events.emit("step", "01-if", step)
    before = events.path.read_text().splitlines()[:3]
    events.rewind(lambda event: event["step"] < 3)
    assert events.path.read_text().splitlines() == before


def test_rewinding_removes_a_torn_line_so_that_the_next_event_is_whole(events):
    events.emit("step", "01-if", 0)
    with events.path.open("a") as log:
        log.write('{"kind": "st')
    events.rewind(lambda event: True)
    events.emit("step", "01-if", 1)
    assert [event["step"] for event in events.read()] == [0, 1]


def test_a_line_holds_any_text(events):
    events.emit("note", "", text="\ud800\u2028\n\x00")
    assert len(events.path.read_text().splitlines()) == 1
    assert events.read()[0]["text"] == "\ud800\u2028\n\x00"
    assert json.loads(events.path.read_text())
