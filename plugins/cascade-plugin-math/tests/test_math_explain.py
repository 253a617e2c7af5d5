"""What the domain says of a verdict: the rule is the verdict's own, readings are bounded, broken tasks stay broken."""

import json

import pytest
from cascade_plugin_math.domain import MathDomain
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import Response, Task
from cascade_core.errors import TaskError


def explain(label, text, **options):
    return MathDomain(**options).explain(Task("t", "What is it?", label), Response(text))


def test_the_extracted_answer_and_both_readings_are_shown():
    found = explain("\\frac{1}{2}", "so \\boxed{0.5}")
    assert (found["extracted"], found["label"]) == ("0.5", "\\frac{1}{2}")
    assert (found["label read as"], found["answer read as"]) == (["(mul 1 (inv 2))"], ["1/2"])
    assert found["rule"] == "right"
    assert found["policy"] == {}


def test_an_operation_is_shown_before_its_arguments():
    assert explain("x", "\\boxed{x+1}")["answer read as"] == ["(add x 1)"]


def test_nothing_extracted_is_said_and_depends_on_where_the_domain_looks():
    assert explain("7", "it is 7")["extracted"] is None
    assert explain("7", "the answer is 7.", answer="stated")["extracted"] == "7"


def test_words_are_shown_as_words():
    assert explain("Monday", "\\boxed{Tuesday}")["answer read as"] == ["words: Tuesday"]


def test_a_choice_is_compared_by_letters():
    task = Task("t", "Which?\n(A) one\n(B) two", "B")
    found = MathDomain().explain(task, Response("\\boxed{A}"))
    assert (found["compared as"], found["rule"]) == ("letters of a choice", "chose A")


def test_a_policy_that_differs_is_shown_alone():
    assert explain({"label": "33.3", "rel_tol": 0.01}, "\\boxed{33.4}")["policy"] == {"rel_tol": 0.01}


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{9^{9^{9^9}}}",
        "\\boxed{" + "9" * 15_000 + "}",
        "\\boxed{" + "x+" * 9_000 + "x}",
        "\\boxed{" + "(" * 100 + "1" + ")" * 100 + "}",
        "\\boxed{" + "7 " * 500_000 + "}",
    ],
    ids=["tower", "digits", "sum", "depth", "megabyte"],
)
def test_an_explanation_is_short_whatever_the_answer(text):
    assert len(json.dumps(explain("7", text))) < 8_000


@pytest.mark.parametrize("label", [None, "", "\\frac{1}{"])
def test_a_broken_task_is_an_error(label):
    with pytest.raises(TaskError):
        explain(label, "\\boxed{1}")


@given(st.text(alphabet="\\{}boxed0123456789+-/x^$., ", max_size=60))
def test_the_rule_is_the_note_of_the_verdict(text):
    task, response = Task("t", "p", "7"), Response(f"\\boxed{{{text}}}")
    assert MathDomain().explain(task, response)["rule"] == MathDomain().score(task, response).note
