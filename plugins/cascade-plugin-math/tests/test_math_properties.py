"""Properties of the verifier: variants of a right answer are right, neighbours are wrong, and no text makes it raise."""

import json
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from cascade_plugin_math.verifier.verdict import judge
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cascade_core.errors import TaskError

FUZZ = settings(deadline=None, max_examples=4 * settings.default.max_examples)  # the profile `deep` makes it a long run
DATA = Path(__file__).parent / "data"
ROWS = [
    json.loads(line)
    for name in ("cases", "variants")
    for line in (DATA / f"math_{name}.jsonl").read_text().splitlines()
]
WRITTEN = sorted(
    {
        text
        for row in ROWS
        for text in (row | row.get("input", {})).values()
        if isinstance(text, str) and 0 < len(text) < 400
    }
)
spliced = st.builds(
    lambda one, two, here, there: one[: here % (len(one) + 1)] + two[there % len(two) :],
    st.sampled_from(WRITTEN), st.sampled_from(WRITTEN), st.integers(0, 400), st.integers(0, 400),
)  # fmt: skip
integers = st.integers(-(10**12), 10**12)
small = st.integers(1, 200)
WRAPPERS = [
    "{}",
    " {} ",
    "${}$",
    "\\text{{{}}}",
    "\\mathbf{{{}}}",
    "x = {}",
    "{}.",
    "\\left({}\\right)",
    "{{{}}}",
    "{}\\,",
    "+{}",
]


def right(answer, label, **more):
    return judge(f"So it is $\\boxed{{{answer}}}$.", label, **more).right


@given(integers, st.sampled_from(WRAPPERS[:-1]))
def test_an_integer_in_any_dress_is_itself(number, wrapper):
    assert right(wrapper.format(number), str(number))


@given(integers, integers)
def test_two_integers_are_right_only_if_equal(one, two):
    assert right(str(one), str(two)) == (one == two)


@given(integers)
def test_grouped_thousands_are_the_number(number):
    for separator in ("{,}", "\\,", ",\\!", "\u202f", ","):
        assert right(f"{number:,}".replace(",", separator), str(number))


@given(integers, st.integers(-3, 3).filter(bool))
def test_a_neighbour_of_an_integer_is_wrong(number, step):
    assert not right(str(number + step), str(number))


@given(st.fractions(max_denominator=500))
def test_a_fraction_in_any_notation_is_itself(value):
    top, bottom = value.numerator, value.denominator
    for text in (
        f"{top}/{bottom}",
        f"\\frac{{{top}}}{{{bottom}}}",
        f"{{{top} \\over {bottom}}}",
        f"{top} \\div {bottom}",
        f"\\dfrac{{{3 * top}}}{{{3 * bottom}}}",
    ):
        assert right(text, f"\\frac{{{top}}}{{{bottom}}}"), text


@given(st.fractions(max_denominator=60), st.fractions(max_denominator=60))
def test_two_fractions_are_right_only_if_equal(one, two):
    assert right(str(one), str(two)) == (one == two)


@given(st.integers(1, 50), small, small)
def test_a_mixed_number_is_whole_and_fraction(whole, top, more):
    value = whole + Fraction(top, top + more)
    assert right(f"{whole}\\frac{{{top}}}{{{top + more}}}", f"{value.numerator}/{value.denominator}")
    assert right(f"-{whole} {top}/{top + more}", f"-{value.numerator}/{value.denominator}")


@given(st.decimals(-1000, 1000, places=4))
def test_a_decimal_is_its_fraction(value):
    exact = Fraction(value)
    assert right(str(value), f"\\frac{{{exact.numerator}}}{{{exact.denominator}}}")
    assert right(f"{value * 100}\\%", str(value))
    assert not right(str(value + Decimal("0.0001")), str(value))


@given(st.integers(0, 99), st.integers(1, 999))
def test_a_repeating_decimal_is_its_fraction(start, period):
    digits = str(period)
    value = Fraction(start, 100) + Fraction(period, (10 ** len(digits) - 1) * 100)
    assert right(f"0.{start:02d}\\overline{{{digits}}}", f"{value.numerator}/{value.denominator}")


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_a_list_has_no_order_and_a_tuple_has_one(values, random):
    shuffled = values[:]
    random.shuffle(shuffled)
    plain, mixed = ", ".join(map(str, values)), ", ".join(map(str, shuffled))
    assert right(mixed, plain)
    assert right(f"\\{{{mixed}\\}}", plain)
    assert right(f"({mixed})", f"({plain})") == (mixed == plain)
    assert not right(", ".join(map(str, shuffled[1:])), plain)
    assert not right(f"{mixed}, 77", plain)


