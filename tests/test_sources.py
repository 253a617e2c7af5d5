"""Sources of tasks: JSONL, Parquet, data sets; the split that depends on nothing but the text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import RowError, UsageError
from cascade_core.sources import digest, is_held_out, read

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


def test_a_data_set_that_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot load data set"):
        list(read(str(tmp_path / "nowhere" / "at" / "all")))


def test_one_text_in_five_is_held_out():
    assert 900 < sum(is_held_out(f"text {i}") for i in range(5000)) < 1100


@given(st.text(st.characters()))
def test_any_text_has_a_split_and_a_name(text):
    assert is_held_out(text) in (True, False)
    assert len(digest(text)) == 16


def test_the_split_and_the_names_are_the_same_in_every_release():
    assert (digest("2+3="), is_held_out("2+3=")) == ("de6e11e327b7ff00", True)
