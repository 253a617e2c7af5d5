"""Where the thought ends and the answer begins, and which scores there can be."""

import dataclasses
import itertools
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import BatchStats, Benchmark, Domain, Group, Response, Score, Task
from cascade_core.errors import ContractError, UsageError


@pytest.mark.parametrize(
    ("text", "prefill", "mode", "thinking", "answer"),
    [
        ("4", "", "", "", "4"),
        ("<think>2+2</think>4", "", "", "2+2", "4"),
        ("2+2</think>4", "<think>\n", "", "\n2+2", "4"),
        ("2+2</think>4", "", "", "2+2", "4"),
        ("<think>a</think>b<think>c</think>d", "", "", "a</think>bc", "d"),
        ("a</think>b</think>c", "<think>", "", "a</think>b", "c"),
        ("<think></think>4", "", "", "", "4"),
        ("<think>2+2 is \\boxed{4}", "", "", "2+2 is \\boxed{4}", None),
        ("2+2 is \\boxed{4}", "<think>\n", "", "\n2+2 is \\boxed{4}", None),
        ("done</think>4 or <think>5", "", "", "done", None),
        ("4", "", "think", "4", None),
        ("a</think>4", "", "think", "a", "4"),
        ("4", "", "no_think", "", "4"),
        ("4", "<think>\n\n</think>\n\n", "no_think", "\n\n", "\n\n4"),
        ("", "", "", "", ""),
        ("", "<think>", "think", "", None),
        ("I write `</think>` at the end", "", "", "", "I write `</think>` at the end"),
        ("<think>I will write `</think>` soon", "", "", "I will write `</think>` soon", None),
        ("The tag `<think>` opens it", "", "", "", "The tag `<think>` opens it"),
        ("<think>a`</think>4", "", "", "a`", "4"),
        ("ink>a</think>4", "<th", "", "a", "4"),
        ("</THINK>4", "", "", "", "</THINK>4"),
    ],
)
def test_the_answer_is_what_follows_the_last_end_of_a_thought(text, prefill, mode, thinking, answer):
    response = Response(text, prefill, mode)
    assert response.answer == answer
    assert response.thinking == thinking


PIECES = st.lists(st.sampled_from(["<think>", "</think>", " `</think>` ", "x", "\\boxed{1}", "\n"]), max_size=8)


@given(PIECES, PIECES, st.sampled_from(["", "think", "no_think"]))
def test_an_answer_never_holds_a_tag_and_an_open_thought_has_none(before, after, mode):
    response = Response("".join(after), "".join(before), mode)
    answer = response.answer
    tags = [piece for piece in [*before, *after] if piece in ("<think>", "</think>")]
    if tags and tags[-1] == "<think>":
        assert answer is None
    elif tags:
        assert answer is not None
        assert answer.replace("`</think>`", "").find("think>") < 0
        assert (response.prefill + response.text).endswith(answer)
    else:
        assert answer == (None if mode == "think" else response.text)


def test_parsing_a_megabyte_of_tags_is_quick():
    response = Response("<think></think>" * 100_000 + "4")
    assert response.answer == "4"


def test_the_question_is_the_last_user_turn():
    turns = [{"role": r, "content": c} for r, c in (("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"))]
    assert Task("t", turns).question == "c"
    assert Task("t", "plain").question == "plain"
    assert Task("t", turns[:1]).question == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.0001, None, "1", True, 1j])
def test_a_value_outside_0_to_1_is_no_score(value):
    with pytest.raises(ContractError, match=r"Score\.value"):
        Score(value)


@pytest.mark.parametrize("reward", [math.nan, math.inf, "1", False])
def test_a_reward_that_is_no_finite_number_is_no_score(reward):
    with pytest.raises(ContractError, match=r"Score\.reward"):
        Score(1.0, reward=reward)


def test_a_metric_that_is_no_finite_number_is_no_score():
    with pytest.raises(ContractError, match=r"Score\.metrics\['m'\]"):
        Score(1.0, metrics={"m": math.nan})


def test_a_contract_error_is_a_usage_error_a_type_error_and_a_value_error():
    assert issubclass(ContractError, UsageError | TypeError)
    assert issubclass(ContractError, ValueError)


def test_numbers_of_a_score_are_floats():
    score = Score(1, reward=2)
    assert (type(score.value), type(score.reward)) == (float, float)


def test_what_is_trained_on_is_the_reward_and_else_the_value():
    assert Score(0.5).trained == 0.5
    assert Score(0.5, reward=-3.0).trained == -3.0
    assert Score(0.5, reward=0.0).trained == 0.0


def test_could_not_be_judged_is_told_apart_from_wrong_and_from_a_limit():
    failed, wrong, limit = Score.failed("down"), Score(0.0), Score(0.0, note="limit: 10 s of CPU time")
    assert [score.is_judged for score in (failed, wrong, limit)] == [False, True, True]
    assert [score.is_limit for score in (failed, wrong, limit)] == [False, False, True]
    assert Score.failed("").error


def test_values_that_cross_processes_are_frozen():
    for value in (Task("t", "p"), Response("r"), Score(1.0), Benchmark("b")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.note = "changed"


@dataclass
class Halves(Domain):
    name = "halves"

    def tasks(self, split, seed):
        return [Task("a", "p", 1), Task("b", "p", None)]

    def score(self, task, response):
        return Score(0.5)

    def reference(self, task):
        return None if task.answer is None else f"\\boxed{{{task.answer}}}"


def test_a_domain_needs_no_more_than_tasks_and_score():
    domain, task = Halves(), Task("a", "p")
    group = Group(task, [Response("x")] * 2, [Score(0.5), Score(1.0, reward=7.0)])
    assert domain.rewards(group, BatchStats(2, 0.5, 3.75, 7.0)) == [0.5, 7.0]
    assert domain.benchmarks() == (Benchmark("test"),)
    assert list(domain.pairs("train", 0)) == []
    assert domain.reply(task, []) is None
    domain.open({})
    domain.close()


def test_demonstrations_are_the_tasks_that_have_a_reference():
    assert [(d.task.id, d.response) for d in Halves().demonstrations("train", 0)] == [("a", "\\boxed{1}")]


def test_a_domain_without_score_cannot_be_built():
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Domain,), {"tasks": lambda self, split, seed: []})()


def test_an_endless_domain_without_references_has_no_demonstrations_and_says_so():
    class Endless(Halves):
        def tasks(self, split, seed):
            return (Task(f"t{i}", "?") for i in itertools.count())

        def reference(self, task):
            return None

    with pytest.raises(ContractError, match=r"has no reference for 10,000 tasks in a row, so no demonstrations$"):
        next(iter(Endless().demonstrations("train", 0)))
