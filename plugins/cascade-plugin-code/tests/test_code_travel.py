"""Values between the solution and its tests: kinds, containers that are the same, changes made in place, objects that stay."""

import datetime as dt
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from cascade_plugin_code.domain import CodeDomain
from cascade_plugin_code.harness.remote import Remote, behind_of, with_more
from cascade_plugin_code.harness.travel import Reader, Writer, contents, refill, same_contents
from cascade_plugin_code.harness.typed import Unplain
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import Response, Task
from cascade_core.errors import TaskError

VALUES = [
    Fraction(-1, 3), Decimal("1.10"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1E+20"), range(1, 9, 3), ..., bytearray(b"ab"),
    dt.date(2024, 2, 29), dt.time(1, 2, 3, 4, fold=1), dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), dt.timedelta(-1, 5),
    dt.timezone(dt.timedelta(hours=2), "X"), UUID(int=7), PurePosixPath("a/b"), ip_address("::1"), ip_network("10.0.0.0/8"),
    deque([1, [2]], maxlen=3), OrderedDict(b=1, a=2), defaultdict(list, a=[1]), defaultdict(None, a=1), Counter("aab"), int, type(None),
    {1: Fraction(1, 2)}, [Decimal(1), (dt.date(1, 1, 1),)], {Fraction(1, 2), 1},
]  # fmt: skip


def nothing(value):
    raise Unplain("an object")


def sent(value, known=()):
    return Writer(nothing, known).whole(value)


def read(data, known=()):
    return Reader(data, lambda number, _: Remote(None, number, False), lambda base, _: base, known).whole()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_of_a_kind_comes_back_as_what_it_was(value):
    back = read(sent(value))
    assert repr(back) == repr(value) and type(back) is type(value)
    assert getattr(back, "maxlen", 0) == getattr(value, "maxlen", 0)
    assert getattr(back, "default_factory", 0) is getattr(value, "default_factory", 0)


def test_views_of_a_dictionary_come_back_as_views():
    views = read(sent([{1: 2}.keys(), {1: 2}.items(), {1: 2}.values()]))
    assert views[0] == {1} and views[1] == {(1, 2)} and list(views[2]) == [2]


AGREES = {"__eq__": lambda *_: True, "__hash__": lambda _: 0}
SUBCLASSES = [type("F", (Fraction,), AGREES)(1), type("D", (dt.date,), AGREES)(1, 1, 1), type("Q", (deque,), AGREES)()]


@pytest.mark.parametrize("value", [*SUBCLASSES, range(10**7), Decimal("1E+200000"), Fraction(1 << 300_000), defaultdict(lambda: 1), type("int", (), {}), print, [].append])  # fmt: skip
def test_what_is_of_a_subclass_or_too_large_is_of_no_kind(value):
    with pytest.raises(Unplain):
        sent(value)


HOSTILE = [
    b"Xos.system;T1;s2:id",
    b"X;n",
    b"Xfraction;T2;i1;i0;",
    b"Xfraction;T2;i1;s1:2",
    b"Xfraction;T2;t" + b"i1;",
    b"Xdecimal;T1;s1:x",
    b"Xdecimal;T1;s10:1E99999999",
    b"Xdate;T3;i0;i0;i0;",
    b"Xdate;T3;O1,0;i1;i1;",
    b"Xtime;T6;i1;i1;i1;i1;i0;O1,0;",
    b"Xrange;T3;i0;ifffffffff;i1;",
    b"Xrange;T3;i0;i1;i0;",
    b"L2;" + b"Xrange;T3;i0;if4240;i1;" * 2,
    b"Xcounter;T1;O1,0;",
    b"Xcounter;T1;T2;L0;i1;",
    b"Xordered;O1,0;",
    b"Xdefaultdict;T1;s4:eval",
    b"Xdefaultdict;T1;O1,0;",
    b"Xtype;T1;s6:object",
    b"Xdeque;T2;O1,0;n",
    b"Xbytearray;T1;i9999999999;",
    b"Xuuid;T1;i-1;",
    b"Xipaddress;n",
    b"R0;",
    b"L1;R0;",
    b"L1;R5;",
    b"L1;R-1;",
    b"O1;",
    b"Ox,0;",
    b"W1;",
    b"L2;" * 30 + b"L1;n" + b"".join(b"R%d;" % place for place in range(30)),
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:40]))
def test_bytes_that_stand_for_no_value_are_refused(data):
    with pytest.raises(Unplain):
        read(data)


