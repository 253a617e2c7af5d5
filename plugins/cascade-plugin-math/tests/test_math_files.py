"""Files and hub data sets: field names, splits, ids, and rows that are broken."""

import json

import pyarrow
import pyarrow.parquet
import pytest
from cascade_plugin_math.domain import MathDomain

from cascade_core import Response
from cascade_core.errors import RowError, UsageError

ROWS = [{"problem": f"What is {n}+{n}?", "answer": str(2 * n), "id": n} for n in range(40)]


@pytest.fixture
def write(tmp_path):
    def make(rows, name="data.jsonl"):
        path = tmp_path / name
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return make


def both(domain):
    return list(domain.tasks("train", 0)), list(domain.tasks("test", 0))


@pytest.mark.parametrize("name", ["data.jsonl", "data.parquet"])
def test_a_file_is_split_by_the_text_of_its_problems(write, name):
    train, test = both(MathDomain(data=write(ROWS, name)))
    assert len(train) + len(test) == 40 and 2 <= len(test) <= 16
    assert {task.id for task in train}.isdisjoint(task.id for task in test)
    assert [task.id for task in test] == [
        task.id for task in MathDomain(data=write(ROWS[::-1], name)).tasks("test", 9)
    ][::-1]


def test_a_stored_hub_data_set_loads_through_datasets(tmp_path):
    import datasets

    folder = tmp_path / "hub"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "test.jsonl").write_text(json.dumps({"problem": "What is 0.5+0.5?", "answer": "1", "id": 99}) + "\n")
    datasets.disable_progress_bars()
    train, test = both(MathDomain(data=str(folder), eval_data=f"{folder}:test"))
    assert (len(train), [task.id for task in test]) == (40, ["99"])


def test_a_hub_data_set_that_does_not_exist_is_a_clear_error(tmp_path):
    with pytest.raises(UsageError, match="cannot load"):
        list(MathDomain(data=str(tmp_path / "nowhere")).tasks("train", 0))


def test_eval_data_is_held_out_of_training(write):
    domain = MathDomain(data=write(ROWS), eval_data=write(ROWS[:5], "eval.jsonl"))
    train, test = both(domain)
    assert ([task.id for task in test], len(train)) == (["0", "1", "2", "3", "4"], 35)


def test_several_benchmarks_have_names_and_splits_of_their_own(write):
    domain = MathDomain(
        data=write(ROWS), eval_data={"low": write(ROWS[:5], "a.jsonl"), "high": write(ROWS[30:], "b.jsonl")}
    )
    assert [(b.name, b.split) for b in domain.benchmarks()] == [("low", "low"), ("high", "high")]
    assert len(list(domain.tasks("high", 0))) == 10
    assert len(list(domain.tasks("test", 0))) == 15
    assert len(list(domain.tasks("train", 0))) == 25


def test_field_names_are_found_or_configured(write):
    rows = [{"q": "What is 1+1?", "gold": "2", "nr": "a"}]
    domain = MathDomain(eval_data=write(rows), prompt_field="q", answer_field="gold", id_field="nr")
    (task,) = domain.tasks("test", 0)
    assert (task.id, task.meta["problem"], task.answer) == ("a", "What is 1+1?", "2")
    with pytest.raises(UsageError, match=r"data\.jsonl:1.*'q'"):
        list(MathDomain(data=write(rows)).tasks("train", 0))
    with pytest.raises(UsageError, match="'question'"):
        list(MathDomain(data=write(rows), prompt_field="question").tasks("train", 0))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("First 2+3.\n#### 5", "5"),
        ("Thus the sum is $\\boxed{5}$.", "5"),
        (["5"], "5"),
        (5, "5"),
        (0.5, "\\frac12"),
        ("5", "5"),
    ],
)
def test_the_usual_ways_to_store_an_answer_are_understood(write, answer, right):
    domain = MathDomain(eval_data=write([{"question": "2+3?", "answer": answer}]))
    (task,) = domain.tasks("test", 0)
    assert domain.score(task, Response(f"\\boxed{{{right}}}")).value == 1.0
    assert domain.score(task, Response(domain.reference(task))).value == 1.0
    assert domain.score(task, Response("\\boxed{6}")).value == 0.0


