"""The answer of a task: what is read, and that everything broken is an error that names the place."""

import json

import pytest
from cascade_plugin_code import exam
from cascade_sandbox import Limits
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import TaskError

TALK = {"kind": "stdin", "tests": [{"stdin": "2 3\n", "stdout": "5\n"}]}
CALL = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
CODE = {"kind": "assert", "test_code": "assert f(1) == 2"}


def test_each_kind_is_read():
    assert exam.read(TALK).talks == (exam.Talk(b"2 3\n", "5\n"),)
    assert exam.read(CALL).calls[0].expected == 2
    assert exam.read(CODE).codes == (exam.Code("assert f(1) == 2"),)
    assert [exam.read(one).count for one in (TALK, CALL, CODE)] == [1, 1, 1]
    assert exam.read({**CODE, "test_code": ["a", "b"]}).count == 2


def test_tests_may_be_json_text():
    assert exam.read({**TALK, "tests": json.dumps(TALK["tests"])}) == exam.read(TALK)


def test_limits_of_the_task_come_before_the_usual_ones():
    usual = Limits(cpu_seconds=7.0, memory_bytes=1 << 20, output_bytes=5)
    assert exam.read(TALK, usual=usual).limits == usual
    found = exam.read({**TALK, "limits": {"seconds": 2, "memory_mb": 64}}, usual=usual).limits
    assert (found.cpu_seconds, found.memory_bytes, found.output_bytes) == (2.0, 64 << 20, 5)


def test_other_names_of_a_language_are_known():
    for name, language in (
        ("Python3", "python"),
        ("cpp", "c++17"),
        ("C++", "c++17"),
        ("cpp20", "c++20"),
        ("c++20", "c++20"),
    ):
        assert exam.read({**TALK, "language": name}).language == language


BROKEN = [
    None,
    [],
    "text",
    {},
    {"tests": TALK["tests"]},
    {**TALK, "kind": "stdout"},
    {**TALK, "kind": None},
    {**TALK, "tests": []},
    {**TALK, "tests": None},
    {**TALK, "tests": {}},
    {**TALK, "tests": "{not json"},
    {**TALK, "tests": "[" * 100_000},
    {**TALK, "tests": "[]"},
    {**TALK, "tests": '"[]"'},
    {**TALK, "tests": [None]},
    {**TALK, "tests": [{"stdin": "1"}]},
    {**TALK, "tests": [{"stdout": "1"}]},
    {**TALK, "tests": [{"stdin": "1", "stdout": None}]},
    {**TALK, "tests": [{"stdin": 1, "stdout": "1"}]},
    {**TALK, "tests": [{"stdin": "1", "stdout": ["1"]}]},
    {**TALK, "tests": [{"stdin": "1", "output": "1"}]},
    {**TALK, "tests": [*TALK["tests"], {}]},
    {**TALK, "checker": {"type": "exact"}},
    {**TALK, "checker": None},
    {**TALK, "language": "cobol85"},
    {**TALK, "language": None},
    {**TALK, "limits": {"seconds": 0}},
    {**TALK, "limits": {"seconds": "4"}},
    {**TALK, "limits": {"seconds": float("inf")}},
    {**TALK, "limits": {"seconds": 1e9}},
    {**TALK, "limits": {"memory": 5}},
    {**TALK, "limits": None},
    {**TALK, "scoring": "half"},
    {**TALK, "entry_point": "f"},
    {**TALK, "test": []},
    {**TALK, "compare": {}},
    {**CALL, "entry_point": ""},
    {**CALL, "entry_point": "f()"},
    {**CALL, "entry_point": "a.b.c"},
    {**CALL, "entry_point": None},
    {"kind": "function", "tests": CALL["tests"]},
    {**CALL, "tests": [{"args": [1]}]},
    {**CALL, "tests": [{"expected": 1}]},
    {**CALL, "tests": [{"args": 1, "expected": 1}]},
    {**CALL, "tests": [{"args": [], "kwargs": [], "expected": 1}]},
    {**CALL, "tests": [{"args": [{"__float__": "x"}], "expected": 1}]},
    {**CALL, "tests": [{"args": [object()], "expected": 1}]},
    {**CALL, "tests": [{"args": [], "expected": object()}]},
    {**CALL, "compare": {"type": "close"}},
    {**CALL, "language": "c++17"},
    {**CALL, "checker": {"type": "tokens"}},
    {**CODE, "test_code": ""},
    {**CODE, "test_code": " \n"},
    {**CODE, "test_code": []},
    {**CODE, "test_code": None},
    {**CODE, "test_code": ["assert f(1)", ""]},
    {**CODE, "language": "cpp"},
    {**CODE, "preamble": 5},
    {**CODE, "preamble": "import"},
    {**CALL, "preamble": "def f(:\n"},
    {**TALK, "checker": {"type": "program", "source": "def"}},
    {**TALK, "checker": {"type": "program", "source": "x = '\ud800'\0"}},
    {"kind": "assert"},
]


@pytest.mark.parametrize("answer", BROKEN, ids=lambda answer: str(answer)[:70])
def test_a_broken_answer_is_an_error_of_the_task(answer):
    with pytest.raises(TaskError) as caught:
        exam.read(answer)
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value)


def test_a_judge_and_a_preamble_are_compiled_and_not_run_when_they_are_read():
    harmful = "import sys\n'\\d'\nsys.exit('run')"
    judged = exam.read({**TALK, "checker": {"type": "program", "source": harmful}})
    assert judged.checker.source == exam.read({**CALL, "preamble": harmful}).preamble == harmful
    other = exam.read({**TALK, "checker": {"type": "program", "source": "int main() {}", "language": "c++17"}})
    assert other.checker.language == "c++17"


def test_an_expected_value_of_none_is_not_missing():
    assert exam.read({**CALL, "tests": [{"args": [], "expected": None}]}).calls[0].expected is None


def test_a_message_names_the_test_and_the_nearest_key():
    with pytest.raises(TaskError, match="test 2 has no 'stdout'"):
        exam.read({**TALK, "tests": [*TALK["tests"], {"stdin": ""}]})
    with pytest.raises(TaskError, match="'checkr', did you mean 'checker'"):
        exam.read({**TALK, "checkr": {}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["kind", "tests", "stdin", "stdout", "args", "expected", "entry_point", "test_code", "checker", "type", "limits", "seconds", "__set__", "__dict__"]
    ), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(st.sampled_from([TALK, CALL, CODE, {}]), st.dictionaries(st.sampled_from(["kind", "tests", "test_code", "entry_point", "checker", "compare", "limits", "language", "preamble", "scoring"]), json_values, max_size=3))  # fmt: skip
def test_any_answer_is_read_or_an_error_of_the_task(base, changes):
    try:
        found = exam.read({**base, **changes})
    except TaskError:
        return
    assert found.count > 0
