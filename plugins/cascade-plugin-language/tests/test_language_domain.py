"""The domain as the core sees it: contract, options, scores, what it explains, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cascade_plugin_language.domain import CodeSwitch

from cascade_core import Response, Task
from cascade_core.errors import ContractError, UsageError
from cascade_core.testing import check_domain

TASK = Task("t", "Solve it and explain.", answer="42")
MIXED = "<think>So 因此 it is 42, wir müssen das noch einmal prüfen.</think>The answer is 42."


def test_the_domain_keeps_its_contract() -> None:
    check_domain(CodeSwitch(), tasks=2)


def test_a_switch_scores_zero_and_the_note_names_the_words() -> None:
    score = CodeSwitch().score(TASK, Response("It is 因此 42."))
    assert (score.value, score.note) == (0.0, "not English: 因此 (Han)")
    assert score.metrics == {"foreign_words": 1.0, "foreign_share": pytest.approx(2 / 6)}


def test_a_clean_answer_to_any_task_scores_one() -> None:
    score = CodeSwitch().score(TASK, Response("It is 42."))
    assert (score.value, score.note, score.metrics) == (1.0, "", {"foreign_words": 0.0, "foreign_share": 0.0})


@pytest.mark.parametrize(("parts", "value"), [("all", 0.0), ("answer", 1.0)])
def test_the_thought_is_read_where_all_is(parts: str, value: float) -> None:
    assert CodeSwitch(parts=parts).score(TASK, Response(MIXED)).value == value
    assert (
        CodeSwitch(parts=parts).score(TASK, Response(MIXED.removeprefix("<think>"), prefill="<think>")).value == value
    )


def test_an_unfinished_thought_is_read_whole() -> None:
    assert CodeSwitch(parts="answer").score(TASK, Response("<think>So 因此")).value == 0.0


def test_a_prompt_in_another_language_is_not_judged() -> None:
    task = Task("t", "¿Cuántos días tiene un año en este calendario?")
    assert CodeSwitch().score(task, Response("因此 un año tiene muchos días.")).value == 1.0
    assert CodeSwitch().explain(task, Response("x"))["rule"].startswith("the prompt is not English")


def test_an_explanation_names_words_kinds_and_what_is_allowed() -> None:
    told = CodeSwitch().explain(Task("t", "Say it in German, please."), Response("Das ist sehr gut. 因此"))
    assert told["words"] == [{"word": "因此", "kind": "Han"}]
    assert "de" in told["allowed"]


def test_an_own_task_wants_its_word() -> None:
    domain = CodeSwitch()
    task = next(iter(domain.tasks("test", 0)))
    assert domain.score(task, Response("It is a thing.")).note.startswith("the answer does not say")
    assert domain.score(task, Response(domain.reference(task) or "")).value == 1.0


def test_other_tasks_have_no_reference() -> None:
    assert CodeSwitch().reference(TASK) is None


def test_an_impossible_option_and_split_are_refused() -> None:
    with pytest.raises(UsageError, match="must be 'all' or 'answer', found 'thought'"):
        CodeSwitch(parts="thought")
    with pytest.raises(UsageError, match="split must be 'train' or 'test'"):
        list(CodeSwitch().tasks("dev", 0))


def test_a_response_that_is_no_text_is_an_error_of_the_contract() -> None:
    with pytest.raises(ContractError, match="must be text"):
        CodeSwitch().score(TASK, Response(None))  # type: ignore[arg-type]


def test_importing_the_domain_loads_no_word_list() -> None:
    code = "import sys, cascade_plugin_language.domain; sys.exit('wordfreq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
