"""What benchmarks say of scored rows, and what is warned of."""

import math

import pytest
from cascade_plugin_rlhf.domain import RLHF
from cascade_plugin_rlhf.figures import SECTIONS, Arena, Pairs, RewardBench, WinRate
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.domain import Estimate


def row(task, value, subset="", **metrics):
    meta = {"subset": subset} if subset else {}
    return {"domain": "rlhf", "id": task, "meta": meta, "source": "s", "score": {"value": value, "metrics": metrics}}


def test_a_win_rate_is_over_tasks_with_ties_half():
    rows = [row("a", 0.9, win=1.0), row("a", 0.1, win=0.0), row("b", 0.5, win=0.5), row("c", 0.9, win=1.0)]
    found = WinRate("test").summarise(rows)
    assert next(iter(found)) == "avg@1"
    assert (found["win_rate"].value, found["win_rate"].n) == (pytest.approx(2 / 3), 3)
    assert found["win_rate"].stderr == pytest.approx(math.sqrt((2 * (1 / 6) ** 2 + (1 / 3) ** 2) / 2 / 3))


def test_what_was_not_judged_is_in_no_figure():
    failed = {"domain": "rlhf", "id": "z", "score": {"value": 0.0, "error": "gone"}}
    rows = [row("a", 0.9, win=1.0, raw=3.0), failed]
    found = WinRate("test").summarise(rows)
    assert (found["win_rate"].value, found["win_rate"].n, found["score"].n) == (1.0, 1, 1)
    assert "pass@1" not in found
    assert Pairs("pairs").summarise([row("a", 1.0), failed])["accuracy"] == Estimate(1.0, 0.5, 1)


def test_the_correlation_is_inside_tasks_where_they_have_several_samples():
    rows = [
        row(task, 0.5, raw=base + number, surface_length=float(2 * number))
        for task, base in (("a", 0.0), ("b", 50.0))
        for number in range(4)
    ]
    found = WinRate("test").summarise(rows)
    assert found["length_correlation"].value == 1.0 and "bold_correlation" not in found


def test_the_correlation_over_tasks_is_that_of_the_distance_to_their_references():
    rows = [
        row(str(number), 0.5, raw=100.0 * (-1) ** number, distance=-number, surface_length=float(number))
        for number in range(6)
    ]
    assert WinRate("test").summarise(rows)["length_correlation"].value == -1.0


def test_what_the_reward_model_cut_is_a_share_of_the_benchmark():
    rows = [row("a", 0.9, raw=1.0, cut=1.0, reference_cut=0.0), row("b", 0.1, raw=1.0, cut=0.0, reference_cut=0.0)]
    found = WinRate("test").summarise(rows)
    assert (found["cut"].value, found["cut"].n, found["reference_cut"].value) == (0.5, 2, 0.0)


def test_pairs_have_an_accuracy_and_one_by_subset():
    rows = [row("a", 1.0, "x"), row("b", 0.0, "x"), row("c", 1.0, "y"), row("d", 0.5, "y")]
    found = {name: one.value for name, one in Pairs("pairs").summarise(rows).items()}
    assert found == {"accuracy": 0.625, "accuracy/x": 0.5, "accuracy/y": 0.75}


def test_rewardbench_weighs_subsets_as_its_authors_do_and_sections_alike():
    rows = [
        *(row(f"m{number}", 1.0, "math-prm") for number in range(2)),
        *(row(f"g{number}", 0.0, "hep-go") for number in range(8)),
        *(row(f"e{number}", 1.0, "alpacaeval-easy") for number in range(3)),
    ]
    found = {name: one.value for name, one in RewardBench("reward_bench").summarise(rows).items()}
    assert found["reasoning"] == pytest.approx(984 / (984 + 164))
    assert found["overall"] == pytest.approx((found["reasoning"] + 1.0) / 2)
    assert next(iter(found)) == "overall" and "safety" not in found


