"""Operators in tests that are code: asked of objects of a class that the tests make, and of no other."""

import pytest
from cascade_plugin_code.domain import CodeDomain

from cascade_core import Response, Task


@pytest.fixture
def score(docker):
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})

    def judge(source, tests, entry_point):
        answer = {"kind": "assert", "test_code": tests, "entry_point": entry_point, "limits": {"seconds": 4}}
        return domain.score(Task("t", "", answer), Response(f"```python\n{source}\n```"))

    yield judge
    domain.close()


SEVERAL = """
import enum
Color = enum.Enum('Color', 'RED BLUE')
class Poly:
  def __init__(self, *c): self.c = c
  def __call__(self, x): return sum(c * x**i for i, c in enumerate(self.c))
  def __len__(self): return len(self.c)
  def __getitem__(self, i): return self.c[i]
"""
ASKED = [
    "assert Poly(1, 2)(3) == 7 and len(Poly(1, 2)) == 2",
    "assert list(Poly(1, 2)) == [1, 2] and list(reversed(Poly(1, 2))) == [2, 1]",
    "assert Poly and Poly(1) and not Poly()",
    "assert len(Color) == 2 and Color['RED'] is Color.RED and [c.name for c in Color] == ['RED', 'BLUE']",
    "try:\n  len(Color.RED)\nexcept TypeError:\n  pass\nelse:\n  assert False",
]


@pytest.mark.parametrize("tests", ASKED)
def test_what_a_class_or_an_object_can_do_is_asked_of_it_as_python_does(score, tests):
    found = score(SEVERAL, tests, "")
    assert found.value == 1.0, found.note


VECTOR = """
class Vector:
  "of one number"
  def __init__(self, x): self.x = x
  def __add__(self, other): return Vector(self.x + other.x)
  def __iadd__(self, other):
    self.x += other.x
    return self
  def __mul__(self, by): return Vector(self.x * by)
  __rmul__ = __mul__
  def __sub__(self, other): return self.x - other.x
  def __and__(self, other): return bool(self.x and other.x)
  def __neg__(self): return Vector(-self.x)
  def __abs__(self): return abs(self.x)
  def __float__(self): return float(self.x)
  def __format__(self, how): return format(self.x, how)
  def __lt__(self, other): return self.x < other.x
  def __contains__(self, x): return x == self.x
"""
RIGHT = [
    "a = Vector(1) + Vector(2)\nassert a.x == 3 and (a + a).x == 6",
    "assert (3 * Vector(2)).x == (Vector(2) * 3).x == 6",
    "assert Vector(5) - Vector(2) == 3 and (Vector(1) & Vector(2)) is True",
    "v = Vector(1)\nassert [v.__doc__, (v + v).__doc__] == ['of one number'] * 2",
    "a = b = Vector(1)\na += Vector(2)\nassert a is b and b.x == 3",
    "assert (-Vector(2)).x == -2 and abs(Vector(-2)) == 2 and float(Vector(2)) == 2.0",
    "assert f'{Vector(2.5):.2f}' == '2.50' and 2 in Vector(2) and 3 not in Vector(2)",
    "assert Vector(1) < Vector(2) and not Vector(2) < Vector(1) and Vector(2) > Vector(1)",
    "assert [v.x for v in sorted([Vector(3), Vector(1)])] == [1, 3]",
    "from solution import Vector as V\nassert (V(1) + V(2)).x == 3",
    "try:\n  Vector(1) + 2\nexcept AttributeError:\n  pass\nelse:\n  assert False",
    "try:\n  Vector(1) // 2\nexcept TypeError:\n  pass\nelse:\n  assert False",
]
WRONG = ["assert (Vector(1) + Vector(2)).x == 4", "assert Vector(2) < Vector(1)", "assert 3 in Vector(2)"]


@pytest.mark.parametrize("tests", RIGHT + WRONG)
def test_an_operator_is_asked_of_objects_that_the_tests_make(score, tests):
    found = score(VECTOR, tests, "")
    assert found.value == float(tests in RIGHT), found.note


def test_an_operator_is_asked_of_objects_of_a_class_that_is_the_entry_point(score):
    assert score(VECTOR, "assert (candidate(1) + Vector(2)).x == 3", "Vector").value == 1.0


LYING = """
class Any:
  def __init__(self, *args): pass
  def __call__(self, *args): return self
  __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __contains__ = __bool__ = lambda self, *other: True
  __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __rmod__ = lambda self, other: self
  __abs__ = __neg__ = __round__ = lambda self, *more: self
  __float__ = lambda self: 0.0
  __int__ = __index__ = __len__ = lambda self: 0
  __hash__ = object.__hash__
  norm = lambda self: self
f = Any
def g(x): return Any()
class h(Any): pass
class Listed:
  def __new__(cls, *args): return [Any()]
"""
CHEATED = [
    "assert abs(g(1) - 2) < 1e-6",
    "assert 1 < g(1) < 3",
    "assert g(1) < g(2)",
    "assert 2 in g(1)",
    "assert 6 % g(1) or True\nassert g(1) + 1 == 3",
    "assert abs(f(1) - 2) < 1e-6",
    "assert f(1) < h(2)",
    "assert abs(h(1) - 2) < 1e-6",
    "assert abs(Any(1) * Any(2) - 2) < 1e-6",
    "assert abs(Any(1).norm() - 2) < 1e-6",
    "assert Any(1) < 5",
    "assert abs(Listed(1)[0] * 2 - 2) < 1e-6",
    "assert abs(Listed(1)[0]) < 1e-6",
    "import math\nassert math.isclose(Any(1) + Any(2), 0)",
    "assert round(Any(1) + Any(2), 3) == 0",
    "assert Any(1) + Any(2) - 2 == 0",
    "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertAlmostEqual(Any(1) + Any(2), 0)",
]


@pytest.mark.parametrize("tests", CHEATED)
def test_an_object_that_agrees_with_everything_is_still_no_value(score, tests):
    assert score(LYING, tests, "").value == 0.0
