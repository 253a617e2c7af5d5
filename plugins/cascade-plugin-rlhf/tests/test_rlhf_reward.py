"""What a reward model is asked about, and what becomes of its scores: the text after a thought, the value, the z-score of a group."""

import math

import pytest
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.reward import judged_text, sigmoid, z_scores
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.domain import BatchStats, Group, Response, Score, Task

WORDS = st.text(alphabet="abc .\n\t", max_size=30)
PREFILLS = st.sampled_from(["", "<think>", "<think>\n"])
NUMBERS = st.floats(-1e6, 1e6)
BATCH = BatchStats(1, 0.0, 0.0, 0.0)


@given(WORDS, WORDS, PREFILLS, st.booleans())
def test_after_a_thought_only_the_answer_is_judged(thought, answer, prefill, truncated):
    opened = thought if prefill else f"<think>{thought}"
    said = Response(f"{opened}</think>{answer}", prefill, "think", truncated)
    assert judged_text(said) == answer.strip()


@given(WORDS, PREFILLS, st.booleans())
def test_a_thought_that_never_ends_is_judged_whole_with_the_prefill(thought, prefill, truncated):
    said = Response(thought, prefill, "think", truncated)
    assert judged_text(said) == prefill + thought


@given(WORDS)
def test_templates_that_open_the_thought_and_models_that_do_are_judged_alike(thought):
    assert judged_text(Response(thought, "<think>", "think")) == judged_text(Response(f"<think>{thought}", "", "think"))


@given(WORDS, st.sampled_from(["", "<think></think>", "<think>\n\n</think>\n\n"]))
def test_without_thinking_the_whole_text_is_the_answer(answer, prefill):
    assert judged_text(Response(answer, prefill, "no_think")) == answer.strip()


@given(WORDS, WORDS)
def test_a_thought_opened_again_is_unfinished_and_judged_whole(answer, again):
    text = f"<think>a</think>{answer}<think>{again}"
    assert judged_text(Response(text, "", "think", True)) == text


@given(NUMBERS, NUMBERS)
def test_the_sigmoid_rises_and_two_sides_of_a_pair_sum_to_one(low, high):
    assert sigmoid(min(low, high)) <= sigmoid(max(low, high))
    assert sigmoid(low) + sigmoid(-low) == pytest.approx(1.0)


@pytest.mark.parametrize("huge", [1e300, -1e300, 710.0, -746.0])
def test_the_sigmoid_of_a_huge_distance_is_an_end_of_its_range(huge):
    assert 0.0 <= sigmoid(huge) <= 1.0 and (sigmoid(huge) > 0.5) == (huge > 0)


@given(st.lists(NUMBERS, min_size=2, max_size=16))
def test_z_scores_have_mean_zero_and_keep_the_order(scores):
    found = z_scores(scores)
    assert math.fsum(found) == pytest.approx(0.0, abs=1e-6 * len(scores))
    for (score, z), (other, further) in zip(
        zip(scores, found, strict=True), list(zip(scores, found, strict=True))[1:], strict=False
    ):
        assert (z <= further) if score <= other else (z >= further)


def test_a_z_score_is_over_the_sample_deviation_and_an_epsilon():
    # Mean 2, squares 1 + 0 + 1, over n - 1 = 2: deviation 1.
    assert z_scores([1.0, 2.0, 3.0]) == pytest.approx([-1 / (1 + 1e-6), 0.0, 1 / (1 + 1e-6)], rel=1e-12)


@pytest.mark.parametrize("scores", [[], [3.5], [2.0, 2.0, 2.0], [1e99, 1e99]])
def test_one_valid_score_or_equal_ones_have_no_z(scores):
    assert z_scores(scores) == [0.0] * len(scores)


def test_a_spread_at_the_end_of_the_floats_is_no_overflow():
    assert z_scores([-1e100, 1e100]) == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])


def group(*raw: float) -> Group:
    task = Task("a", "b")
    return Group(task, [Response("c")] * len(raw), [Score(0.5, reward=one) for one in raw])


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_rewards_as_sigmoids_of_z_lie_strictly_between_nought_and_one(raw):
    assert all(0.0 < reward < 1.0 for reward in RLHF(reward="sigmoid_z").rewards(group(*raw), BATCH))


def test_a_group_with_one_judged_response_is_rewarded_with_one_half():
    assert RLHF(reward="sigmoid_z").rewards(group(17.0), BATCH) == [0.5]


def test_raw_rewards_are_the_scores_themselves():
    assert RLHF().rewards(group(3.0, -2.5), BATCH) == [3.0, -2.5]


def test_the_range_of_the_reward_follows_from_the_option():
    assert RLHF().reward_range is None
    assert RLHF(reward="sigmoid_z").reward_range == (0.0, 1.0)
