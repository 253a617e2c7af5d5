"""Charts that stay on their paper, and text and numbers fit to print."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.report import axis, plot, text

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)


# --- charts ---


@given(low=FINITE, high=FINITE)
def test_round_ticks_enclose_what_they_measure_and_are_few(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = axis.nice(low, high)
    slack = 1e-6 * max(abs(low), abs(high), axis.TINIEST)
    assert ticks[0] <= low + slack and ticks[-1] >= high - slack
    assert 2 <= len(ticks) <= 6


@given(st.lists(FINITE, min_size=1, max_size=700), st.integers(0, 10**6))
def test_a_chart_of_any_numbers_stays_on_its_paper(values: list[float], first: int) -> None:
    points = [(float(first + i), value) for i, value in enumerate(values)]
    for chart in (
        plot.lines("title", {"a": points, "b": points[:1]}),
        plot.stacked("title", {"a": [(x, abs(y)) for x, y in points]}, "s"),
    ):
        assert chart is not None
        for shape in chart.shapes:
            if "bar" in shape.look:
                continue
            for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", shape.path):
                assert axis.LEFT - 3.1 <= float(x) <= axis.WIDTH - axis.RIGHT + 3.1
                assert axis.TOP - 0.1 <= float(y) <= axis.HEIGHT - axis.BOTTOM + 0.1
        assert len(json.loads(chart.data)["step"]) <= plot.MOST_POINTS


@given(st.lists(FINITE, min_size=1, max_size=40), st.integers(1, 60))
def test_buckets_lose_no_spike(some: list[float], times: int) -> None:
    values = some * times
    found = plot.buckets([(float(i), value) for i, value in enumerate(values)])
    assert len(found) <= plot.MOST_POINTS
    assert min(bucket.low for bucket in found) == min(values) and max(bucket.high for bucket in found) == max(values)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.5)) | st.none(), min_size=1, max_size=13).filter(any))
def test_error_bars_of_shares_stay_between_zero_and_one(values: list[tuple[float, float] | None]) -> None:
    chart = plot.errorbars("b", [f"{i:02d}-s{i}" for i in range(len(values))], values, [False] * len(values))
    ticks = [float(tick.text.replace("−", "-")) for tick in chart.y_ticks]
    assert min(ticks) >= 0 and max(ticks) <= 1 and max(ticks) - min(ticks) >= 0.19


def test_the_axis_of_a_long_series_begins_and_ends_with_its_own_steps() -> None:
    chart = plot.lines("title", {"": [(float(i), 1.0) for i in range(1001)]})
    assert chart is not None
    assert (chart.x_ticks[0].text, chart.x_ticks[-1].text) == ("0", "1,000")


# --- text ---


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_visible_text_can_be_written_and_is_visible_again(value: str) -> None:
    once = text.visible(value)
    once.encode("utf-8")
    assert text.visible(once) == once


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs", "M")), max_size=100))
def test_visible_changes_no_character_that_can_be_seen(value: str) -> None:
    assert text.visible(value + "\n\t") == value + "\n\t"


@given(st.text(max_size=400), st.integers(2, 100))
def test_a_clip_keeps_both_ends_and_counts_what_it_left_out(value: str, limit: int) -> None:
    found = text.clip(value, limit)
    assert value.startswith(found.head) and value.endswith(found.tail)
    assert len(found.head) + found.omitted + len(found.tail) == len(value)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [(text.signed(-0.0001), "+0.000"), (text.signed(-0.05), "−0.050"), (text.plain(-1234.5, 1), "−1,234.5"), (text.short(3e-4), "3e−4"),
     (text.duration(59.6), "60 s"), (text.duration(3723), "1 h 02 min"), (text.moment(1e300), ""), (text.moment(0), "1970-01-01 00:00 UTC")],
)  # fmt: skip
def test_numbers_are_shown_as_people_write_them(shown: str, expected: str) -> None:
    assert shown == expected
