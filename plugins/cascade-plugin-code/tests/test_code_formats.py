"""Rows as data sets publish them: what becomes of each field, what is refused, what is left out, and that nothing is unpickled."""

import base64
import json
import logging
import pickle
import pickletools
import zlib

import pytest
from cascade_plugin_code import exam, files, formats
from cascade_plugin_code.domain import CodeDomain
from cascade_plugin_code.formats.livecodebench import as_published, pickled_text, unpacked
from cascade_plugin_code.judging import verdicts
from cascade_plugin_code.problems import Omitted, Problem
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import TaskError, UsageError

ADD = "print(sum(map(int, input().split())))"
FIRST = "class Solution:\n    def first(self, items: List[int]) -> List[int]:\n        return items[:1]"
HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": 'import math\n\n\ndef half(x):\n    return x / 2\n\n\ndef floored(x):\n    """Half of x, floored."""\n',
    "entry_point": "floored",
    "canonical_solution": "    return math.floor(half(x))\n",
    "test": "\n\ndef check(candidate):\n    assert candidate(5) == math.floor(half(5))\n",
}
APPS = {
    "problem_id": 7,
    "question": "Add two numbers.",
    "input_output": json.dumps({"inputs": ["2 3\n", "1 1\n"], "outputs": ["5\n", "2\n"]}),
    "solutions": json.dumps([ADD, "print(5)"]),
    "starter_code": "",
    "difficulty": "interview",
}
CALLS = {
    "question": "The first item of a list, as a list.",
    "input_output": json.dumps({"fn_name": "first", "inputs": [[[3, 4]], [[9]]], "outputs": [[[3]], [[9]]]}),
    "solutions": json.dumps([FIRST]),
    "starter_code": "class Solution:\n    def first(self, items: List[int]) -> List[int]:\n        ",
}
STDIN_CASES = [{"input": "2 3", "output": "5", "testtype": "stdin"}]
FUNCTION_CASES = [{"input": "[3, 4]\n1", "output": "[3]", "testtype": "functional"}]
LIVE = {
    "question_id": "abc1",
    "question_content": "Add two numbers.",
    "platform": "atcoder",
    "contest_date": "2024-01-01T00:00:00",
    "starter_code": "",
    "metadata": "{}",
    "public_test_cases": json.dumps(STDIN_CASES),
    "private_test_cases": as_published([{"input": "1 1", "output": "2", "testtype": "stdin"}]),
}
LIVE_CALLS = {
    **LIVE,
    "question_content": "The first so many items.",
    "starter_code": "class Solution:\n    def head(self, items, count):\n        ",
    "metadata": json.dumps({"func_name": "head"}),
    "public_test_cases": json.dumps(FUNCTION_CASES),
    "private_test_cases": json.dumps(FUNCTION_CASES),
}
DEEP = {"problem": "Add two numbers.", "tests": json.dumps([{"type": "stdin_stdout", "input": "2 3", "output": "5"}])}
ROWS = {
    "apps": APPS,
    "apps, calls": CALLS,
    "livecodebench": LIVE,
    "livecodebench, calls": LIVE_CALLS,
    "humaneval": HUMANEVAL,
    "deepcoder": DEEP,
}
SOLUTIONS = {
    "livecodebench": ADD,
    "livecodebench, calls": "class Solution:\n    def head(self, items, count): return items[:count]",
    "deepcoder": ADD,
}


def read(row, name="auto"):
    return formats.read(row, "data.jsonl:1", "data", name)


def written(folder, *rows):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_each_format_is_recognised_and_its_solution_passes_in_the_sandbox(docker, name):
    found = read(ROWS[name])
    assert isinstance(found, Problem) and found == read(ROWS[name], name.partition(",")[0])
    source = found.solution or SOLUTIONS[name]
    checked = exam.read(found.answer)
    assert [verdict.note for verdict in verdicts(docker, checked, source)] == [""] * checked.count
    assert not all(verdict.passed for verdict in verdicts(docker, checked, "print(0)"))


def test_apps_with_texts_is_of_kind_stdin_and_keeps_its_solutions():
    found = read(APPS)
    assert found.answer["tests"] == [{"stdin": "2 3\n", "stdout": "5\n"}, {"stdin": "1 1\n", "stdout": "2\n"}]
    assert (found.id, found.solution, found.others, found.source) == ("7", ADD, ("print(5)",), "data")
    assert found.meta == {"difficulty": "interview"} and found.text == "Add two numbers."


def test_apps_with_a_function_is_called_with_values_without_the_wrapping_of_its_outputs():
    found = read(CALLS)
    assert found.answer["entry_point"] == "Solution.first"
    assert [test["expected"] for test in found.answer["tests"]] == [[3], [9]]
    assert [test["args"] for test in found.answer["tests"]] == [[[3, 4]], [[9]]]
    assert found.text.endswith("```python\n" + CALLS["starter_code"].strip() + "\n```")


def test_outputs_that_are_not_all_lists_of_one_are_no_wrapping():
    tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], []]}
    assert [test["expected"] for test in read({**CALLS, "input_output": tests}).answer["tests"]] == [[1], []]


def test_an_object_with_integer_keys_is_an_argument_with_integer_keys_and_one_like_a_mark_is_no_mark():
    tests = {"fn_name": "f", "inputs": [[{"1": 2}], [{"__int__": "5"}]], "outputs": [[1], [{"__set__": [1]}]]}
    one, other = exam.read(read({**CALLS, "input_output": tests}).answer).calls
    assert b"1" in one.request and other.expected == {"__set__": [1]} and "{1: 2}" in one.written
    assert "{'__int__': '5'}" in other.written


def test_lines_as_a_list_are_one_text():
    tests = {"inputs": [["1", "2"]], "outputs": [["3", "4"]]}
    assert read({**APPS, "input_output": tests}).answer["tests"] == [{"stdin": "1\n2", "stdout": "3\n4"}]


@pytest.mark.parametrize(
    ("output", "checker"), [("0.50", "float"), ("5", "tokens"), ("1.2.3", "tokens"), ("v1.0", "tokens")]
)
def test_decimal_outputs_are_compared_within_a_tolerance_and_others_word_by_word(output, checker):
    tests = {"inputs": ["x"], "outputs": [output]}
    assert read({**APPS, "input_output": tests}).answer["checker"]["type"] == checker


def test_livecodebench_is_tested_by_public_and_private_cases_and_keeps_its_date():
    found = read(LIVE)
    assert [test["stdout"] for test in found.answer["tests"]] == ["5", "2"]
    assert found.meta == {"platform": "atcoder", "contest_date": "2024-01-01T00:00:00"} and found.solution == ""
    called = read(LIVE_CALLS)
    assert called.answer["entry_point"] == "Solution.head"
    assert called.answer["tests"][0] == {"args": [[3, 4], 1], "expected": [3]}


def test_humaneval_gives_tests_and_answers_the_code_before_the_function():
    found = read(HUMANEVAL)
    before = "import math\n\n\ndef half(x):\n    return x / 2"
    assert found.answer["preamble"] == before and found.answer["test_code"].startswith(before)
    assert found.solution == HUMANEVAL["prompt"] + HUMANEVAL["canonical_solution"]
    assert (found.id, found.answer["entry_point"]) == ("HumanEval/900", "floored")


@pytest.mark.parametrize(
    "tests",
    [
        [{"input": "2 3", "output": "5", "testtype": "stdin", "metadata": {"func_name": None}}],
        {"inputs": ["2 3"], "outputs": ["5"]},
        json.dumps({"inputs": ["2 3"], "outputs": ["5"]}),
    ],
)
@pytest.mark.parametrize("field", ["tests", "ground_truth", "reward_model"])
def test_deepcoder_reads_its_tests_wherever_and_however_they_are_written(tests, field):
    row = {"problem": "Add.", field: {"ground_truth": tests} if field == "reward_model" else tests}
    assert read(row).answer["tests"] == [{"stdin": "2 3", "stdout": "5"}]


def test_deepcoder_reads_calls_and_chats():
    cases = [{"type": "function_call", "fn_name": "f", "input": [1, 2], "output": [3]}]
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Add."}]
    found = read({"prompt": chat, "ground_truth": json.dumps(cases), "data_source": "taco"})
    assert found.answer["tests"] == [{"args": [1, 2], "expected": 3}]
    assert [turn["role"] for turn in found.turns] == ["system", "user"] and found.source == "taco"


@pytest.mark.parametrize(
    "row",
    [
        {},
        {**APPS, "question": " "},
        {**APPS, "input_output": ""},
        {**APPS, "input_output": "{"},
        {**APPS, "input_output": "[" * 100_000},
        {**APPS, "input_output": {"inputs": [], "outputs": []}},
        {**APPS, "input_output": {"inputs": ["1"], "outputs": []}},
        {**APPS, "input_output": {"inputs": [1], "outputs": ["1"]}},
        {**CALLS, "input_output": {"fn_name": "f", "inputs": ["x = 3"], "outputs": [3]}},
        {**CALLS, "input_output": {"fn_name": "not a name", "inputs": [[1]], "outputs": [3]}},
        {**CALLS, "input_output": {"fn_name": 5, "inputs": [[1]], "outputs": [3]}},
        {**LIVE, "public_test_cases": "[]", "private_test_cases": ""},
        {**LIVE, "public_test_cases": json.dumps(STDIN_CASES + FUNCTION_CASES)},
        {**LIVE, "public_test_cases": json.dumps([{"input": "1"}])},
        {**LIVE_CALLS, "metadata": "{}"},
        {**LIVE_CALLS, "metadata": "{"},
        {**LIVE, "private_test_cases": "not base64!"},
        {**LIVE, "private_test_cases": base64.b64encode(b"not zlib").decode()},
        {**HUMANEVAL, "prompt": "def f(:\n"},
        {**HUMANEVAL, "entry_point": "other"},
        {**HUMANEVAL, "test": " "},
        {**DEEP, "tests": "5"},
    ],
)
def test_a_broken_row_stops_the_loading_with_its_place(row):
    with pytest.raises(UsageError, match=r"data\.jsonl:1: "):
        read(row)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"question": "This is an interactive problem. Guess."}, "interactive"),
        ({"tags": ["Interactive"]}, "interactive"),
        ({"raw_tags": "['*special', 'dp']"}, "many right answers"),
        ({"interaction_format": "print, then read"}, "interactive"),
        ({"generated_checker": "import sys"}, "many right answers"),
        ({"question": "If there are multiple answers, print any."}, "many right answers"),
        ({"question": "Print any of them."}, "many right answers"),
        ({"question": "Any valid answer is accepted."}, "many right answers"),
    ],
)
def test_a_problem_that_its_tests_cannot_judge_is_left_out(more, reason):
    found = read({**APPS, **more})
    assert isinstance(found, Omitted) and reason in found.reason


@pytest.mark.parametrize(
    "text", ["Print any", "Remove any spaces and print the rest.", "If there are many, print their sum."]
)
def test_a_problem_with_one_right_answer_is_not_left_out(text):
    assert isinstance(read({**APPS, "question": text}), Problem)


def test_a_special_judge_in_our_own_form_makes_a_problem_with_many_answers_one_that_can_be_judged():
    judge = {"type": "program", "source": "import sys; sys.exit(0)"}
    found = read({**APPS, "question": "Print any of them.", "checker": judge})
    assert isinstance(found, Problem) and found.answer["checker"] == judge


def test_problems_left_out_are_counted_in_the_log(tmp_path, caplog):
    rows = [APPS, {**APPS, "question": "Print any of them."}, {**APPS, "question": "x", "interactive": True}]
    with caplog.at_level(logging.WARNING):
        assert len(list(files.problems([written(tmp_path, *rows)]))) == 1
    assert "2 of 3 problems left out: 1 interactive, 1 many right answers" in caplog.text
    with pytest.raises(UsageError, match="no problem of .* can be judged: 1 interactive"):
        list(files.problems([written(tmp_path, rows[2])]))


def test_bad_rows_are_skipped_where_that_is_asked_for_and_formats_may_be_named(tmp_path):
    source = written(tmp_path, APPS, {"question": "no tests"}, {**LIVE, "question_content": "Another one."})
    domain = CodeDomain(eval_data=source, on_bad_row="skip")
    assert [task.source for task in domain.tasks("test", 0)] == ["rows", "rows"]
    with pytest.raises(UsageError, match=r"rows\.jsonl:2"):
        list(CodeDomain(eval_data=source).tasks("test", 0))
    with pytest.raises(UsageError, match=r"rows\.jsonl:1"):
        list(CodeDomain(eval_data=source, format="humaneval").tasks("test", 0))
    with pytest.raises(UsageError, match="did you mean 'humaneval'"):
        CodeDomain(format="human-eval")


def test_rows_come_from_parquet_as_well(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist([LIVE]), tmp_path / "live.parquet")
    (task,) = CodeDomain(eval_data=str(tmp_path / "live.parquet")).tasks("test", 0)
    assert len(task.answer["tests"]) == 2


@given(st.text(), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_a_pickled_text_is_read_as_it_was_written(text, protocol):
    assert pickled_text(pickle.dumps(text, protocol), "cases") == text


def test_a_large_pickled_text_is_read_as_it_was_written():
    text = "é" * 300_000
    assert unpacked(base64.b64encode(zlib.compress(pickle.dumps(text))).decode(), "cases") == text


class Hostile:
    """Unpickled, it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize(
    "make", [lambda path: Hostile(path), lambda path: ["[]"], lambda path: {"a": Hostile(path)}, lambda path: b"[]"]
)
def test_a_pickle_of_anything_else_is_refused_and_nothing_of_it_runs(tmp_path, make):
    target = tmp_path / "written"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        content = pickle.dumps(make(str(target)), protocol)
        with pytest.raises(TaskError, match="pickle"):
            pickled_text(content, "cases")
    assert not target.exists()


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader_of_pickled_texts(content):
    for tried in (content, pickle.dumps("[]") + content, pickletools.optimize(pickle.dumps("[]"))[:-1] + content):
        try:
            assert isinstance(pickled_text(tried, "cases"), str)
        except TaskError:
            continue


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr("cascade_plugin_code.formats.livecodebench.LARGEST", 1 << 20)
    packed = base64.b64encode(zlib.compress(b"x" * (2 << 20))).decode()
    with pytest.raises(TaskError, match="larger than 1 MB"):
        unpacked(packed, "cases")
    with pytest.raises(TaskError, match="cut off"):
        unpacked(base64.b64encode(zlib.compress(pickle.dumps("x" * 999))[:-6]).decode(), "cases")
