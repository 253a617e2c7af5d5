"""avg@k, pass@k, counts and paired differences: exact values, and what failures do to them."""

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.domain import Benchmark, Score
from cascade_core.errors import RowError
from cascade_core.estimates import WIDEST, counts, mean, paired, pass_at, student, summarise
from cascade_core.rows import score_json


def rows(*tasks):
    """Rows of tasks t0, t1, …; a value of `None` is a sample that could not be judged."""
    return [
        {"domain": "d", "id": f"t{i}", "score": score_json(Score.failed("down") if v is None else Score(v))}
        for i, values in enumerate(tasks)
        for v in values
    ]


def test_avg_at_k_is_the_mean_over_tasks_with_the_error_of_the_task_means():
    found = summarise(rows([1, 0], [1, 1], [0, 0]))["avg@2"]
    assert (found.value, found.n) == (0.5, 3)
    assert found.stderr == pytest.approx(statistics.stdev([0.5, 1, 0]) / math.sqrt(3))


def test_pass_at_k_by_hand():
    found = summarise(rows([1, 0, 0, 0], [0, 0, 0, 0]))
    assert list(found) == ["avg@4", "pass@1", "pass@2", "pass@4"]
    assert [found[f"pass@{k}"].value for k in (1, 2, 4)] == [0.125, 0.25, 0.5]


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_right_one(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    subsets = list(itertools.combinations(outcomes, k))
    assert pass_at(len(outcomes), sum(outcomes), k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@given(st.lists(st.lists(st.sampled_from([0, 1]), min_size=3, max_size=3), min_size=1, max_size=6))
def test_pass_at_one_is_avg_at_k_where_values_are_0_or_1(tasks):
    found = summarise(rows(*tasks))
    assert found["pass@1"].value == pytest.approx(found["avg@3"].value)


def test_partial_credit_counts_in_the_mean_and_does_not_pass():
    found = summarise(rows([0.5, 0.5]))
    assert (found["avg@2"].value, found["pass@2"].value) == (0.5, 0.0)


def test_a_failure_moves_no_mean_and_renames_no_estimate():
    with_failure = summarise(rows([1, None], [1, 1], [0, 0]))
    assert with_failure["avg@2"].value == pytest.approx(2 / 3)
    assert with_failure["avg@2"].n == 3
    assert with_failure["pass@2"].n == 2


def test_a_task_without_any_verdict_is_left_out():
    assert summarise(rows([None, None], [1, 1]))["avg@2"].n == 1


def test_nothing_judged_gives_no_estimate():
    assert summarise(rows([None], [None])) == {}
    assert summarise([]) == {}


def test_a_single_task_has_the_widest_error_not_none():
    assert summarise(rows([1]))["avg@1"].stderr == WIDEST


def test_the_same_id_in_two_domains_is_two_tasks():
    both = [{**row, "domain": domain} for domain in ("a", "b") for row in rows([1])]
    assert summarise(both)["avg@1"].n == 2


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_the_mean_and_its_error_are_the_textbook_ones(values):
    found = mean(values)
    assert found.value == pytest.approx(statistics.fmean(values))
    assert found.stderr == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-12)


def test_counts_keep_limits_and_failures_apart():
    given_rows = rows([1, 0, None])
    given_rows[1]["score"]["note"] = "limit: 10 s of CPU time"
    assert counts(given_rows) == {"scored": 2, "limit": 1, "failed": 1, "total": 3}


@pytest.mark.parametrize("score", [None, 1.0])
def test_a_row_that_was_not_graded_is_refused(score):
    with pytest.raises(RowError, match="'t0' has no score"):
        counts([{"id": "t0", "score": score}])


def test_the_paired_difference_by_hand():
    found = paired(rows([0, 0], [1, 0], [1, 1], [None]), rows([1, 0], [1, 1], [1, 1], [1]))
    assert (found.difference, found.n) == (pytest.approx(1 / 3), 3)
    assert found.stderr == pytest.approx(statistics.stdev([0.5, 0.5, 0]) / math.sqrt(3))
    assert found.interval95 == (found.low, found.high)
    assert found.high - found.difference == pytest.approx(4.3027 * found.stderr, rel=1e-4)


def test_equal_evaluations_differ_by_exactly_nothing():
    found = paired(rows([1, 0], [0, 0]), rows([1, 0], [0, 0]))
    assert (found.difference, found.stderr, found.low, found.high) == (0.0, 0.0, 0.0, 0.0)


def test_one_common_task_proves_nothing():
    assert paired(rows([0]), rows([1])).interval95 == (-1.0, 1.0)


def test_evaluations_without_a_common_task_cannot_be_compared():
    assert paired(rows([0]), [{**row, "id": "other"} for row in rows([1])]) is None


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (120, 1.980)])
def test_the_quantile_of_student_is_that_of_the_tables(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, rel=2e-3)


def test_a_benchmark_summarises_with_these():
    assert Benchmark("test").summarise(rows([1, 0])) == summarise(rows([1, 0]))