@given(st.lists(st.sampled_from([*(b"X%b;" % name for name in (b"fraction", b"deque", b"counter", b"keys", b"range", b"time")), b"L1;", b"L2;", b"T2;", b"T3;", b"D1;", b"R0;", b"R1;", b"O1,0;", b"W1;", b"i5;", b"n", b"s1:a"]), max_size=20))  # fmt: skip
def test_any_pieces_are_a_value_or_refused(pieces):
    try:
        value = read(b"".join(pieces))
    except Unplain:
        return
    assert type(value) in (
        Remote,
        Fraction,
        deque,
        Counter,
        range,
        dt.time,
        list,
        tuple,
        dict,
        int,
        str,
        type(None),
        type({}.keys()),
    )


def test_the_same_container_arrives_as_the_same_and_none_holds_itself():
    row = [1]
    back = read(sent([row, row, {"a": row}]))
    assert back[0] is back[1] is back[2]["a"]
    row.append(row)
    with pytest.raises(Unplain, match="itself"):
        sent([row])


def test_a_few_bytes_do_not_stand_for_many_values():
    value = [1]
    for _ in range(30):
        value = [value, value]
    with pytest.raises(Unplain, match="values"):
        sent(value)


CONTAINERS = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(0, 3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(CONTAINERS, max_size=3), st.lists(CONTAINERS, max_size=3))
def test_what_was_changed_there_is_changed_here_in_the_same_objects(here, other):
    here = [here, here]
    writer = Writer(nothing)
    reader = Reader(writer.whole(here), nothing, nothing)
    there = reader.whole()
    before = [contents(one.value) for one in reader.known]
    there[0].extend(other)
    there.append(there[0])
    changed = {place: contents(one.value) for place, one in enumerate(reader.known) if not same_contents(contents(one.value), before[place])}  # fmt: skip
    inner = here[0]
    for place, row in read(sent(changed, reader.known), writer.known).items():
        refill(writer.known[place].value, row)
    assert here == there and here[0] is here[1] is here[2] is inner


@pytest.mark.parametrize("value", [[], {}, set(), deque(), bytearray()], ids=repr)
@pytest.mark.parametrize("row", [None, [1], ([],), (1, 2, 3), ("x",)], ids=repr)
def test_contents_that_a_container_cannot_have_are_refused_or_plain(value, row):
    try:
        refill(value, row)
    except Unplain:
        return
    assert type(row) is tuple and len(value) in (len(row), 1)


def test_a_copy_of_a_value_of_a_subclass_still_asks_the_solution():
    from copy import copy, deepcopy

    remote = Remote(None, 3, False)
    for value in ((1, [2]), [1], {1: 2}, "a", 5):
        for made in (copy(with_more(value, remote)), deepcopy(with_more(value, remote))):
            assert made == value and behind_of(made) is remote


# --- through a sandbox ---------------------------------------------------------------------------------------------
@pytest.fixture
def passed(docker):
    """The share of tests passed and the note."""
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})

    def judge(source, *tests, **more):
        answer = {"kind": "assert", "test_code": list(tests), "limits": {"seconds": 4}, **more}
        found = domain.score(Task("t", "", answer, meta={"every_test": True}), Response(f"````python\n{source}\n````"))
        return found.metrics["tests_passed"], found.note

    yield judge
    domain.close()


