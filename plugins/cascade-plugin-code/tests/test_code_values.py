"""Typed values there and back, what cannot travel, and which values are the same."""

import math
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
from cascade_plugin_code import comparison
from cascade_plugin_code.comparison import Comparison, value_of
from cascade_plugin_code.harness import program
from cascade_plugin_code.harness.typed import DEEPEST, Unplain, dumps, loads
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.errors import TaskError

EQUAL = Comparison()
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.complex_numbers(allow_nan=False)
)
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_with_its_types(value):
    back = loads(dumps(value))
    assert back == value and type(back) is type(value)
    assert sorted(dumps(back)) == sorted(dumps(value))  # a set may come back in another order


@given(VALUES)
def test_a_value_is_the_same_as_itself(value):
    assert EQUAL.same(loads(dumps(value)), value)


@given(VALUES, VALUES)
def test_values_that_are_the_same_are_equal_in_python_too(one, other):
    if Comparison(float_abs=0.0, float_rel=0.0).same(one, other):
        assert dumps(jsonic(one)) == dumps(jsonic(other))


def jsonic(value):
    """The value as this package sees it: one kind of sequence, integral floats as integers, keys as JSON writes them."""
    if isinstance(value, list | tuple):
        return [jsonic(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(comparison._packed(item) for item in value)
    if isinstance(value, dict):
        return sorted(
            (comparison._packed(comparison._json_key(key)), dumps(jsonic(item))) for key, item in value.items()
        )
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return jsonic([value.real, value.imag]) if isinstance(value, complex) else value


@pytest.mark.parametrize("number", [math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, 0.1])
def test_a_float_comes_back_to_the_bit(number):
    assert repr(loads(dumps(number))) == repr(number)


def test_what_json_has_not_comes_back():
    assert math.isnan(loads(dumps([math.nan]))[0])
    assert loads(dumps("\ud800")) == "\ud800"
    assert loads(dumps(1 << 100_000)) == 1 << 100_000
    assert loads(dumps(bytearray(b"x"))) == b"x"


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (defaultdict(int, {1: 2}), {1: 2}),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("Point", "x y")(1, 2), (1, 2)),
        (Colour.RED, 1),
        (type("Text", (str,), {})("x"), "x"),
        (type("Number", (float,), {})(0.5), 0.5),
    ],
)
def test_a_subclass_travels_as_its_base(value, base):
    back = loads(dumps(value))
    assert back == base and type(back) is type(base)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def doubling(times):
    value = [1]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), len, iter([]), map(str, []), range(3), {}.keys(), Decimal(1), Fraction(1, 2), int, ..., [object()], {1: print}, nested(100_000), doubling(60)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_plain_data_cannot_travel(value):
    with pytest.raises(Unplain):
        dumps(value)


def test_a_value_that_holds_itself_cannot_travel():
    value = []
    value.append(value)
    with pytest.raises(Unplain, match="deep"):
        dumps(value)
    assert loads(dumps(nested(DEEPEST))) == nested(DEEPEST)


HOSTILE = [
    b"",
    b"x",
    b"nn",
    b"i;",
    b"i",
    b"ix;",
    b"i5",
    b"i\xff;",
    b"d;",
    b"d0x1p9999;",
    b"dx;",
    b"c1;",
    b"c1,2,3;",
    b"s5:abc",
    b"s-1:",
    b"s:",
    b"s1",
    b"s9999999999999:a",
    b"s1:\xff",
    b"s\xb2:a",
    b"b3:ab",
    b"L1;",
    b"L2;n",
    b"L-1;",
    b"L999999999999;n",
    b"L;",
    b"D1;n",
    b"D2;i1;ni1;n",
    b"D1;L0;n",
    b"S1;L0;",
    b"Z1;D0;",
    b"L1;" * 500_000,
    b"L1;" * (DEEPEST + 1) + b"n",
    b"L1000001;" + b"n" * 1_000_001,
    b"T2;" * 90,
    b'{"value": 1}',
    b"\x80\x04\x95cposix\nsystem\n",
    "true".encode("utf-16"),
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:30]))
def test_bytes_that_are_no_value_are_refused(data):
    with pytest.raises(Unplain):
        loads(data)


@given(st.binary(max_size=40) | st.lists(st.sampled_from([*"ntfidcsbLTSZD0123456789;:,-"]), max_size=40).map(lambda signs: "".join(signs).encode()))  # fmt: skip
def test_any_bytes_are_a_value_or_refused(data):
    try:
        value = loads(data)
    except Unplain:
        return
    assert sorted(dumps(loads(dumps(value)))) == sorted(dumps(value))


