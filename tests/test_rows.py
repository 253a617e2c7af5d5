"""The JSON row: what goes in comes out, what is no row is refused, and files are whole or absent."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_core.domain import Response, Score, Task
from cascade_core.errors import RowError
from cascade_core.rows import (
    dump,
    json_score,
    read,
    row_response,
    row_task,
    score_json,
    task_row,
    write,
    write_json,
    write_text,
)

TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT}), min_size=1
)
TASKS = st.builds(
    Task,
    id=TEXT,
    prompt=TEXT | MESSAGES,
    answer=JSON,
    mode=st.sampled_from(["", "think", "no_think"]),
    source=TEXT,
    meta=st.dictionaries(TEXT, JSON, max_size=2),
)
SCORES = st.builds(
    Score,
    value=st.floats(0, 1),
    reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    note=TEXT,
    metrics=st.dictionaries(TEXT, st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    error=TEXT,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine makes slow examples
@given(TASKS)
def test_a_task_survives_as_a_row(task):
    row = json.loads(dump(task_row("d", task)))
    assert row["domain"] == "d"
    assert row_task(row) == task


@given(SCORES)
def test_a_score_survives_as_json(score):
    assert json_score(json.loads(dump(score_json(score)))) == score


def test_what_a_score_does_not_say_is_not_written():
    assert score_json(Score(1.0)) == {"value": 1.0}
    assert score_json(Score(1.0, reward=0.0)) == {"value": 1.0, "reward": 0.0}


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_a_line_is_ascii_and_one_line_whatever_it_holds(row):
    line = dump(row)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line) == row


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, b"x", object()])
def test_what_json_has_not_is_not_written(bad):
    with pytest.raises((ValueError, TypeError)):
        dump({"a": bad})


def test_a_response_has_its_prefill_mode_and_cut():
    row = {"id": "t", "response": "r", "prefill": "<think>", "mode": "think", "truncated": True}
    assert row_response(row) == Response("r", "<think>", "think", True)
    assert row_response({"response": "r"}) == Response("r")


@pytest.mark.parametrize("response", [None, 5, ["r"], {"text": "r"}])
def test_a_row_without_a_text_response_is_refused(response):
    with pytest.raises(RowError, match="needs a string 'response'"):
        row_response({"id": "t", "response": response})


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"id": "t"},
        {"prompt": "p"},
        {"id": 5, "prompt": "p"},
        {"id": "t", "prompt": None},
        {"id": "t", "prompt": {"role": "user"}},
        {"id": "t", "prompt": ["text"]},
        {"id": "t", "prompt": [{"role": "user"}]},
        {"id": "t", "prompt": [{"role": "user", "content": 5}]},
        {"id": "t", "prompt": "p", "meta": [1]},
        {"id": "t", "prompt": "p", "mode": 1},
        {"id": "t", "prompt": "p", "source": ["x"]},
    ],
)
def test_a_row_that_is_no_task_is_refused(row):
    with pytest.raises(RowError, match="row"):
        row_task(row)


def test_absent_and_null_fields_of_a_task_are_empty():
    for row in ({}, dict.fromkeys(["mode", "source", "meta", "answer"])):
        assert row_task({"id": "t", "prompt": "p", **row}) == Task("t", "p")


@given(st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=4))
def test_a_file_of_rows_is_read_as_it_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write(path, rows)
    assert list(read(path)) == rows


def test_empty_lines_are_no_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text('\n{"a": 1}\n\n   \n{"a": 2}')
    assert list(read(tmp_path / "rows.jsonl")) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("line", ["{", "[1]", "1", "null", '{"a": 1} {"b": 2}', "[" * 200_000])
def test_a_line_that_is_no_object_is_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"a": 1}}\n{line}\n')
    rows = read(path)
    assert next(rows) == {"a": 1}
    with pytest.raises(RowError, match=r"rows\.jsonl:2: not a JSON object"):
        next(rows)


def test_reading_streams(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\nbroken\n')
    assert next(iter(read(path))) == {"a": 1}


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    write(path, [{"a": 1}])
    with pytest.raises(ValueError, match="Out of range"):
        write(path, [{"a": 2}, {"a": float("nan")}])
    assert list(read(path)) == [{"a": 1}]


def test_a_file_is_never_seen_half_written(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")

    def power_cut(descriptor):
        raise OSError("power cut")

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(OSError, match="power cut"):
        write_text(path, "new")
    assert path.read_text() == "old"


def test_json_files_are_ascii_and_end_with_a_newline(tmp_path):
    write_json(tmp_path / "x.json", {"ä": "\ud800"})
    text = (tmp_path / "x.json").read_text()
    assert text.isascii()
    assert text.endswith("}\n")
    with pytest.raises(ValueError, match="Out of range"):
        write_json(tmp_path / "y.json", float("nan"))
    assert not (tmp_path / "y.json").exists()
