"""Tasks from files: the public format, its variants, and what stops the loading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_if.domain import IFDomain

from cascade_core import Response
from cascade_core.errors import CascadeError, UsageError
from cascade_core.sources import is_held_out

NULLS = {"num_words": None, "relation": None, "keywords": None}


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "key": 1000 + number,
            "prompt": f"Write about topic {number}.",
            "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
            "kwargs": [dict(NULLS), {**NULLS, "relation": "at least", "num_words": 2}],
        }
        for number in range(count)
    ]


def write(path: Path, content: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return str(path)


def test_a_file_in_the_public_format_is_split_by_the_hash_of_its_prompts(tmp_path: Path) -> None:
    domain = IFDomain(data=write(tmp_path / "train.jsonl", rows(200)))
    train, test = list(domain.tasks("train", 0)), list(domain.tasks("test", 0))
    assert len(train) + len(test) == 200
    assert len(test) > 20
    assert all(is_held_out(task.question) for task in test)
    assert not any(is_held_out(task.question) for task in train)
    assert train[0].source == "train"
    assert domain.score(train[0], Response("two words")).value == 1.0
    assert domain.score(train[0], Response("one")).value == 0.0


def test_eval_data_is_the_test_split_and_is_left_out_of_training(tmp_path: Path) -> None:
    data, held_out = write(tmp_path / "a.jsonl", rows(20)), write(tmp_path / "b.jsonl", rows(5))
    domain = IFDomain(data=data, eval_data=held_out)
    assert [task.id for task in domain.tasks("test", 0)] == ["1000", "1001", "1002", "1003", "1004"]
    assert [task.id for task in domain.tasks("train", 0)] == [str(1000 + number) for number in range(5, 20)]


def test_eval_data_goes_with_generated_training_tasks(tmp_path: Path) -> None:
    domain = IFDomain(eval_data=write(tmp_path / "b.jsonl", rows(5)), generator={"level": "tiny"})
    assert len(list(domain.tasks("test", 0))) == 5
    assert next(iter(domain.tasks("train", 0))).source == "generated-tiny"


def test_kwargs_may_be_json_text_and_entries_null(tmp_path: Path) -> None:
    row = rows(1)[0]
    row["kwargs"] = json.dumps([None, {"relation": "at least", "num_words": 2}])
    domain = IFDomain(eval_data=write(tmp_path / "a.jsonl", [row]))
    (task,) = domain.tasks("test", 0)
    assert domain.score(task, Response("two words")).value == 1.0


def test_a_chat_is_taken_up_to_the_answer(tmp_path: Path) -> None:
    row = rows(1)[0]
    del row["prompt"]
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write."}]
    row["messages"] = [*turns, {"role": "assistant", "content": "An answer."}]
    (task,) = IFDomain(eval_data=write(tmp_path / "a.jsonl", [row])).tasks("test", 0)
    assert task.prompt == turns
    assert task.question == "Write."


def test_parquet_holds_the_same_tasks(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows(30)), tmp_path / "a.parquet")
    from_parquet = IFDomain(eval_data=str(tmp_path / "a.parquet")).tasks("test", 0)
    from_jsonl = IFDomain(eval_data=write(tmp_path / "a.jsonl", rows(30))).tasks("test", 0)
    assert list(from_parquet) == list(from_jsonl)


def test_a_data_set_folder_is_read_with_the_library_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "set").mkdir()
    write(tmp_path / "set" / "train.jsonl", rows(3))
    domain = IFDomain(eval_data=f"{tmp_path / 'set'}:train")
    tasks = list(domain.tasks("test", 0))
    assert [task.id for task in tasks] == ["1000", "1001", "1002"]
    assert domain.score(tasks[0], Response("two words")).value == 1.0


def test_a_prompt_that_comes_again_is_left_out_and_a_key_made_distinct(tmp_path: Path) -> None:
    first, second = rows(2)
    second["key"] = first["key"]
    tasks = list(IFDomain(eval_data=write(tmp_path / "a.jsonl", [first, first, second])).tasks("test", 0))
    assert len(tasks) == 2
    assert tasks[0].id == "1000"
    assert tasks[1].id.startswith("1000-")


def test_a_broken_instruction_is_an_error_of_its_task_alone(tmp_path: Path) -> None:
    good, bad = rows(2)
    bad["instruction_id_list"] = ["punctuation:no_comma", "length_constraints:number_wrods"]
    domain = IFDomain(eval_data=write(tmp_path / "a.jsonl", [good, bad]))
    right, wrong = domain.tasks("test", 0)
    assert domain.score(right, Response("two words")).value == 1.0
    with pytest.raises(CascadeError, match="number_words"):
        domain.score(wrong, Response("two words"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": None}, "'prompt'"),
        ({"prompt": "  "}, "'prompt'"),
        ({"prompt": [{"role": "assistant", "content": "x"}]}, "'prompt'"),
        ({"prompt": [{"role": "user"}]}, "'prompt'"),
        ({"kwargs": None}, "'kwargs'"),
        ({"instruction_id_list": None}, "'instruction_id_list'"),
    ],
)
def test_a_row_that_lacks_something_stops_loading_with_file_and_line(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "a.jsonl", [rows(1)[0], {**rows(2)[1], **change}])
    with pytest.raises(UsageError, match=f"a.jsonl:2: .*{said}"):
        list(IFDomain(eval_data=path).tasks("test", 0))


@pytest.mark.parametrize("name", ["none.jsonl", "none.parquet", "./no/such/folder"])
def test_a_source_that_is_not_there_is_named(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=name):
        list(IFDomain(data=name).tasks("train", 0))


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": \n', encoding="utf-8")
    with pytest.raises(CascadeError, match="a.jsonl:1"):
        list(IFDomain(data=str(path)).tasks("train", 0))


def test_bad_rows_are_skipped_where_the_options_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.jsonl"
    lines = [*map(json.dumps, rows(30)), "{broken", json.dumps({"prompt": "no instructions"})]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(CascadeError, match="a.jsonl:31"):
        list(IFDomain(eval_data=str(path)).tasks("test", 0))
    assert len(list(IFDomain(eval_data=str(path), on_bad_row="skip").tasks("test", 0))) == 30
    assert f"{path}: 2 bad of 32 rows skipped, the first: {path}:31" in caplog.text
