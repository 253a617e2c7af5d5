"""Checkers: what counts as the same output, properties of each, and hostile outputs."""

import random
import time
from decimal import Decimal

import pytest
from cascade_plugin_code import checkers
from cascade_plugin_code.checkers import Checker
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import TaskError

TOKENS, LINES = Checker("tokens"), Checker("lines")
FLOAT, EXACT = Checker("float"), Checker("float", ints_exact=True)


@pytest.mark.parametrize(
    ("checker", "output", "expected", "right"),
    [
        (TOKENS, b"", "", True),
        (TOKENS, b"\n \t", "", True),
        (TOKENS, b"", "0", False),
        (TOKENS, b"1\v2\f3", "1 2 3", True),
        (TOKENS, "1\xa02".encode(), "1 2", False),
        (TOKENS, b"\xef\xbb\xbf5", "5", False),
        (TOKENS, b"5\x00", "5", False),
        (TOKENS, b"+5", "5", False),
        (TOKENS, b"12", "1 2", False),
        (TOKENS, "é".encode("latin-1"), "é", False),
        (LINES, b"a  \nb\t\n\n", "a\nb", True),
        (LINES, b"a\r\nb\r\n", "a\nb\n", True),
        (LINES, b"a\nb", "a\r\nb\r\n", True),
        (LINES, b" a", "a", False),
        (LINES, b"a  b", "a b", False),
        (LINES, b"\na", "a", False),
        (LINES, b"a\n\nb", "a\nb", False),
        (LINES, b"a\rb", "a\nb", False),
        (FLOAT, b"0.3333333", "0.333333", True),
        (FLOAT, b"0.33334", "0.333333", False),
        (FLOAT, b"1.000001", "1", True),
        (FLOAT, b"1.0000011", "1", False),
        (FLOAT, b"-0.0", "0", True),
        (FLOAT, b"1e-7", "0", True),
        (FLOAT, b".5", "0.5", True),
        (FLOAT, b"5.", "5.0", True),
        (FLOAT, b"+5", "5.0", True),
        (FLOAT, b"1E3", "1000.0", True),
        (FLOAT, b"1,5", "1.5", False),
        (FLOAT, b"1e", "1", False),
        (FLOAT, b"1e1000000000000000000000", "1.0", False),
        (FLOAT, b"1e999999999", "1.0", False),
        (FLOAT, b"1e-999999999", "0.0", True),
        (FLOAT, b"NaN", "nan", True),
        (FLOAT, b"nan", "0.5", False),
        (FLOAT, b"0.5", "nan", False),
        (FLOAT, b"inf", "inf", True),
        (FLOAT, b"-inf", "inf", False),
        (FLOAT, b"Infinity", "inf", True),
        (FLOAT, b"1e400", "inf", False),
        (FLOAT, "٥".encode(), "5", False),
        (FLOAT, b"YES 0.50000001", "YES 0.5", True),
        (FLOAT, b"yes 0.5", "YES 0.5", False),
        (EXACT, b"1000000008", "1000000007", False),
        (EXACT, b"7.0000001", "7", False),
        (EXACT, b"7.0", "7", True),
        (EXACT, b"7", "7.0000001", True),
        (EXACT, b"1" + b"0" * 80 + b"1", "1" + "0" * 81, False),
        (Checker("float", abs=0.0, rel=0.0), b"0.1", "0.10", True),
        (Checker("float", abs=0.0, rel=0.0), b"0.1000000000000000000001", "0.1", False),
        (Checker("float", abs=1.0, rel=0.0), b"1000001", "1000000.0", True),
        (Checker("unordered-tokens"), b"1 1 2", "2\n1\n1", True),
        (Checker("unordered-tokens"), b"1 1 2", "1 2 2", False),
        (Checker("unordered-tokens"), b"1 2", "1 2 2", False),
        (Checker("unordered-lines"), b"b 2\na 1\n", "a 1\nb 2", True),
        (Checker("unordered-lines"), b"b 1\na 2\n", "a 1\nb 2", False),
        (Checker("unordered-lines"), b"a\na\nb", "a\nb\nb", False),
        (Checker("unordered-lines"), b"\n\na", "a", True),
        (Checker("tokens", ignore_case=True), b"yes", "YES", True),
        (Checker("tokens", ignore_case=True), b"\xff", "YES", False),
    ],
)
def test_an_output_is_judged_by_its_checker(checker, output, expected, right):
    assert (checker.fault(output, expected) == "") is right


WORDS = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=0x24F, blacklist_characters="\x7f\x85\xa0\xad"), min_size=1, max_size=6), min_size=1, max_size=12)  # fmt: skip


def spaced(words, seed):
    draw = random.Random(seed)
    return "".join(draw.choice([" ", "\n", "\t", "\r\n", "  \n\n"]) + word for word in words) + draw.choice(["", "\n"])


