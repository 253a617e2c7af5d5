"""What the text of test code says: which calls look at their arguments, and what no response could be judged by."""

import pytest
from cascade_plugin_code import exam, formats, testcode
from cascade_plugin_code.problems import Omitted

from cascade_core.errors import TaskError

LOOKING = {
    "sort(x)": {1},
    "def check(candidate):\n  x = [2, 1]\n  candidate(x)\n  assert x == [1, 2]": {3},
    "s = Stack()\nx = []\ns.dump(x)\nassert x": {3},
    "k = f(x)\nassert k == 2 and x[:k] == [1, 2]": {1},
    "cases = [([1], [1])]\nfor x, want in cases:\n  k = f(x)\n  for i in range(k):\n    assert x[i] == want[i]": {3},
    "x = [1]\nassert f(x) is x": {2},
    "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    y = f(x)\n    self.assertEqual(x, [1])": {4},
    "x = [1]\nf(\n  x,\n  2,\n)": {2},
    "assert f(x) == sorted(x)": set(),
    "r = f(x)\nassert r == sorted(x)": set(),
    "r = f(x)\nwant = sorted(x)\nassert r == want": set(),
    "r = f(x)\nassert x == r": set(),
    "x = [1]\nassert x == [1]\nassert f(x) == sorted(x)": set(),
    "r = f(x)\nassert sorted(x) == g(r)": set(),
    "print(f(x))": set(),
    "def same(a, b): assert a == b\nsame(f(x), sorted(x))": set(),
    "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    self.assertEqual(f(x), sorted(x))": set(),
    "class T:\n  def test(self):\n    self.same(f(x), sorted(x))": set(),
    "def run(check):\n  check(f(x), sorted(x))": set(),
    "def run(self):\n  self.stack.dump(x)": {2},
    "r = f(x)\nfor a in x:\n  assert a in r": set(),
    "r = f(": set(),
}


@pytest.mark.parametrize("text", LOOKING)
def test_a_call_looks_at_its_arguments_where_the_text_does(text):
    assert testcode.read(text).looking == LOOKING[text]


UNJUDGED = [
    "assert f(1) == Point(1, 2)",
    "assert Point(1, 2) == f(1)",
    "assert f(1) == Color.RED",
    "from solution import Point\nassert f(1) == Point(1, 2)",
    "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), Point(1))",
    "want = Point(1, 2)\nassert f(1) == want",
    "assert f(1) == [1, Point(1, 2)]",
    "want = {1: Point(1, 2)}\nassert f(1) == want",
    "assert type(f(1)) is Point",
    "import array\nassert f(1) == array.array('i', [1])",
    "import numpy as np\nassert f(1) == np.array([1])",
    "from types import SimpleNamespace\nassert SimpleNamespace(a=1) == f(1)",
    "from collections import ChainMap\nassert f(1) == ChainMap({})",
    "class Sub(Stack):\n  pass\nassert Sub().pop() == 1",
]
JUDGED = [
    "from fractions import Fraction\nassert f(1) == Fraction(1, 2)",
    "import re\nassert f('a') == re.sub('a', 'b', 'a')",
    "from collections import Counter\nassert f('a') == Counter('a')",
    "assert Stack().pop() == 5 and Config.LIMIT == 5",
    "class Point: pass\nassert f(1) != Point()",
    "s = Stack()\nassert s.pop() == 5 and type(s.pop()) is int",
    "assert Solution().f(1) == 2",
    "assert LIMIT == f(1)",
    "class MyError(BaseError): pass\nassert f(1) == 2",
    "from unittest import *\nclass T(TestCase):\n  def test(self): f(1)",
    "assert f(",
]


@pytest.mark.parametrize("text", UNJUDGED)
def test_what_no_response_could_be_judged_by_is_an_error_of_the_task(text):
    with pytest.raises(TaskError, match="no answer could be judged"):
        exam.read({"kind": "assert", "test_code": ["assert f(1) == 2", text]})


@pytest.mark.parametrize("text", JUDGED)
def test_what_can_be_judged_is_read(text):
    assert exam.read({"kind": "assert", "test_code": text}).count == 1


def test_a_task_may_say_itself_what_becomes_of_arguments():
    def looking(**more):
        return exam.read({"kind": "assert", "test_code": "f(x)\nassert f(x) == sorted(x)", **more}).codes[0].looking

    assert (looking(), looking(arguments="copied"), looking(arguments="shared")) == ("1", "", "all")
    with pytest.raises(TaskError, match="'arguments'"):
        looking(arguments="moved")


def test_a_problem_whose_tests_cannot_judge_is_left_out_of_data():
    row = {"prompt": "Make points.", "answer": {"kind": "assert", "test_code": UNJUDGED[0]}}
    found = formats.read(row, "rows.jsonl:1", "rows")
    assert isinstance(found, Omitted) and "'Point'" in found.reason
