"""Sources of tasks: JSONL, Parquet, data sets; the split that depends on nothing but the text."""

import json
import logging
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import RowError, UsageError
from cascade_core.sources import digest, is_held_out, load, read

ROWS = [{"prompt": "a", "answer": "1"}, {"prompt": "b", "answer": None}]


def test_rows_of_jsonl_come_in_order(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert list(read(str(path))) == ROWS


def test_rows_of_parquet_come_in_order(tmp_path):
    import pyarrow
    import pyarrow.parquet as parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    assert list(read(str(path))) == ROWS


def test_a_folder_is_loaded_as_a_data_set_with_its_split(tmp_path):
    (tmp_path / "test.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    assert [row["prompt"] for row in read(f"{tmp_path}:test")] == ["a"]


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.ndjson", "gone.parquet"])
def test_a_missing_file_is_named(name, tmp_path):
    with pytest.raises(UsageError, match=f"no file .*{name}"):
        read(str(tmp_path / name))


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n[1]\n')
    with pytest.raises(RowError, match=r"rows\.jsonl:2"):
        list(read(str(path)))


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    (tmp_path / "rows.parquet").write_text("no")
    with pytest.raises(UsageError, match=r"rows\.parquet cannot be read as Parquet: "):
        list(read(str(tmp_path / "rows.parquet")))


def test_a_data_set_that_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(
        UsageError, match="cannot load data set .*nothing of that name is here, and the hub gives none: "
    ):
        list(read(str(tmp_path / "nowhere" / "at" / "all")))


def test_one_text_in_five_is_held_out():
    assert 900 < sum(is_held_out(f"text {i}") for i in range(5000)) < 1100


@given(st.text(st.characters()))
def test_any_text_has_a_split_and_a_name(text):
    assert is_held_out(text) in (True, False)
    assert len(digest(text)) == 16


def test_the_split_and_the_names_are_the_same_in_every_release():
    assert (digest("2+3="), is_held_out("2+3=")) == ("de6e11e327b7ff00", True)


BROKEN = b'{"n": 0}\n\n{"n": \n[1]\n\xff\n{"m": 1}\n{"n": 6}\n'


def number(row, where):
    if "n" not in row:
        raise UsageError(f"{where}: no n")
    return row["n"], where


@pytest.fixture
def broken(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(BROKEN)
    return str(path)


def test_a_bad_row_stops_the_loading_with_its_line(broken):
    found = load(broken, number)
    assert next(found) == (0, f"{broken}:1")
    with pytest.raises(RowError, match=r"rows\.jsonl:3: not a JSON object"):
        next(found)


def test_bad_rows_are_skipped_counted_and_the_first_is_named(broken, caplog):
    assert list(load(broken, number, "skip")) == [(0, f"{broken}:1"), (6, f"{broken}:7")]
    assert list(load(broken, number, "skip"))
    (told,) = caplog.messages
    assert told.startswith(f"{broken}: 4 bad of 6 rows skipped, the first: {broken}:3: not a JSON object")


def test_bad_rows_are_told_even_if_not_all_is_read(broken, caplog, tmp_path):
    path = tmp_path / "more.jsonl"
    path.write_bytes(BROKEN * 3)
    assert len(list(islice(load(str(path), number, "skip"), 3))) == 3
    assert "4 bad of 7 rows skipped" in caplog.text


def test_a_source_of_bad_rows_alone_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("[1]\n{}\n")
    with pytest.raises(
        UsageError, match=r"no row of .*rows\.jsonl can be used, 2 are bad, the first: .*:1: not a JSON"
    ):
        list(load(str(path), number, "skip"))


def test_a_good_source_is_loaded_without_a_word(tmp_path, caplog):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n')
    assert list(load(str(path), number, "skip")) == list(load(str(path), number)) == [(1, f"{path}:1")]
    assert not caplog.messages


def test_a_mistake_of_the_program_is_never_skipped(broken):
    with pytest.raises(KeyError):
        list(load(broken, lambda row, where: row["n"], "skip"))


def test_only_fail_and_skip_are_known(broken):
    with pytest.raises(UsageError, match="'on_bad_row' must be 'fail' or 'skip', found 'ignore'"):
        list(load(broken, number, "ignore"))
