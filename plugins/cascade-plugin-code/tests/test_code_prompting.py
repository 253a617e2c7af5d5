"""Prompts: what a template may hold, and that nothing of a statement is taken for it."""

import pytest
from cascade_plugin_code.prompting import prompt, wanted
from cascade_sandbox import Limits


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"kind": "stdin"}, "standard input"),
        ({"kind": "function", "entry_point": "f"}, "the function `f`"),
        ({"kind": "function", "entry_point": "Solution.f"}, "the class `Solution` with the method `f`"),
        ({"kind": "assert", "entry_point": "f"}, "the function `f`"),
        ({"kind": "assert"}, "what the problem asks for"),
    ],
)
def test_a_prompt_says_how_the_program_is_called(answer, said):
    assert said in wanted(answer)


def test_limits_and_language_of_the_task_come_before_those_of_the_domain():
    answer = {"kind": "stdin", "language": "c++17", "limits": {"seconds": 2.5}}
    text = prompt("{problem}|{language}|{seconds}|{memory_mb}", "x", answer, language="python", usual=Limits())
    assert text == "x|c++17|2.5|512"


def test_a_statement_with_the_templates_signs_is_left_as_it_is():
    statement = "Print {language} and {problem} and {0}."
    assert (
        prompt("{problem} {other}", statement, {"kind": "stdin"}, language="python", usual=Limits())
        == f"{statement} {{other}}"
    )