def test_the_weights_of_rewardbench_are_complete():
    assert {name: (len(subsets), sum(subsets.values())) for name, subsets in SECTIONS.items()} == {
        "chat": (5, 358),
        "chat-hard": (6, 456),
        "safety": (5, 740),
        "reasoning": (7, 1968),
    }


@given(
    st.lists(
        st.tuples(st.sampled_from(["math-prm", "hep-go", "donotanswer", "own"]), st.sampled_from([0.0, 0.5, 1.0])),
        min_size=1,
        max_size=30,
    )
)
def test_figures_of_rewardbench_are_shares_with_an_error(pairs):
    rows = [row(str(number), value, subset) for number, (subset, value) in enumerate(pairs)]
    for one in RewardBench("reward_bench").summarise(rows).values():
        assert 0.0 <= one.value <= 1.0 and one.stderr >= 0.0 and one.n >= 1


def test_an_arena_has_one_win_rate():
    assert list(Arena("arena").summarise([row("a", 1.0), row("b", 0.5)])) == ["win_rate"]


# --- warnings -------------------------------------------------------------------------------------------------------
def steps(*correlations):
    return [{"correlation/surface_length": one} for one in correlations]


def test_a_reward_that_goes_with_length_is_warned_of_from_the_level_on():
    assert list(RLHF().warnings(steps(0.0, 0.79, 0.79, 0.79), {}, {})) == []
    (line,) = RLHF().warnings(steps(0.0, 0.81, 0.82, 0.83), {}, {})
    assert "length" in line and "+0.82" in line and "0.8" in line
    (line,) = RLHF(warn_correlation=0.2).warnings(steps(-0.3, -0.3, -0.3), {}, {})
    assert "-0.30" in line


def test_too_few_steps_warn_of_nothing():
    assert list(RLHF().warnings(steps(1.0, 1.0), {}, {})) == []


def figures(score, reference, spread=1.0):
    return {
        "test": {"score": Estimate(score, spread / 10, 100), "reference_score": Estimate(reference, spread / 10, 100)}
    }


@pytest.mark.parametrize(
    ("now", "before", "lines"),
    [
        (figures(3.0, 1.0), figures(0.0, 1.0), 0),  # better liked: that is what training is for
        (figures(-2.0, 1.0), figures(0.0, 1.0), 1),
        (figures(0.0, 2.5), figures(0.0, 1.0), 1),
        (figures(-2.0, -2.5), figures(0.0, 1.0), 2),
        (figures(-2.0, 1.0, 4.0), figures(0.0, 1.0, 4.0), 0),
        (figures(-2.0, 1.0), {}, 0),
        ({}, figures(0.0, 1.0), 0),
    ],
)
def test_scores_of_fixed_prompts_that_fall_and_references_that_move_are_warned_of(now, before, lines):
    assert len(list(RLHF().warnings([], now, before))) == lines


def share(cut, reference_cut):
    return {"test": {"cut": Estimate(cut, 0.01, 100), "reference_cut": Estimate(reference_cut, 0.01, 100)}}


@pytest.mark.parametrize(
    ("told", "now", "lines"),
    [
        ([0.0, 0.04], share(0.04, 0.04), []),
        ([0.0, 0.0, 0.0, 0.05, 0.05, 0.05], {}, ["5.0% of answers, mean of the last 3 steps"]),
        ([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], {}, []),
        ([0.5], {}, ["50.0% of answers, mean of the last 1 steps"]),
        ([], share(0.05, 0.0), ["5.0% of answers to benchmark 'test'"]),
        ([], share(0.0, 0.3), ["30.0% of the references of benchmark 'test'"]),
    ],
)
def test_texts_that_the_reward_model_reads_in_part_are_warned_of_from_the_level_on(told, now, lines):
    found = list(RLHF().warnings([{"metric/cut": one} for one in told], now, {}))
    assert [what in line for what, line in zip(lines, found, strict=True)] == [True] * len(lines)
    assert list(RLHF(warn_cut=0.9).warnings([{"metric/cut": one} for one in told], now, {})) == []