def test_a_chat_keeps_its_turns_and_the_question_is_the_users_last(write):
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+3?"},
        {"role": "assistant", "content": "5"},
    ]
    (task,) = MathDomain(eval_data=write([{"messages": chat, "answer": "5"}]), template="{problem} Box it.").tasks(
        "test", 0
    )
    assert [turn["role"] for turn in task.prompt] == ["system", "user"]
    assert task.prompt[-1]["content"] == "2+3? Box it." and task.meta["problem"] == "2+3?"


def test_a_row_may_carry_its_policy_and_source(write):
    row = {"problem": "How long?", "answer": "9.81", "policy": {"rel_tol": 0.01}, "source": "physics"}
    domain = MathDomain(eval_data=write([row]))
    (task,) = domain.tasks("test", 0)
    assert task.source == "physics"
    assert domain.score(task, Response("\\boxed{9.8}")).value == 1.0


def test_worked_solutions_become_demonstrations(write):
    rows = [{**row, "solution_text": f"Doubling gives \\boxed{{{row['answer']}}}."} for row in ROWS]
    domain = MathDomain(data=write(rows), response_field="solution_text")
    for demonstration in domain.demonstrations("train", 0):
        assert demonstration.response.startswith("Doubling")
        assert domain.score(demonstration.task, Response(demonstration.response)).value == 1.0


def test_a_problem_that_comes_again_is_left_out_and_ids_stay_unique(write):
    rows = [*ROWS[:10], *ROWS[:10], {"problem": "What is 7*7?", "answer": "49", "id": 3}]
    train, test = both(MathDomain(data=write(rows)))
    ids = [task.id for task in train + test]
    assert len(ids) == len(set(ids)) == 11


def test_rows_without_an_id_are_named_by_their_text(write):
    rows = [{"problem": row["problem"], "answer": row["answer"]} for row in ROWS]
    one, two = (both(MathDomain(data=write(given))) for given in (rows, rows[::-1]))
    assert {task.id for task in one[0]} == {task.id for task in two[0]}


@pytest.mark.parametrize(
    "row",
    [{"problem": "", "answer": "5"}, {"problem": 7, "answer": "5"}, {"problem": [], "answer": "5"}, {"problem": "x"}],
)
def test_a_row_without_a_problem_or_an_answer_names_its_line(write, row):
    with pytest.raises(UsageError, match=r"data\.jsonl:41"):
        list(MathDomain(data=write([*ROWS, row])).tasks("train", 0))


def test_a_line_that_is_no_json_names_its_place(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("{}\n[")
    with pytest.raises((RowError, UsageError), match=r"data\.jsonl:1"):
        list(MathDomain(data=str(path)).tasks("train", 0))


@pytest.mark.parametrize("name", ["missing.jsonl", "missing.parquet"])
def test_a_missing_file_is_a_clear_error(tmp_path, name):
    with pytest.raises(UsageError, match="no file"):
        list(MathDomain(data=str(tmp_path / name)).tasks("train", 0))


def test_a_domain_that_can_only_be_evaluated_says_so(write):
    with pytest.raises(UsageError, match="eval_data"):
        list(MathDomain(eval_data=write(ROWS)).tasks("train", 0))


def test_bad_rows_are_skipped_where_the_options_say_so(tmp_path, caplog):
    path = tmp_path / "data.jsonl"
    lines = [*map(json.dumps, ROWS[:20]), "{broken", '{"problem": "no answer"}', *map(json.dumps, ROWS[20:])]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RowError, match=r"data\.jsonl:21"):
        both(MathDomain(data=str(path)))
    train, test = both(MathDomain(data=str(path), on_bad_row="skip"))
    assert len(train) + len(test) == 40
    assert f"{path}: 2 bad of 42 rows skipped, the first: {path}:21" in caplog.text
