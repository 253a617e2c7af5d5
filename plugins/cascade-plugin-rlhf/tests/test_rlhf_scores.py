"""Scores of the domain, with a client that answers what a test says: nothing that fails becomes a number."""

import pytest
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.judge import Comparison
from cascade_plugin_rlhf.pairs import REFERENCE
from cascade_plugin_rlhf.reward import sigmoid
from cascade_plugin_rlhf.verdict import RewardModelError, Scored, Unjudged

from cascade_core.domain import Response, Task
from cascade_core.errors import ResourceError, TaskError, UsageError


class Client:
    """Scores texts from a table, and keeps what it was asked."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def scores(self, items):
        self.asked.append([(prompt, text) for prompt, text in items])
        found = [self.table[text] for _, text in items]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return [one if isinstance(one, Unjudged | Scored) else Scored(one) for one in found]

    def close(self):
        self.table = {}


class Judge(Client):
    def compare(self, contests):
        self.asked += contests
        return [self.table[first] for _, first, _ in contests]


def domain(table, **options):
    made = RLHF(**options)
    made._client = Client(table)
    return made


TASK = Task("a", [{"role": "user", "content": "2 and 2?"}], {REFERENCE: "4."})


def test_the_value_is_the_sigmoid_of_the_distance_to_the_reference_and_the_reward_is_raw():
    score = domain({"four": 3.0, "4.": 2.0}).score(TASK, Response("four"))
    assert (score.reward, score.value) == (3.0, sigmoid(1.0))
    assert (score.metrics["raw"], score.metrics["reference_raw"], score.metrics["win"]) == (3.0, 2.0, 1.0)


def test_messages_go_to_the_reward_model_as_they_are():
    one = domain({"four": 3.0, "4.": 2.0})
    one.score(TASK, Response("four"))
    assert one._client.asked == [[(TASK.prompt, "four"), (TASK.prompt, "4.")]]


def test_a_reference_is_scored_once():
    one = domain({"four": 3.0, "4.": 2.0, "five": 1.0})
    values = [one.score(TASK, Response(text)).metrics["distance"] for text in ("four", "five", "four")]
    assert values == [1.0, -1.0, 1.0]
    assert [len(items) for items in one._client.asked] == [2, 1, 1]


@pytest.mark.parametrize(
    "other",
    [
        Task("a", "3 and 3?", {REFERENCE: "6."}),
        Task("a", TASK.prompt, {REFERENCE: "6."}),
        Task("a", [{"role": "system", "content": "Be brief."}, *TASK.prompt], {REFERENCE: "6."}),
    ],
)
def test_tasks_of_two_sources_that_share_an_id_are_each_compared_with_their_own_reference(other):
    one = domain({"four": 3.0, "4.": 2.0, "6.": 4.0})
    assert [one.score(task, Response("four")).metrics["win"] for task in (TASK, other, TASK)] == [1.0, 0.0, 1.0]


def test_one_reference_to_two_prompts_is_scored_for_each():
    one = domain({"four": 3.0, "4.": 2.0})
    for prompt in ("2 and 2?", [{"role": "user", "content": "2 and 2?"}], "1 and 3?"):
        one.score(Task("a", prompt, TASK.answer), Response("four"))
    assert [len(items) for items in one._client.asked] == [2, 2, 2]


def test_scores_of_references_end_with_the_reward_model_that_gave_them():
    one = domain({"four": 3.0, "4.": 2.0})
    one.score(TASK, Response("four"))
    one.close()
    one._client = Client({"four": 3.0, "4.": 5.0})
    assert one.score(TASK, Response("four")).metrics["distance"] == -2.0


def test_a_threshold_takes_the_place_of_every_reference():
    one = domain({"four": 3.0}, threshold=2.5)
    score = one.score(TASK, Response("four"))
    assert score.value == sigmoid(0.5) and "win" not in score.metrics


def test_a_task_of_another_domain_has_no_reference_whatever_its_answer_is():
    one = domain({"four": 3.0})
    for answer in ("4", {"label": "4"}, None, 4, {"reference": "4."}):
        assert one.score(Task("b", "2 and 2?", answer), Response("four")).value == sigmoid(3.0)


def test_an_unfinished_thought_is_scored_whole_and_says_so():
    one = domain({"<think>so 4": -2.0, "4.": 2.0})
    score = one.score(TASK, Response("so 4", "<think>", "think", True))
    assert score.reward == -2.0 and "unfinished" in score.note


def test_what_the_reward_model_cut_stands_in_the_verdict():
    one = domain({"four": Scored(3.0, 700, True), "five": 1.0, "4.": 2.0})
    score = one.score(TASK, Response("four"))
    assert score.note == "score 3, 2 of its reference; cut, the reward model read only the end of its 700 tokens"
    assert (score.metrics["cut"], score.metrics["reference_cut"]) == (1.0, 0.0)
    whole = one.score(TASK, Response("five"))
    assert "cut" not in whole.note and whole.metrics["cut"] == 0.0


def test_a_reference_that_was_cut_stands_in_every_verdict_beside_it():
    one = domain({"four": 3.0, "five": 1.0, "4.": Scored(2.0, None, True)})
    for text in ("four", "five"):
        score = one.score(TASK, Response(text))
        assert score.note.endswith("; the reference: cut, the reward model read only the end of its tokens")
        assert (score.metrics["cut"], score.metrics["reference_cut"]) == (0.0, 1.0)
    assert "reference_cut" not in domain({"four": 3.0}).score(Task("b", "2 and 2?"), Response("four")).metrics


@pytest.mark.parametrize("trouble", [Unjudged("the score is nan"), RewardModelError("gone")])
def test_no_failure_of_a_response_becomes_a_number(trouble):
    with pytest.raises(ResourceError):
        domain({"four": trouble, "4.": 2.0}).score(TASK, Response("four"))


def test_a_reference_that_cannot_be_scored_is_the_tasks_fault_and_is_asked_for_again():
    one = domain({"four": 3.0, "4.": Unjudged("too long")})
    for _ in range(2):
        with pytest.raises(TaskError, match="reference"):
            one.score(TASK, Response("four"))
    one._client.table["4."] = 2.0
    assert one.score(TASK, Response("four")).value == sigmoid(1.0)


def test_a_domain_that_was_not_opened_gives_no_score():
    with pytest.raises(ResourceError, match="not opened"):
        RLHF().score(TASK, Response("four"))


ARENA = Task("q", "2 and 2?", {REFERENCE: "4."}, meta={"judged": True})


def judged(table):
    made = RLHF(arena="questions.jsonl")
    made._judge = Judge(table)
    return made


@pytest.mark.parametrize(
    ("forward", "backward", "value"), [(2, 1, 1.0), (1, -1, 0.5), (0, 0, 0.5), (0, -1, 0.25), (-2, -2, 0.0)]
)
def test_a_judges_word_is_the_mean_over_both_orders(forward, backward, value):
    score = judged({"four": Comparison(forward, backward)}).score(ARENA, Response("four"))
    assert score.value == value


def test_a_judge_that_says_nothing_gives_no_score():
    with pytest.raises(ResourceError, match="prose"):
        judged({"four": Unjudged("prose")}).score(ARENA, Response("four"))


def test_an_unfinished_answer_loses_and_the_judge_is_not_asked():
    one = judged({})
    assert one.score(ARENA, Response("so", "<think>", "think")).value == 0.0
    assert one._judge.asked == []


def test_a_judge_is_needed_only_where_there_is_something_to_judge():
    assert RLHF().needs == ("reward_model",)
    assert RLHF(arena="questions.jsonl").needs == ("judge", "reward_model")
    assert RLHF.needs == ("reward_model",)


@pytest.mark.parametrize(
    "options",
    [
        {"reward": "rank"},
        {"eval_samples": 0},
        {"eval_limit": 0},
        {"warn_correlation": 0.0},
        {"warn_correlation": 1.5},
        {"warn_drift": 0.0},
        {"warn_cut": 0.0},
        {"warn_cut": 1.5},
        {"arena_answers": "a.jsonl"},
        {"eval_data": {"arena": "a.jsonl"}},
    ],
)
def test_an_option_with_an_impossible_value_is_refused(options):
    with pytest.raises(UsageError):
        RLHF(**options)