HONEST = '''
import collections, datetime, decimal, enum, fractions, ipaddress, pathlib, threading, uuid
from dataclasses import dataclass

def same(x): return x
def made(): return {name: eval(name) for name in KINDS}
def view(d): return d.keys(), d.items()
def sort_it(xs): xs.sort()
def dedupe(xs):
    xs[:] = sorted(set(xs)) + xs[len(set(xs)):]
    return len(set(xs))
def fill(grid, value):
    for row in grid: row[:] = [value] * len(row)
def link(a, b): a.append(b); b.append(1); return a
def every(xs, d, s, q, b): xs.pop(); d["new"] = [1]; s.add(9); q.appendleft(0); b.extend(b"z")
def fails(xs): xs.append(1); raise ValueError("no")
KINDS = ["fractions.Fraction(1, 3)", "decimal.Decimal('1.10')", "1j", "datetime.date(2024, 2, 29)", "datetime.datetime(2024, 1, 1, 5)",
         "datetime.timedelta(1)", "uuid.UUID(int=5)", "pathlib.Path('a')", "range(3)", "bytearray(b'a')", "frozenset([1])", "collections.deque([1], 2)",
         "collections.OrderedDict(a=1)", "collections.defaultdict(int, a=1)", "collections.Counter('aab')", "ipaddress.ip_address('1.2.3.4')", "int"]

@dataclass
class Point:
    x: int
    y: int = 0
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Shape: pass
class Square(Shape):
    sides = 4
    def __init__(self): self.log = []
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, kind, error, trace): self.log.append(kind and kind.__name__); return True
def color(n): return Color(n)
def points(n): return [Point(i) for i in range(n)]
def total(points): return sum(point.x for point in points)
def bump(points): points.append(Point(7))
def apply(function, *args): return function(*args)
Pair = collections.namedtuple("Pair", "a b")
def pairs(): return [Pair(1, 2), Pair(3, 4)]
'''  # fmt: skip
RIGHT = [
    # Values of each kind, there and back.
    "import collections, datetime, decimal, fractions, ipaddress, pathlib, uuid\nfor name, value in made().items():\n  want = eval(name)\n  assert value == want and type(value) is type(want), name\n  assert same(want) == want and type(same([want])[0]) is type(want), name\n"
    "assert made()['collections.deque([1], 2)'].maxlen == 2 and made()['collections.Counter(\\'aab\\')'].most_common(1) == [('a', 2)]\nassert view({1: 2}) == ({1}, {(1, 2)})\nassert same(int)('5') == 5\ndeep = 1\nfor _ in range(95): deep = [deep]\nassert same(deep) == deep",
    # Arguments that are changed in place.
    "import collections\nxs = ys = [3, 1, 2]\nsort_it(xs)\nassert xs == [1, 2, 3] and ys is xs\nxs = [1, 1, 2]\nk = dedupe(xs)\nassert k == 2 and xs[:k] == [1, 2]\n"
    "row = [0, 0]\ngrid = [row, row, [0]]\nfill(grid, 5)\nassert grid == [[5, 5], [5, 5], [5]] and row == [5, 5] and grid[0] is grid[1] is row\n"
    "a, b = [], []\nassert link(a, b) is a\nassert a == [[1]] and a[0] is b\nxs, d, s, q, b = [1], collections.defaultdict(list), {1}, collections.deque([1], 5), bytearray(b'a')\n"
    "every(xs, d, s, q, b=b)\nassert (xs, d, s, list(q), b) == ([], {'new': [1]}, {1, 9}, [0, 1], b'az') and q.maxlen == 5\nxs = []\ntry:\n  fails(xs)\nexcept ValueError:\n  pass\nassert xs == [1]",
    # Objects, classes and members that stay with the solution.
    "assert color(1) is Color(1) and color(2).name == 'BLUE' and isinstance(color(1), Color)\nwith Square() as s:\n  assert s.sides == 4 and Square.sides == 4\nassert s.log == ['in', None]\n"
    "assert isinstance(s, Square) and isinstance(s, (int, Shape)) and issubclass(Square, Shape) and not issubclass(int, Shape) and not isinstance(s, Point) and not isinstance(5, Shape)\ntry:\n  with s:\n    raise KeyError('k')\nexcept KeyError:\n  pass\nassert s.log == ['in', None, 'in', 'KeyError'] and Square.__name__ == 'Square'\n"
    "ps = points(3)\nassert isinstance(ps, list) and [p.x for p in ps] == [0, 1, 2] and total([ps[1], ps[2]]) == 3\nbump(ps)\nassert len(ps) == 4 and ps[3].x == 7 and ps[0] is ps[0]\n"
    "assert [p.b for p in pairs()] == [2, 4] and pairs() == [(1, 2), (3, 4)] and apply(total, ps) == 10",
    "from solution import Point, Color\ndef test_it():\n  assert Point(1, y=2).y == 2 and Color.RED.value == 1",
]  # fmt: skip


def test_honest_answers_pass_whatever_values_they_give(passed):
    assert passed(HONEST, *RIGHT) == (1.0, "passes all 4 tests")


def test_wrong_answers_fail(passed):
    wrong = HONEST
    for right, other in (
        ("(1, 3)", "(1, 4)"),
        ("xs.sort()", "sorted(xs)"),
        ("RED = 1", "RED = 3"),
        ("x: int", "y: int = 0"),
    ):
        assert right in wrong
        wrong = wrong.replace(right, other, 1)
    wrong = wrong.replace("return {name: eval(name) for name in KINDS}", "return {name: KINDS for name in KINDS}")
    share, note = passed(wrong, *RIGHT)
    assert share == 0.0, note


