"""What stands around a value, and values in words: check marks, roundings in brackets, ordinals, scales, spelled numbers."""

import pytest
from cascade_plugin_math.verifier import spelled, tables
from cascade_plugin_math.verifier.policy import Policy
from cascade_plugin_math.verifier.verdict import judge
from hypothesis import given
from hypothesis import strategies as st

RIGHT = {
    "a check mark behind the value": [("17\\,\\checkmark", "17"), ("17 ✅", "17"), ("17\\ \\blacksquare", "17"), ("\\square", "\\square")],
    "a sign of conclusion before it": [("\\therefore x=5", "5"), ("\\Rightarrow 7", "7"), ("∴ 7", "7")],
    "a definition": [("x:=5", "5"), ("3:4", "3:4")],
    "its own rounding": [
        ("\\sqrt2\\ (\\approx1.414)", "\\sqrt2"),
        ("\\sqrt2 = 1.414...", "\\sqrt2"),
        ("4\\pi\\,(\\approx 12.566\\ldots)", "4\\pi"),
        ("\\frac{22}{7}\\text{ (approximately 3.14)}", "\\frac{22}{7}"),
        ("\\sqrt2\\text{ or about }1.414", "\\sqrt2"),
        ("4\\pi\\text{ cm (approximately 12.57 cm)}", "4\\pi\\text{ cm}"),
        ("4\\pi\\text{ cm} \\approx 12.57\\text{ cm}", "4\\pi"), ("4\\pi\\text{ m (about 12.57 m)}", "4\\pi"), ("25.4\\text{ mm (about 1 in)}", "25.4\\text{ mm}"),
    ],
    "an ordinal": [("5^{\\text{th}}", "5"), ("3^{rd}", "3"), ("21^{\\mathrm{st}}", "21"), ("2^{\\text{nd}}", "2"), ("11^{th}", "11"), ("2^{dn}", "2^{nd}"), ("4^{nd/2}", "2^{nd}")],
    "a degree sign made of the letter o": [("30^o", "30^\\circ"), ("90^{\\text{o}}", "\\frac{\\pi}{2}")],
    "a scale of temperature": [
        ("25°F", "25"), ("-15^\\circ\\text{C}", "-15"), ("20°C", "20^\\circ\\mathrm{C}"), ("20\\text{ degrees Celsius}", "20^\\circ C"), ("-5℃", "-5"),
    ],
    "a prefix or sign of physics": [
        ("10\\ \\Omega", "10\\text{ ohms}"), ("10 Ω", "10"), ("10\\mathrm{\\Omega}", "10"), ("3\\Omega", "3\\Omega"), ("4.5\\ \\mu\\text{m}", "4.5\\times10^{-6}\\text{ m}"), ("2\\mu", "2\\mu"),
    ],
    "a part of a thing": [("3/4 of a cup", "3/4"), ("3/4 of the whole cake", "3/4"), ("\\frac{2}{3}\\text{ of the cake}", "2/3"), ("12\\text{ men}", "12"), ("3 xyz", "3xyz"), ("3 bay", "3aby"), ("4 ace", "4ace")],
    "a raised fraction": [("²⁄₃", "2/3"), ("1²⁄₃", "5/3"), ("{}^{1}/_{7}", "1/7")],
    "a polar form": [("2\\operatorname{cis} 60^\\circ", "1+\\sqrt3 i"), ("2\\,\\text{cis}\\,\\frac{\\pi}{3}", "1+i\\sqrt3")],
    "a function of another variable": [("f(t)=2t+1", "f(x)=2x+1"), ("g(y)=y^2", "g(x)=x^2")],
    "an arithmetic progression for a class": [
        ("n=5k+1, n=5k+2, k\\in\\mathbb{Z}", "n\\equiv1,2\\pmod5"), ("n=5k+1, 5k+2, k\\in\\mathbb{Z}", "n\\equiv1,2\\pmod5"),
        ("n=5k+1, k\\in\\mathbb{Z}", "n\\equiv1\\pmod5"), ("n\\equiv 1\\pmod 5", "n=5k+1,k\\in\\mathbb{Z}"),
    ],
    "a piecewise function": [
        ("\\begin{cases}x & x\\ge0\\\\ -x & x<0\\end{cases}", "\\begin{cases}-x & \\text{if }x<0\\\\ x & \\text{if }x\\ge0\\end{cases}"),
        ("\\begin{cases}x, & x\\ge0,\\\\ 1, & \\text{otherwise}\\end{cases}", "\\begin{cases}x & \\text{for } x\\ge0\\\\ 1 & \\text{otherwise}\\end{cases}"),
    ],
    "letters of a product": [("\\pi R s", "\\pi Rs"), ("Rs", "sR")],
    "names of things as letters": [("\\text{A, B, and C}", "A,B,C"), ("\\text{Option B}", "B"), ("\\text{choice (B)}", "B"), ("B", "\\text{Option B}")],
    "a number in words": [
        ("\\text{one hundred and five}", "105"), ("\\text{two thousand twenty-four}", "2024"), ("\\text{three quarters}", "3/4"),
        ("\\text{minus two and a half}", "-2.5"), ("\\text{three point one four}", "3.14"), ("\\text{nineteen hundred}", "1900"),
        ("\\text{a third}", "1/3"), ("\\text{half}", "1/2"), ("\\text{five halves}", "5/2"), ("\\text{twenty-one thirds}", "7"), ("\\text{twenty-fifth}", "\\text{twenty-fifth}"),
    ],
}  # fmt: skip
WRONG = {
    "nothing but ornament": [("\\checkmark", "7"), ("\\Rightarrow", "7"), ("✅✅", "7")],
    "another value offered as a rounding": [("7\\text{ or about }8", "8"), ("7\\text{ or about }8", "7"), ("7 (\\approx 9)", "9"), ("\\text{about }7", "7")],
    "a rounding in another unit": [("12\\text{ cm (about 12 in)}", "12\\text{ cm}"), ("12\\text{ cm (about 12 kg)}", "12\\text{ cm}"), ("4\\pi\\text{ m}\\approx 12.57\\text{ cm}", "4\\pi\\text{ cm}")],
    "another scale": [("20°F", "20°C"), ("-5℃", "5"), ("10\\,\\Omega", "10\\text{ V}")],
    "a factor": [("\\pi", "\\pi Rs"), ("2", "2\\Omega"), ("2 ace", "2"), ("7 aei", "7"), ("Rs. 50", "51")],
    "a power that is no ordinal": [("x^{th}", "x"), ("90^o", "1"), ("2", "2^{nd}"), ("2^{st}", "2^{nd}"), ("2^{st}", "2"), ("11^{st}", "11"), ("2.5^{th}", "2.5")],
    "another function": [("g(y)=x^2", "g(x)=x^2"), ("h(y)=y^2+1", "h(x)=x^2"), ("f(2)=5", "f(x)=5x")],
    "another class": [
        ("n\\equiv 2\\pmod 5", "n=5k+1,k\\in\\mathbb{Z}"), ("n=5k+1,k\\in\\mathbb{Z}", "n\\equiv1\\pmod{10}"), ("5k+1,k\\in\\mathbb{Z}", "1"),
        ("n=5k+1,k\\in\\mathbb{N}", "n\\equiv1\\pmod5"), ("n=k^2+1,k\\in\\mathbb{Z}", "n\\equiv1\\pmod3"),
        ("n=5k+1, m=5k+2, k\\in\\mathbb{Z}", "n\\equiv1,2\\pmod5"),
    ],
    "another piece": [("\\begin{cases}x & x>0\\\\ -x & x\\le0\\end{cases}", "\\begin{cases}x & \\text{if }x>0\\\\ x & \\text{if }x\\le0\\end{cases}")],
    "an ordinal that is no fraction": [
        ("\\text{twenty-fifth}", "4"), ("4", "\\text{twenty-fifth}"), ("\\text{thirty-third}", "10"), ("\\text{one hundred fifth}", "20"),
        ("\\text{one hundred quarter}", "25"), ("\\text{five half}", "5/2"),
    ],
    "a part of a number": [("2 of the six", "2"), ("2 of the first six", "2"), ("2 of the 6", "2"), ("3/4 of a dozen", "3/4"), ("x=5 of the form", "5")],
    "other words": [
        ("\\text{five and six}", "11"), ("\\text{three fifths}", "5/3"), ("\\text{third}", "1/3"), ("\\text{a}", "1"), ("\\text{five or six}", "5"),
        ("\\text{Option B or C}", "B"), ("\\text{Option C}", "B"), ("2/3 of the cake or 1/3", "2/3"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "answer", "label"), [(kind, *row) for kind, rows in RIGHT.items() for row in rows])
def test_what_stands_around_a_value_does_not_change_it(kind, answer, label):
    assert judge(f"So we get $\\boxed{{{answer}}}$.", label).right, kind


@pytest.mark.parametrize(("kind", "answer", "label"), [(kind, *row) for kind, rows in WRONG.items() for row in rows])
def test_a_wording_never_makes_another_value_right(kind, answer, label):
    assert not judge(f"So we get $\\boxed{{{answer}}}$.", label).right, kind


PER_HOUR = "Find the speed in kilometers per hour."
ASKED = [
    (True, "60\\text{ km/h}", "60", PER_HOUR),
    (True, "60 km/h", "60", ""),
    (True, "1\\text{ km/min}", "60", PER_HOUR),
    (False, "60\\text{ mph}", "60", PER_HOUR),
    (False, "60\\text{ km}", "60", PER_HOUR),
    (True, "60 m/s", "60", "What is the speed in metres per second?"),
    (True, "60 m/s", "60", "What is the speed in m/s?"),
    (False, "60 m/s", "60", "What is the speed in km/h?"),
    (False, "60 m/s", "60", "Let m and s be integers. Find the speed in metres per second."),
    (False, "2m/s", "2", "Express the ratio in terms of m and s."),
    (True, "9.8\\text{ m/s}^2", "9.8", "Give the acceleration in metres per second squared."),
    (True, "3\\text{ kg/m}^3", "3", "Give the density in kilograms per cubic metre."),
    (False, "60 s/m", "60", "He runs 5 metres in 3 seconds."),
    (False, "60 m s", "60", "He runs 5 metres in 3 seconds."),
    (False, "60 m^3", "60", "He runs 5 metres in 3 seconds."),
    (True, "60 m", "60", "He runs 5 metres in 3 seconds."),
    (True, "20 m/s", "20", "He runs 60 metres in 3 seconds. Find his average speed."),
    (True, "5 m/s", "5", "They move at 6 metres per second and 3 metres per second. Give the mean."),
    (False, "5 s/m", "5", "They move at 6 metres per second and 3 metres per second. Give the mean."),
    (True, "9.8 m/s^2", "9.8", "Give the acceleration in metres per second squared."),
    (True, "15 m^2", "15", "Find the area of a room of 3 metres by 5 metres."),
    (True, "9 m^2", "9", "How many square metres of carpet are needed?"),
    (False, "20 m^2", "20", "A square has sides of 5 metres. Find its perimeter."),
    (True, "8 m^3", "8", "A cube has edges of 2 metres. What is its volume?"),
    (True, "3 kg/m^3", "3", "Find the density of 6 kilograms that fill 2 cubic metres."),
    (True, "\\$5", "5", "Find his wage in dollars per hour."),
    (True, "5\\text{ dollars per hour}", "5", "Find his wage in dollars per hour."),
]


@pytest.mark.parametrize(("right", "answer", "label", "problem"), ASKED)
def test_a_rate_is_asked_in_its_own_unit(right, answer, label, problem):
    assert judge(f"\\boxed{{{answer}}}", label, problem=problem).right == right


NAMED = ["\\det A", "\\deg f", "\\operatorname{rank}(A)", "\\mathrm{Var}(X)", "\\lim_{x\\to0}f(x)", "m\\angle A", "\\|v\\|", "|\\vec v|", "\\int_0^1 f(x)\\,dx", "\\max_x f(x)", "\\text{Area}(ABC)"]  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_what_is_said_to_have_a_value_is_its_name(name):
    assert judge(f"\\boxed{{{name}=5}}", "5").right
    assert not judge(f"\\boxed{{{name}=6}}", "5").right
    assert not judge(f"\\boxed{{{name}=6=5}}", "5").right
    assert not judge(f"\\boxed{{{name}}}", "5").right


@pytest.mark.parametrize("equation", ["|x|=5", "n^2+1=5", "\\text{cm}\\,x=5", "\\max(3,5)=3"])
def test_an_equation_is_not_the_number_on_its_right(equation):
    assert not judge(f"\\boxed{{{equation}}}", equation.rpartition("=")[2]).right


@pytest.mark.parametrize("answer", ["50¢", "Rs. 50", "USD 50", "50 USD", "50 Rs"])
def test_a_sign_or_code_of_a_currency_is_a_unit(answer):
    assert judge(f"\\boxed{{{answer}}}", "50").right


def test_a_box_that_is_only_mentioned_is_no_box():
    assert judge("It is \\boxed{7}, in \\boxed notation.", "7").right
    assert judge("So \\boxed x.", "x").right


def test_an_announcement_may_end_in_a_full_width_colon():
    assert judge("Answer：7", "7", answer="stated").right


def test_the_last_answer_tag_that_is_opened_counts():
    assert judge("<answer>as in <answer>7</answer>", "7", answer="stated").right
    assert not judge("<answer>7 <answer>8</answer>", "7", answer="stated").right


CHOICE = Policy(answer_type="choice", choices="A-D")


@pytest.mark.parametrize("response", ["**B) 12**", "(B) 12 men", "B. twelve", "B) a man", "B: $x^2+1$"])
def test_a_response_that_is_one_option_with_its_text_chooses_it(response):
    assert judge(response, "B", policy=CHOICE, answer="stated").right


@pytest.mark.parametrize("response", ["B) 12 or C) 14", "A) 10 B) 12", "I like A, but B is the answer? Not sure."])
def test_options_that_are_listed_or_asked_about_are_not_chosen(response):
    assert not any(judge(response, letter, policy=CHOICE, answer="stated").right for letter in "ABC")


DOUBTED = ["A) or maybe D)", "A. No wait, B.", "A) is incorrect.", "A) 10, but rather C", "B: no", "A) 1 (B) 2", "A) 1 c) 2", "B) 10?", "B isn't it", "B) can't be"]  # fmt: skip


@pytest.mark.parametrize("response", DOUBTED)
def test_an_option_that_is_doubted_or_stands_beside_another_is_not_chosen(response):
    assert not any(judge(response, letter, policy=CHOICE, answer="stated").right for letter in "ABCD")


_ONES = tables.listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = tables.listed("twenty thirty forty fifty sixty seventy eighty ninety")


def _said(number: int) -> str:
    """The number as a person says it, from 0 to 999,999,999."""
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            link = " and " if name == "hundred" else " "
            return f"{_said(number // size)} {name}{link + _said(rest) if rest else ''}"
    if number < 20:
        return _ONES[number]
    tens = _TENS[number // 10 - 2]
    return f"{tens} {_ONES[number % 10]}" if number % 10 else tens


@given(st.integers(0, 10**9 - 1))
def test_a_number_is_read_as_it_is_said(number):
    assert spelled.value(_said(number)) == number


@given(
    st.lists(
        st.sampled_from(("and", "a", "one", "twenty", "hundred", "million", "half", "thirds", "point", "minus")),
        max_size=30,
    )
)
def test_words_of_numbers_in_any_order_are_a_bounded_number_or_none(said):
    value = spelled.value(" ".join(said))
    assert value is None or abs(value) < 10**18