@given(VALUES, st.data())
def test_a_cut_value_is_refused(value, data):
    whole = dumps(value)
    with pytest.raises(Unplain):
        loads(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(Unplain):
        loads(whole + b"n")


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (False, None, False),
        ("", None, False),
        (None, "", False),
        ([], None, False),
        ({}, [], False),
        ("3", 3, False),
        (3, "3", False),
        ("a", ["a"], False),
        (b"a", "a", False),
        (3.0, 3, True),
        (3.0000001, 3, False),
        (3, 3.0, True),
        (2**53 + 1, float(2**53), True),
        (float(2**53), 2**53 + 1, False),
        (10**400, 1.0, False),
        (1.0, 10**400, False),
        (10**400, 10**400, True),
        (0.1 + 0.2, 0.3, True),
        (0.30001, 0.3, False),
        (1e-7, 0.0, True),
        (1e12 + 1, 1e12, True),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, math.inf, True),
        (-math.inf, math.inf, False),
        (1.7e308, math.inf, False),
        (math.inf, 1.7e308, False),
        ((1, 2), [1, 2], True),
        ([1, (2, [3])], (1, [2, (3,)]), True),
        ([1, 2], [2, 1], False),
        ([1, 2], [1, 2, 3], False),
        ([1, True], [1, 1], False),
        ({1, 2}, [1, 2], False),
        ([1, 2], {1, 2}, False),
        ({2, 1}, {1, 2}, True),
        ({1, 2}, frozenset({1, 2}), True),
        ({1.0, 2}, {1, 2}, True),
        ({0.1 + 0.2, 5}, {0.3, 5}, True),
        ({0.1 + 0.2, 5}, {0.3, 6}, False),
        ({0.3, 0.1 + 0.2}, {0.3}, False),
        ({True}, {1}, False),
        ({"1"}, {1}, False),
        ({1: "a"}, {"1": "a"}, True),
        ({"1": "a"}, {1: "a"}, False),
        ({True: 1, None: 2, 1.5: 3}, {"true": 1, "null": 2, "1.5": 3}, True),
        ({1: "a", "1": "b"}, {"1": "b"}, False),
        ({1: "a", "1": "a"}, {"1": "a", "2": "a"}, False),
        ({"a": 1.0000000001}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({10**5000: 1}, {"1": 1}, False),
        ({(1, 2): 1}, {(1, 2): 1}, True),
        ("\ud800", "?", False),
        ("é", "e\u0301", False),
        (1 + 2j, 1 + 2j, True),
        (1 + 0j, 1, False),
    ],
)
def test_values_are_the_same_by_type_and_value(found, expected, same):
    assert EQUAL.same(found, expected) is same


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ([3, 1, 2], [1, 2, 3], True),
        ([1, 1, 2], [1, 2, 2], False),
        ([1, 2], [1, 2, 2], False),
        ([0.3, 0.1], [0.1, 0.1 + 0.2], True),
        ([[2, 1]], [[1, 2]], False),
        ([[2], [1]], [[1], [2]], True),
        ([True], [1], False),
        ("ab", "ba", False),
        ({1: [2, 1]}, {1: [1, 2]}, False),
    ],
)
def test_an_unordered_comparison_frees_the_outermost_order_alone(found, expected, same):
    assert Comparison("unordered").same(found, expected) is same


def test_integers_may_be_given_a_tolerance():
    assert not EQUAL.same(1_000_000_008, 1_000_000_007)
    assert Comparison(ints_exact=False).same(1_000_000_008, 1_000_000_007)
    assert not Comparison(ints_exact=False).same(10**400, 7)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ({"__float__": "inf"}, math.inf),
        ({"__int__": "123456789012345678901234567890"}, 123456789012345678901234567890),
        ({"__tuple__": [1, [2]]}, (1, [2])),
        ({"__set__": [1, [2, 3]]}, {1, (2, 3)}),
        ({"__bytes__": "00ff"}, b"\x00\xff"),
        ({"__complex__": [1, 2]}, 1 + 2j),
        ({"__dict__": [[1, "a"], [[1, 2], "b"]]}, {1: "a", (1, 2): "b"}),
        ([{"__frozenset__": []}], [frozenset()]),
        ({"__float__": 1, "x": 2}, {"__float__": 1, "x": 2}),
        ({"a": {"__float__": "0.5"}}, {"a": 0.5}),
    ],
)
def test_marks_stand_for_what_json_has_not(written, value):
    found = value_of(written, "test 1")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "written",
    [{"__float__": "x"}, {"__int__": "1.5"}, {"__set__": [{}]}, {"__bytes__": "0"}, {"__complex__": [1]}, {"__dict__": [[1]]}, {"__tuple__": 5}, nested(500)],
    ids=lambda written: repr(written)[:30],
)  # fmt: skip
def test_a_broken_mark_is_an_error_of_the_task(written):
    with pytest.raises(TaskError, match="test 7"):
        value_of(written, "test 7")


@pytest.mark.parametrize("written", [{"type": "approx"}, {"float_abs": -1}, {"abs": 1}, {"ints_exact": 1}, 5])
def test_a_broken_comparison_is_an_error_of_the_task(written):
    with pytest.raises(TaskError):
        comparison.read(written)


@pytest.mark.parametrize("name", ["call", "serve", "examine"])
def test_a_harness_is_one_program_of_the_standard_library(name):
    import ast

    tree = ast.parse(program(name), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in imported} <= sys.stdlib_module_names
    assert 'if __name__ == "__main__":\n    main()' in program(name)
