"""Tests and special judges that do not come to their end: whether that is the solution's doing or their own."""

import ast

import pytest
from cascade_plugin_code import control
from cascade_plugin_code.domain import CodeDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError


@pytest.fixture
def score(docker):
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})
    yield lambda source, answer: domain.score(Task("t", "", answer), Response(f"```python\n{source}\n```"))
    domain.close()


def code(test_code, seconds=1.0, **more):
    return {"kind": "assert", "test_code": test_code, "limits": {"seconds": seconds}, **more}


PRIME = "def is_prime(n):\n  return all(n % i for i in range(2, n))\n"
OF_THE_SOLUTION = {
    "endless iterator": ("import itertools\ndef f(n): return itertools.count()", "assert sum(f(3)) == 3"),
    "long way": ("def f(n): return 10**15", "for i in range(f(3)):\n  assert i >= 0"),
    "huge prime": ("def f(n): return 10**18 + 9", PRIME + "def check(candidate):\n  assert is_prime(candidate(9))"),
    "method": (
        "class S:\n  def f(self, n): return 10**15",
        "def check(candidate):\n  assert sum(range(candidate(9))) == 36",
    ),
    "sleep": ("import time\ndef f(n): time.sleep(1000)", "assert f(3) == 3"),
    "end of the tests": ("def f(n): return '__import__(\"os\")._exit(0)'", "assert eval(f(3)) == 3"),
    "signal": ("def f(n): return '__import__(\"os\").abort()'", "assert eval(f(3)) == 3"),
    "never the one": (
        "def f(n): return 4",
        "def check(candidate):\n  got = candidate(3)\n  while got != 5: pass",
    ),
    "never done by a helper": ("def f(n): return False", "def go(done):\n  while True:\n    if done: break\ngo(f(3))"),
}
EITHER = ("endless iterator", "sleep")
"""Of these, both sides may be at a limit."""
OF_THE_TESTS = {
    "loop": "assert f(1) == 2\nwhile True: pass",
    "loop behind what only a right solution passes": "assert f(2) == 3\nfor i in range(f(1)):\n  assert f(i) == i + 1\nsum(range(10**12))",
    "loop in a test case": "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    self.assertEqual(f(1), 2)\n    sum(range(10**12))",
    "sleep": "import time\nf(1)\ntime.sleep(1000)",
    "end": "f(1)\nimport os\nos._exit(0)",
    "loop beside a word that is no name": "# takes O(n²)\nassert f(1) == 2\nwhile True: pass",
    "loop behind an exit": "import sys\nif f(1) != 2: sys.exit(1)\nwhile True: pass",
    "loop behind a class": "assert f(1) == 2\nclass C(f(2)[0] if f(1) != 2 else object): pass\nwhile True: pass",
    "loop that waits for nothing of the solution's": "n = f(1)\nm = 0\nwhile m < 5: pass",
}


@pytest.mark.parametrize("name", OF_THE_SOLUTION)
def test_a_solution_that_keeps_its_tests_from_their_end_has_failed(score, name):
    source, tests = OF_THE_SOLUTION[name]
    found = score(
        source, code(tests, entry_point={"huge prime": "f", "never the one": "f", "method": "S.f"}.get(name, ""))
    )
    assert found.value == 0.0
    if name not in EITHER:
        assert "with what the solution gave it" in found.note
    assert found.is_limit is (name not in ("end of the tests", "signal"))


@pytest.mark.parametrize("name", OF_THE_TESTS)
def test_tests_that_never_come_to_their_end_are_an_error_of_the_task(score, name):
    with pytest.raises(TaskError, match="did not come to its end"):
        score("def f(x): return x + 1", code(OF_THE_TESTS[name], 0.3))


def judged(source):
    judge = "import os, sys\ni, o, x = [open(p).read() for p in sys.argv[1:4]]\n" + source
    test = {"stdin": "2\n", "stdout": "3\n"}
    return {"kind": "stdin", "tests": [test], "checker": {"type": "program", "source": judge}}


def test_an_output_that_ends_its_special_judge_by_a_signal_is_wrong(score):
    found = score("print(7)", judged("os.abort() if o == '7\\n' else sys.exit(o != x)"))
    assert found.value == 0.0 and "with this output, the special judge failed" in found.note


def test_an_output_that_leads_its_special_judge_to_a_limit_is_wrong(score):
    assert score("print(7)", judged("while o == '7\\n': print('x' * 10**6)\nsys.exit(o != x)")).value == 0.0


@pytest.mark.parametrize("source", ["os.abort()", "os._exit(3 if o == '7\\n' else 0)"])
def test_a_special_judge_that_fails_by_itself_is_an_error(score, source):
    with pytest.raises(TaskError, match="special judge failed"):
        score("print(7)", judged(source))


def test_the_control_runs_every_statement_of_the_tests():
    names = {"__name__": "t", "seen": (seen := [])}
    tests = "class C:\n  def m(self):\n    assert g(1)\n    seen.append(1)\nfor i in range(2):\n  1 / 0\nelse:\n  seen.append(2)\nC().m()\nraise ValueError\nseen.append(3)"
    exec(control.solution(tests, ""), names)
    names["seen"], names["range"] = seen, range
    exec(control.tests(tests), names)
    assert seen == [2, 1, 3]


WAITING = [
    "n = 0\nwhile not f(n): n += 1",
    "while f(3) is None: pass",
    "got = f(3)\nwhile got != 5: got = f(3)",
    "while True:\n  while f(3) != 5: pass\n  break",
    "while f(3) != 5:\n  while f(4) != 7: pass\nelse:\n  pass",
]


@pytest.mark.parametrize("tests", WAITING)
def test_a_loop_that_waits_for_the_solution_ends_in_the_control(tests):
    names = {}
    exec(control.solution("f", ""), names)
    exec(control.tests(tests) + "\nended = True", names)
    assert names["ended"]


def test_a_loop_of_the_control_does_what_it_did():
    names = {"f": lambda n: n < 3, "seen": []}
    exec(
        control.tests(
            "n = 0\nwhile f(n):\n  n += 1\n  if n == 2: continue\n  seen.append(n)\nelse:\n  seen.append('else')"
        ),
        names,
    )
    assert names["seen"] == [1, 3, "else"]


def test_the_control_has_every_name_of_the_tests_and_no_other_word():
    names = {}
    exec(control.solution("f(1)  # O(n²), ½x, über, if", "S.m", "True"), names)
    assert names["f"](1) is names["über"]() is names["S"]().m(2) is True and "if" not in names


def test_the_control_of_tests_that_are_nested_too_deep_is_the_tests_themselves(monkeypatch):
    def too_deep(tree):
        raise RecursionError

    monkeypatch.setattr(ast, "unparse", too_deep)
    assert control.tests("f(1)") == "f(1)"
