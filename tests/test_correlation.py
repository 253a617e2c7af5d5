"""How two numbers go together inside groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.correlation import within

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
GROUPS = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6), max_size=6)


@given(GROUPS)
def test_a_correlation_lies_between_minus_one_and_one_or_there_is_none(groups):
    found = within(groups)
    assert found is None or -1.0 <= found[0] <= 1.0


@given(GROUPS, st.lists(NUMBERS, min_size=6, max_size=6))
def test_what_a_group_has_in_common_changes_nothing(groups, shifts):
    moved = [[(x + shift, y) for x, y in group] for group, shift in zip(groups, shifts, strict=False)]
    before, after = within(groups), within(moved)
    if before is not None and after is not None:
        assert before[1] == after[1]
        assert abs(before[0] - after[0]) < 0.05


@pytest.mark.parametrize(
    "groups",
    [[], [[]], [[(1.0, 2.0)]], [[(1.0, 2.0), (2.0, 3.0)]], [[(5.0, float(i)) for i in range(9)]], [[(float(i), 5.0) for i in range(9)]]],
)  # fmt: skip
def test_too_few_samples_or_equal_numbers_have_no_correlation(groups):
    assert within(groups) is None


def test_groups_that_differ_and_hold_no_relation_show_none():
    # Over all samples together the correlation is 0.99: the prompts make it, not the answers.
    far = [[(base + x, base + y) for x, y in ((0, 0), (0, 1), (1, 0), (1, 1))] for base in (0.0, 10.0, 20.0)]
    assert within(far) == (0.0, 12)
