"""Advantages, the overlong penalty and the token weights: exact values, and the laws that they obey."""

import math
import statistics
import struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cascade_core.advantages import advantages, grid, soft_overlong, token_weights
from cascade_core.errors import ContractError

# A grid of 1/16: sums and shifts of these are exact in floats, so laws can be tested without tolerance for the data.
REWARDS = st.integers(-160, 160).map(lambda n: n / 16)
GROUPS = st.lists(REWARDS, min_size=2, max_size=16)
MASKED_GROUPS = st.lists(st.none() | REWARDS, min_size=1, max_size=16)
STD = st.sampled_from(["sample", "population", "none"])
SHAPING = st.sampled_from(["none", "tanh"])


def test_a_group_of_two_by_hand():
    assert advantages([1.0, 0.0], std="population", epsilon=0) == [1.0, -1.0]
    assert advantages([1.0, 0.0], std="sample", epsilon=0) == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    assert advantages([1.0, 0.0], std="none", epsilon=0) == [0.5, -0.5]


def test_one_right_answer_of_eight_by_hand():
    found = advantages([1.0] + [0.0] * 7, std="sample", epsilon=1e-4)
    deviation = statistics.stdev([1.0] + [0.0] * 7)
    assert found[0] == pytest.approx(0.875 / (deviation + 1e-4), rel=1e-12)
    assert found[1:] == pytest.approx([-0.125 / (deviation + 1e-4)] * 7, rel=1e-12)


@pytest.mark.parametrize("reward", [0.1, 0.3, 1.0, -7.7, 1e-300])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-4])
def test_equal_rewards_give_exactly_zero(reward, epsilon):
    for size in (1, 2, 3, 7, 8):
        assert advantages([reward] * size, epsilon=epsilon) == [0.0] * size


def test_a_lone_judged_sample_gets_zero():
    assert advantages([None, 5.0, None]) == [0.0, 0.0, 0.0]


def test_a_group_without_any_verdict_gets_zeros():
    assert advantages([None] * 4) == [0.0] * 4
    assert advantages([]) == []


def test_masked_samples_are_not_in_the_mean():
    found = advantages([1.0, None, 0.0, None], std="none")
    assert found == [0.5, 0.0, -0.5, 0.0]


@given(GROUPS, STD, st.sampled_from([0.0, 1e-6, 1e-4, 1.0]))
def test_advantages_sum_to_zero(rewards, std, epsilon):
    found = advantages(rewards, std=std, epsilon=epsilon)
    assert abs(math.fsum(found)) <= 1e-9 * max(1.0, max(abs(a) for a in found))


@given(GROUPS, REWARDS, STD, SHAPING)
def test_a_shift_of_all_rewards_changes_nothing(rewards, shift, std, shaping):
    shifted = [reward + shift for reward in rewards]
    assert advantages(shifted, std=std, shaping=shaping) == pytest.approx(
        advantages(rewards, std=std, shaping=shaping), abs=1e-9
    )


@given(GROUPS, st.sampled_from([0.25, 0.5, 2.0, 1024.0]), st.sampled_from(["sample", "population"]), SHAPING)
def test_a_scale_of_all_rewards_changes_nothing_without_epsilon(rewards, scale, std, shaping):
    scaled = [reward * scale for reward in rewards]
    assert advantages(scaled, std=std, epsilon=0, shaping=shaping) == pytest.approx(
        advantages(rewards, std=std, epsilon=0, shaping=shaping), abs=1e-12
    )


@given(MASKED_GROUPS, STD, SHAPING, st.randoms(use_true_random=False))
def test_a_permutation_of_the_samples_permutes_the_advantages(rewards, std, shaping, random):
    order = list(range(len(rewards)))
    random.shuffle(order)
    found = advantages(rewards, std=std, shaping=shaping)
    permuted = advantages([rewards[i] for i in order], std=std, shaping=shaping)
    assert permuted == [found[i] for i in order]