@given(WORDS, st.integers(0, 1000))
def test_other_white_space_changes_no_verdict_of_tokens(words, seed):
    for checker in (TOKENS, FLOAT, EXACT, Checker("unordered-tokens")):
        assert checker.fault(spaced(words, seed).encode(), " ".join(words)) == ""


@given(WORDS, st.integers(0, 1000), st.data())
def test_a_changed_token_is_found(words, seed, data):
    place = data.draw(st.integers(0, len(words) - 1))
    changed = [*words[:place], words[place] + "x", *words[place + 1 :]]
    for checker in (TOKENS, Checker("unordered-tokens"), Checker("lines"), Checker("unordered-lines")):
        assert checker.fault(spaced(changed, seed).encode(), spaced(words, seed))
    for other in (words[:place] + words[place + 1 :], [*words, "x"]):
        assert TOKENS.fault(" ".join(other).encode(), " ".join(words))
        assert FLOAT.fault(" ".join(other).encode(), " ".join(words))


@given(WORDS, st.randoms())
def test_a_shuffled_output_is_right_only_where_order_is_free(words, draw):
    shuffled = draw.sample(words, len(words))
    assert Checker("unordered-tokens").fault(" ".join(shuffled).encode(), " ".join(words)) == ""
    assert Checker("unordered-lines").fault("\n".join(shuffled).encode(), "\n".join(words)) == ""
    assert (TOKENS.fault(" ".join(shuffled).encode(), " ".join(words)) == "") is (shuffled == words)
    assert (LINES.fault("\n".join(shuffled).encode(), "\n".join(words)) == "") is (shuffled == words)


@given(st.decimals(-(10**9), 10**9, places=6), st.sampled_from(["{:f}", "{:+f}", "{:E}", "{:.12f}", "{:012.6f}"]))
def test_a_number_written_another_way_is_the_same(number, form):
    assert FLOAT.fault(form.format(number).encode(), f"{number:f}") == ""


@given(st.decimals(-(10**9), 10**9, places=6), st.sampled_from([-1, 1]))
def test_a_number_off_by_twice_the_tolerance_is_wrong(number, sign):
    off = number + sign * 2 * max(Decimal(1), abs(number)) / 1_000_000
    assert FLOAT.fault(f"{off:f}".encode(), f"{number:f}")


@given(st.integers(-(10**40), 10**40), st.sampled_from([-1, 1]))
def test_an_exact_integer_has_no_neighbour(number, off):
    assert EXACT.fault(str(number).encode(), str(number)) == ""
    assert EXACT.fault(str(number + off).encode(), str(number))


@given(st.binary(max_size=60), st.text(max_size=40), st.sampled_from(checkers.TYPES[:-1]), st.booleans())
def test_any_output_gets_a_verdict_that_can_be_told(output, expected, kind, flag):
    fault = Checker(kind, ints_exact=flag, ignore_case=flag).fault(output, expected)
    fault.encode()
    assert isinstance(fault, str)


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=60), st.sampled_from(checkers.TYPES[:-1]))
def test_the_expected_output_itself_is_right(expected, kind):
    assert Checker(kind).fault(expected.encode(), expected) == ""


@pytest.mark.parametrize("kind", checkers.TYPES[:-1])
@pytest.mark.parametrize(
    "output", [b"1 " * 2_000_000, b"9" * 4_000_000, b"\n" * 4_000_000, b"\xff" * 4_000_000, b"1e999999999 " * 100_000]
)
def test_a_large_output_costs_little(kind, output):
    begun = time.process_time()
    assert Checker(kind, ints_exact=True).fault(output, "1 " * 100_000)
    assert time.process_time() - begun < 5.0


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        [],
        {"type": "exact"},
        {"type": "tokens", "abs": 1e-6},
        {"type": "float", "abs": -1},
        {"type": "float", "rel": float("nan")},
        {"type": "float", "abs": True},
        {"type": "float", "ints_exact": 1},
        {"type": "tokens", "ignore_case": "yes"},
        {"type": "program"},
        {"type": "program", "source": " "},
        {"type": "program", "source": "x", "language": "cobol"},
        {"type": "float", "tolerance": 1},
    ],
)
def test_a_broken_checker_is_an_error_of_the_task(written):
    with pytest.raises(TaskError):
        checkers.read(written)


def test_one_tolerance_alone_is_the_only_one():
    assert (checkers.read({"type": "float"}).abs, checkers.read({"type": "float"}).rel) == (1e-6, 1e-6)
    only = checkers.read({"type": "float", "abs": 0.1})
    assert (only.abs, only.rel) == (0.1, 0.0)
    assert checkers.read("lines") == Checker("lines", abs=1e-6, rel=1e-6)