@settings(deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4), small)
def test_a_polynomial_is_its_expanded_product(roots, factor):
    product = "".join(f"(x-({root}))" for root in roots)
    coefficients = [factor]
    for root in roots:
        coefficients = [a - root * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)]
    expanded = "+".join(f"({c})x^{{{len(roots) - k}}}" for k, c in enumerate(coefficients))
    assert right(f"{factor}{product}", expanded)
    assert not right(f"{factor}{product}+1", expanded)


@settings(deadline=None)
@given(st.integers(-20, 20), st.integers(-20, 20), st.booleans(), st.booleans())
def test_an_interval_is_its_inequality(one, two, closed_low, closed_high):
    assume(one != two)
    low, high = sorted((one, two))
    interval = f"{'[' if closed_low else '('}{low},{high}{']' if closed_high else ')'}"
    chain = f"{low}{'<=' if closed_low else '<'}x{'<=' if closed_high else '<'}{high}"
    assert right(chain, interval)
    other_end = ("(" if closed_low else "[") + interval[1:]
    assert not right(chain, other_end)


@given(
    st.sampled_from(
        [
            "7/3",
            "\\sqrt{2}",
            "x^2+1",
            "(1,2)",
            "[0,1)",
            "\\{1,2\\}",
            "5\\text{ cm}",
            "50\\%",
            "x>2",
            "y=2x",
            "\\text{red}",
            "B",
            "1:2",
            "\\pi",
            "3+4i",
            "\\infty",
        ]
    )
)
def test_a_label_is_right_against_itself_in_any_layout(label):
    for text in (label, f" {label} ", f"\\displaystyle {label}", label.replace(",", ", "), f"${label}$"):
        assert right(text, label)


LATEX = st.lists(
    st.sampled_from(
        ["\\frac", "{", "}", "(", ")", "[", "]", "\\{", "\\}", "|", "\\boxed{", "^", "_", "\\sqrt", "\\text{", "$", "\\circ", "\\pm", ",", ";", ":", "=", "<",
         "\\le", "\\in", "\\cup", "!", "%", "1", "23", "0", "x", "n", "e", "i", "\\pi", "\\infty", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "\\log", "\\sin",
         "\\sum", "\\int", "\\ldots", " or ", " and ", "cm", ".", "-", "+", "*", "/", "'", "~", "\\", "\ud800", "\x00", "½", "²", "\\mathbb{R}", "\\binom", "\\for", "\\per", "\\C", " to ", "_{10}C_3", "\\left\\{", "\\over", "\\not", "9" * 300]
    ),
    max_size=24,
).map("".join)  # fmt: skip


def judged_twice(response, label, problem, answer):
    """Judges twice: the same verdict or the same error of the task, and soon."""
    begun = time.process_time()
    try:
        first = judge(response, label, problem=problem, answer=answer)
    except TaskError:
        first = None
    try:
        assert first == judge(response, label, problem=problem, answer=answer)
    except TaskError:
        assert first is None
    assert time.process_time() - begun < 2.0


@FUZZ
@given(LATEX, LATEX, st.sampled_from(["boxed", "stated"]))
def test_no_text_makes_it_raise_or_linger(response, label, answer):
    judged_twice(f"\\boxed{{{response}}}", label, response, answer)


@FUZZ
@given(spliced, spliced, spliced, st.sampled_from(["boxed", "stated"]))
def test_no_splice_of_hard_cases_makes_it_raise_or_linger(response, label, problem, answer):
    judged_twice(response, label, problem, answer)
    judged_twice(f"\\boxed{{{label}}}", label, problem, answer)


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(["5", "x+1", "(0,1)", "\\text{red}", "B"]))
def test_arbitrary_text_is_judged(response, label):
    assert judge(response, label, answer="stated").right in (True, False)


@given(st.text(max_size=80))
def test_an_arbitrary_label_is_judged_or_refused(label):
    try:
        assert judge("\\boxed{5}", label).right in (True, False)
    except TaskError as error:
        assert "label" in str(error)


@pytest.mark.parametrize("label", [None, "", " ", [], {}, "\\boxed{}"])
def test_a_label_that_says_nothing_is_an_error_of_the_task(label):
    with pytest.raises(TaskError):
        judge("\\boxed{5}", label)


@pytest.mark.parametrize(("label", "answer"), [(5, "5"), (0.5, "1/2"), (True, "yes")])
def test_a_label_may_be_a_json_value(label, answer):
    assert right(answer, label)