@given(MASKED_GROUPS, STD, SHAPING)
def test_masked_samples_change_nothing_for_the_others(rewards, std, shaping):
    found = advantages(rewards, std=std, shaping=shaping)
    alone = advantages([reward for reward in rewards if reward is not None], std=std, shaping=shaping)
    assert [a for a, reward in zip(found, rewards, strict=True) if reward is not None] == alone
    assert all(a == 0.0 for a, reward in zip(found, rewards, strict=True) if reward is None)


@given(GROUPS)
def test_the_z_scores_have_deviation_one(rewards):
    assume(min(rewards) != max(rewards))
    assert statistics.stdev(advantages(rewards, std="sample", epsilon=0)) == pytest.approx(1.0)
    assert statistics.pstdev(advantages(rewards, std="population", epsilon=0)) == pytest.approx(1.0)


@given(GROUPS, STD)
def test_tanh_is_taken_of_the_z_score(rewards, std):
    plain = advantages(rewards, std=std)
    assert advantages(rewards, std=std, shaping="tanh") == [math.tanh(a) for a in plain]
    assert all(-1.0 <= a <= 1.0 for a in advantages(rewards, std=std, shaping="tanh"))


@given(st.lists(st.floats(-1e100, 1e100), max_size=12), STD, st.sampled_from([0.0, 1e-4]), SHAPING)
def test_any_finite_rewards_give_finite_advantages(rewards, std, epsilon, shaping):
    assert all(math.isfinite(a) for a in advantages(rewards, std=std, epsilon=epsilon, shaping=shaping))


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1e101, -1e300])
def test_a_reward_that_is_no_usable_number_is_refused(reward):
    with pytest.raises(ContractError, match="finite"):
        advantages([0.0, reward])


@pytest.mark.parametrize("setting", [{"std": "mad"}, {"shaping": "relu"}, {"epsilon": -1.0}, {"epsilon": math.nan}])
def test_an_unknown_setting_is_refused(setting):
    with pytest.raises(ContractError, match="no advantage is defined"):
        advantages([0.0, 1.0], **setting)


@pytest.mark.parametrize(
    ("tokens", "penalty"), [(0, 0.0), (800, 0.0), (801, -0.005), (900, -0.5), (1000, -1.0), (1500, -1.0)]
)
def test_the_soft_penalty_grows_linearly_over_the_buffer(tokens, penalty):
    assert soft_overlong(tokens, 1000, 200) == pytest.approx(penalty)
    assert soft_overlong(tokens, 1000, 200, factor=0.25) == pytest.approx(penalty / 4)


@pytest.mark.parametrize("buffer", [0, -1, 1001])
def test_a_buffer_that_does_not_fit_the_limit_is_refused(buffer):
    with pytest.raises(ContractError, match="buffer"):
        soft_overlong(10, 1000, buffer)


TOKENS, GROUP, NONE_MASKED = [2, 6, 12], ["a", "a", "b"], [False, False, False]


def test_token_weights_on_unequal_lengths_by_hand():
    assert token_weights(TOKENS, GROUP, NONE_MASKED, "token") == [1 / 20, 1 / 20, 1 / 20]
    assert token_weights(TOKENS, GROUP, NONE_MASKED, "token-group") == [1 / 16, 1 / 16, 1 / 24]
    assert token_weights(TOKENS, GROUP, NONE_MASKED, "sequence") == [1 / 6, 1 / 18, 1 / 36]


def test_group_and_batch_denominators_agree_when_groups_have_equal_token_counts():
    tokens, groups, masked = [1, 7, 4, 4], ["a", "a", "b", "b"], [False] * 4
    assert token_weights(tokens, groups, masked, "token") == token_weights(tokens, groups, masked, "token-group")


SAMPLES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.booleans()), max_size=20)
LOSSES = st.sampled_from(["token", "token-group", "sequence"])


