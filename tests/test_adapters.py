"""Other people's reward functions: every shape of result that is understood, and every one that is refused."""

import asyncio
import decimal
import fractions
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.adapters import ABSTAINED, as_score, reward_function
from cascade_core.domain import Score
from cascade_core.errors import ContractError

THREE = ["p"] * 3, ["a", "b", "c"]


def returning(value):
    return reward_function(lambda prompts, completions, **columns: value, name="theirs")


def rewards(value):
    return [score.trained for score in returning(value)(*THREE)]


@pytest.mark.parametrize(
    "returned",
    [
        [1.0, 0.0, 1.0],
        (1, 0, 1),
        [True, False, True],
        numpy.array([1.0, 0.0, 1.0]),
        numpy.array([1, 0, 1], dtype="int8"),
        numpy.array([True, False, True]),
        [numpy.float32(1), numpy.int64(0), numpy.bool_(True)],
        [decimal.Decimal(1), fractions.Fraction(0), 1],
        {"rewards": [1.0, 0.0, 1.0]},
        {"rewards": numpy.array([1.0, 0.0, 1.0]), "extra_logs": {"n": [1]}},
        [{"score": 1.0}, {"score": 0, "acc": False}, {"score": True}],
        [Score(1.0), 0.0, Score(0.5, reward=1.0)],
    ],
)
def test_one_result_per_completion_of_any_numeric_kind_is_taken(returned):
    assert rewards(returned) == [1.0, 0.0, 1.0]


def test_a_tensor_is_taken():
    torch = pytest.importorskip("torch")
    assert rewards(torch.tensor([1.0, 0.0, 1.0])) == [1.0, 0.0, 1.0]
    assert rewards([torch.tensor(1.0), torch.tensor([0.0]), 1]) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ([1.0], "1 results for 3 completions"),
        ([1.0, 0.0], "2 results for 3 completions"),
        ([1.0] * 4, "4 results for 3 completions"),
        ([], "0 results for 3 completions"),
        (0.5, "found 0.5"),
        (numpy.float64(0.5), "found 0.5"),
        (numpy.array(0.5), "found 0.5"),
        (None, "found None"),
        ("101", "found '101'"),
        (b"101", "found a bytes"),
        ({1.0, 0.0, 0.5}, "found a set"),
        ((n for n in (1, 0, 1)), "found a generator"),
        ({"reward": [1, 0, 1]}, "without 'rewards', found 'reward'"),
    ],
)
def test_anything_but_one_result_per_completion_is_refused_as_a_whole(returned, found):
    with pytest.raises(ContractError, match="reward function 'theirs'") as error:
        returning(returned)(*THREE)
    assert found in str(error.value)


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        numpy.float64("nan"),
        float("1e400"),
        10**400,
        "high",
        "nan",
        "1.0",
        b"1",
        1 + 2j,
        [1.0],
        numpy.array([1.0, 2.0]),
        {"acc": True},
        {"score": "nan"},
        {"score": [1]},
        {},
        object(),
    ],
)
def test_a_bad_result_is_an_error_of_its_own_sample_alone(bad):
    with pytest.raises(ContractError):
        as_score(bad)
    found = returning([1.0, bad, 0.0])(*THREE)
    assert [score.is_judged for score in found] == [True, False, True]
    assert found[1].error.startswith("reward function 'theirs': a re")


def test_none_abstains_which_is_neither_zero_nor_an_exception():
    found = returning([1.0, None, {"score": None}])(*THREE)
    assert [score.error for score in found] == ["", ABSTAINED, ABSTAINED]


def test_a_dictionary_gives_its_other_numbers_as_metrics():
    score = as_score({"score": 0.5, "acc": True, "length": numpy.int64(7), "pred": "x = 2", "bad": math.nan})
    assert (score.trained, dict(score.metrics)) == (0.5, {"acc": 1.0, "length": 7.0})


@pytest.mark.parametrize(
    ("reward", "value"), [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0), (-1.0, 0.0), (7.3, 1.0), (-1e300, 0.0)]
)
def test_a_reward_keeps_its_size_and_gets_a_value_from_0_to_1(reward, value):
    score = as_score(reward)
    assert (score.trained, score.value) == (reward, value)


@pytest.mark.parametrize(("reward", "value"), [(-1.0, 0.0), (0.0, 0.5), (1.0, 1.0)])
def test_in_a_declared_range_the_value_is_the_place_in_it(reward, value):
    score = as_score(reward, (-1.0, 1.0))
    assert (score.trained, score.value) == (reward, value)


@pytest.mark.parametrize("reward", [7.3, -0.1])
def test_outside_a_declared_range_is_an_error(reward):
    with pytest.raises(ContractError, match=r"declared range 0 … 1"):
        as_score(reward, (0.0, 1.0))
    found = reward_function(lambda prompts, completions: [reward], declared_range=(0.0, 1.0))(["p"], ["c"])
    assert not found[0].is_judged


@pytest.mark.parametrize("declared", [(1.0, 0.0), (0.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
def test_an_empty_range_is_refused_at_once(declared):
    with pytest.raises(ContractError, match="range"):
        reward_function(len, declared_range=declared)


async def slowly(prompts, completions, **columns):
    await asyncio.sleep(0)
    return [float(completion == "b") for completion in completions]


def test_an_async_function_is_awaited():
    assert [score.value for score in reward_function(slowly)(*THREE)] == [0.0, 1.0, 0.0]


def test_an_async_function_is_awaited_inside_a_running_event_loop_too():
    async def main():
        return reward_function(slowly)(*THREE)

    assert [score.value for score in asyncio.run(main())] == [0.0, 1.0, 0.0]


def test_results_that_are_coroutines_are_awaited():
    async def one(value):
        return value

    assert rewards([one(1.0), one(0.0), 1.0]) == [1.0, 0.0, 1.0]


def test_a_coroutine_that_raises_fails_its_own_response_and_the_others_are_awaited():
    async def one(value):
        if isinstance(value, BaseException):
            raise value
        return value

    causes = KeyError("answer"), asyncio.CancelledError(), ContractError("no label"), TimeoutError()
    results = [coroutine for cause in causes for coroutine in (one(cause), one(1.0))]
    found = returning(results)(["p"] * 8, ["c"] * 8)
    assert [score.is_judged for score in found] == [False, True] * 4
    assert found[0].error.startswith("reward function 'theirs': a result raised KeyError: 'answer'")
    assert "CancelledError" in found[2].error and "no label" in found[4].error


def test_an_exception_of_the_function_is_the_callers():
    async def broken(prompts, completions):
        raise KeyError("answer")

    with pytest.raises(KeyError, match="answer"):
        reward_function(broken)(*THREE)


def test_the_function_gets_its_arguments_and_columns():
    seen = []
    function = reward_function(lambda prompts, completions, **columns: seen.append(columns) or [1.0] * 3)
    function(*THREE, answers=[1, 2, 3])
    assert seen == [{"answers": [1, 2, 3]}]


def is_a_number(result):
    try:
        return isinstance(result, bool | int | float) and math.isfinite(result)
    except OverflowError:
        return False


@given(st.lists(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), max_size=8))
def test_whatever_a_list_holds_there_is_one_score_per_completion(results):
    found = returning(results)(["p"] * len(results), ["c"] * len(results))
    assert [score.is_judged for score in found] == [is_a_number(result) for result in results]