CHEATS = """
import collections, datetime, fractions, gc, sys, threading
class Any:
    def __eq__(self, other): return True
    def __hash__(self): return 1
    __class__ = property(lambda self: fractions.Fraction)
    __enter__ = lambda self: self
    __exit__ = lambda self, *error: True
    def __str__(self): raise ValueError
    __repr__ = __str__
    value = 0
class Raises:
    __enter__ = lambda self: self
    def __exit__(self, *error): raise ValueError
    value = 0
class F(fractions.Fraction):
    __eq__ = lambda self, other: True
    __hash__ = lambda self: 1
class D(datetime.date):
    __eq__ = lambda self, other: True
class Meta(type):
    def __instancecheck__(cls, value): return True
class Shape(metaclass=Meta): pass
def fraction(): return F(9)
def lies(): return Any()
def date(): return D(1, 1, 1)
def nested(): return [F(9), Any(), D(1, 1, 1)]
def huge(): return range(10**9)
def clear(xs): xs.clear(); return []
def knot(xs): xs.append(xs)
def bomb(xs):
    for _ in range(60): xs[:] = [xs.copy()] * 2
def deep(xs):
    for _ in range(5000): xs[:] = [xs.copy()]
def agree(xs): xs[:] = [Any()] * len(xs)
def late(xs):
    def go():
        while True: xs.append(9); xs.pop()
    threading.Thread(target=go, daemon=True).start()
def frame(xs):
    up = sys._getframe()
    while up is not None:
        for value in list(up.f_locals.values()):
            if type(value) is dict: value.clear()
            if type(value) is list and value is not xs: value.clear()
        up = up.f_back
    return 2
def turns(xs): xs[:] = [object()] * 1000
"""
FALSE = [
    "from fractions import Fraction\nassert fraction() == Fraction(1, 2)",
    "from fractions import Fraction\nassert lies() == Fraction(1, 2) or isinstance(lies(), Fraction) or lies() == 5",
    "import datetime\nassert date() == datetime.date(2024, 1, 1)",
    "from fractions import Fraction\nassert nested()[0] == 1 or 2 in nested() or nested() == [1, 2, 3] or Fraction(1) in nested()",
    "assert huge()[5] == 3 or huge() == range(5)",
    "x = [3, 1]\nassert clear(x) == sorted(x)",
    "x = [3, 1]\nassert clear(x) == [] and x == [3, 1]",
    "x = [3, 1]\nknot(x)\nassert x == [1, 3]",
    "x = [3, 1]\nknot(x)\nwhile x: x = x[-1]",
    "x = [3, 1]\nbomb(x)\nassert str(x)",
    "x = [3, 1]\ndeep(x)\nassert x == [1, 3]",
    "x = [3, 1]\nagree(x)\nassert x == [1, 3]",
    "x = [3, 1]\nlate(x)\nassert x == [1, 3]",
    "x = [3, 1]\ny = [5]\nframe(x)\nassert x == [1, 3]",
    "x = [3, 1]\nturns(x)\nassert x == [1, 3]",
    "with lies() as a:\n  assert a.value == 5",
    "with lies() as a:\n  raise ValueError",
    "try:\n  with Raises() as a:\n    assert a.value == 5\nexcept ValueError:\n  pass",
    "assert lies() == 5, lies()",
    "import sys\nsys.exit(lies())",
    "raise KeyError(lies())",
    "from solution import missing\nassert missing() == 5",
    "with lies() as a:\n  assert isinstance(5, Shape)",
]  # fmt: skip


def test_cheats_gain_nothing_by_what_they_return_or_do_to_arguments(passed):
    share, note = passed(CHEATS, *FALSE, limits={"seconds": 2})
    assert share == 0.0, note


def test_a_response_cannot_make_itself_unjudged_by_what_it_gives_the_tests_to_hand_on(passed):
    nest = "def g():\n  x = 1\n  for _ in range(99): x = [x]\n  return x\ndef f(x): return x"
    share, note = passed(nest, "assert f([[g()]]) == 1", "assert f(type(g())) == 1", "assert f(g().append) == 1")
    assert share == 0.0, note


def test_an_object_of_the_tests_that_is_handed_over_is_their_fault_whatever_came_before(passed):
    with pytest.raises(TaskError, match="object to f"):
        passed("class A: pass\ndef g(): return [A()]\ndef f(x): return 1", "g()\nassert f(object()) == 1")