@given(SAMPLES, LOSSES)
def test_a_masked_sample_weighs_nothing_and_is_as_if_never_sampled(samples, loss):
    tokens, groups, masked = (list(column) for column in zip(*samples, strict=True)) if samples else ([], [], [])
    weights = token_weights(tokens, groups, masked, loss)
    live = [i for i, left_out in enumerate(masked) if not left_out]
    alone = token_weights([tokens[i] for i in live], [groups[i] for i in live], [False] * len(live), loss)
    assert [weights[i] for i in live] == alone
    assert all(weights[i] == 0.0 for i, left_out in enumerate(masked) if left_out)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 3)), min_size=1, max_size=20), LOSSES)
def test_the_weights_of_all_tokens_sum_to_one(samples, loss):
    tokens, groups = zip(*samples, strict=True)
    weights = token_weights(tokens, groups, [False] * len(tokens), loss)
    assert math.fsum(n * w for n, w in zip(tokens, weights, strict=True)) == pytest.approx(1.0)


def test_an_empty_response_weighs_nothing_and_divides_by_nothing():
    assert token_weights([0, 0], ["a", "a"], [False, False], "token") == [0.0, 0.0]
    assert token_weights([0, 4], ["a", "b"], [False, False], "sequence") == [0.0, 1 / 8]


def test_columns_of_different_length_are_refused():
    with pytest.raises(ContractError, match="2 lengths, 1 groups"):
        token_weights([1, 2], ["a"], [False, False])


def test_an_unknown_loss_is_refused():
    with pytest.raises(ContractError, match="token, token-group, sequence"):
        token_weights([1], ["a"], [False], "mean")


def float32_sum(values):
    total = 0.0
    for value in values:
        total = struct.unpack("f", struct.pack("f", total + value))[0]
    return total


ANY_REWARDS = st.lists(
    st.none() | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 0.3, 1e-30, 1e6, math.nextafter(1e6, 2e6)]),
    min_size=1,
    max_size=64,
)


@given(ANY_REWARDS, STD, st.randoms(use_true_random=False))
def test_a_group_on_the_grid_sums_to_exactly_zero_in_32_bits_in_any_order(rewards, std, chance):
    found = grid(advantages(rewards, std=std))
    assert [struct.unpack("f", struct.pack("f", value))[0] for value in found] == found
    chance.shuffle(found)
    assert float32_sum(found) == 0.0


@given(ANY_REWARDS, STD)
def test_the_grid_moves_no_advantage_by_more_than_a_millionth_of_the_group(rewards, std):
    before = advantages(rewards, std=std)
    size = math.fsum(map(abs, before))
    assert all(abs(new - old) <= size * 2**-21 + 1e-37 for old, new in zip(before, grid(before), strict=True))


@given(ANY_REWARDS, STD)
def test_the_grid_leaves_a_masked_sample_at_exactly_zero(rewards, std):
    found = grid(advantages(rewards, std=std))
    assert all(value == 0.0 for reward, value in zip(rewards, found, strict=True) if reward is None)


def test_plain_floats_would_not_sum_to_zero_in_32_bits():
    assert float32_sum(advantages([1.0, 0.0, 0.0], std="sample")) != 0.0


@pytest.mark.parametrize("group", [[1.0, 1.0, -1.9], [0.5], advantages([1.0, 0.0, 0.0], shaping="tanh")])
def test_the_grid_keeps_a_sum_that_is_not_zero(group):
    assert grid(group) == pytest.approx(group, abs=2**-20)


@pytest.mark.parametrize("group", [[1e39, -1e39], [math.nan, 0.0], [math.inf, -math.inf]])
def test_advantages_past_32_bits_have_no_grid(group):
    with pytest.raises(ContractError, match="32-bit"):
        grid(group)


def test_the_grid_of_nothing_and_of_zeros_is_themselves():
    assert grid([]) == []
    assert grid([0.0, 0.0]) == [0.0, 0.0]


@pytest.mark.parametrize("epsilon", [0.0, 1e-4])
def test_rewards_that_differ_in_their_last_digit_alone_sum_to_zero(epsilon):
    found = advantages([1e6, math.nextafter(1e6, 2e6)], epsilon=epsilon)
    assert found[0] == -found[1] < 0
    assert sum(grid(found)) == 0.0
