"""How tests of each kind are run, in containers: what is a verdict, what is an error of the task, and what is told."""

import itertools
import zlib

import pytest
from cascade_plugin_code.domain import CodeDomain
from cascade_plugin_code.judging import MOST_TIMEOUTS
from cascade_sandbox.testing import require_engine

from cascade_core import Response, Task
from cascade_core.errors import TaskError


@pytest.fixture
def score(docker):
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})

    def judge(source, answer, tag="python", **meta):
        return domain.score(Task("t", "", answer, meta=meta), Response(f"````{tag}\n{source}\n````"))

    yield judge
    domain.close()


def call(args, expected, entry_point="f", **more):
    return {"kind": "function", "entry_point": entry_point, "tests": [{"args": args, "expected": expected}], **more}


def code(test_code, **more):
    return {"kind": "assert", "test_code": test_code, "limits": {"seconds": 4}, **more}


RETURNED = [
    ("def f(x): return x", [{"__float__": "nan"}], {"__float__": "nan"}, 1),
    ("def f(x): return float('inf')", [1], 1.5, 0),
    ("def f(x): return x", [{"__tuple__": [1, {"__set__": [2]}]}], {"__tuple__": [1, {"__set__": [2]}]}, 1),
    ("def f(x): return type(x).__name__", [{"__tuple__": [1]}], "tuple", 1),
    ("def f(x): return type(x[0]).__name__", [[[1]]], "list", 1),
    ("def f(x): return x", [{"__bytes__": "00ff"}], {"__bytes__": "00ff"}, 1),
    ("def f(x): return {k: v for k, v in x.items()}", [{"a": [1, None]}], {"a": [1, None]}, 1),
    ("def f(n): return 3 ** n", [20000], {"__int__": hex(3**20000)}, 1),
    ("def f(n): return 3 ** n + 1", [20000], {"__int__": hex(3**20000)}, 0),
    ("from collections import *\ndef f(x): return Counter(x)", ["aab"], {"a": 2, "b": 1}, 1),
    ("def f(x): return map(str, x)", [[1]], ["1"], 0),
    ("async def f(x): return x", [1], 1, 0),
    ("def f(x): yield x", [1], [1], 0),
    ("def f(*, x): return x", [], 1, 0),
    ("def g(x): return x", [1], 1, 0),
    ("f = lambda x: x", [1], 1, 1),
    ("class f:\n  def __init__(self, x): self.x = x", [1], 1, 0),
    ("import functools\n@functools.lru_cache\ndef f(x): return x", [1], 1, 1),
    ("class Solution:\n  def f(self, x): return x", [1], 1, 1),
    ("class Solution:\n  def __init__(self): raise ValueError\n  def f(self, x): return x", [1], 1, 0),
    ("def f(x): return x\nif __name__ == '__main__': raise SystemExit(1)", [1], 1, 1),
    ("def f(x): return input()", [1], "1", 0),
    ("import sys\ndef f(x):\n  sys.stdout.close(); sys.stderr.close()\n  return x", [1], 1, 1),
    ("import os\ndef f(x):\n  os.closerange(0, 100)\n  return x", [1], 1, 0),
    ("import os\ndef f(x):\n  os.write(1, b'{}')\n  print('x' * 10**6)\n  return x", [1], 1, 1),
    ("import os\ndef f(x):\n  [os.write(fd, b'D1;s5:valuei9;') for fd in range(3, 9) if os.path.exists(f'/proc/self/fd/{fd}') and not os.isatty(fd)]\n  return 2", [1], 2, 0),
    ("import atexit, os\natexit.register(os._exit, 3)\ndef f(x): return x", [1], 1, 1),
    ("import threading, time\ndef f(x):\n  threading.Thread(target=time.sleep, args=(99,)).start()\n  return x", [1], 1, 1),
    ("import builtins\nbuiltins.isinstance = lambda *a: True\ndef f(x): return object()", [1], 1, 0),
    ("import sys\nsys.modules['__main__'].dumps = lambda *a: b'D1;s5:valuei2;'\ndef f(x): return 7", [1], 2, 1),
    ("def f(x): raise KeyboardInterrupt", [1], None, 0),
    ("class E(Exception):\n  def __str__(self): raise ValueError\ndef f(x): raise E", [1], None, 0),
    ("class T(type):\n  __name__ = 5\nclass A(metaclass=T): pass\ndef f(x): return A()", [1], None, 0),
    ("def f(x):\n  x = []\n  x.append(x)\n  return x", [1], [], 0),
    ("def f(x): return f(x)", [1], 1, 0),
    ("import dataclasses\n@dataclasses.dataclass\nclass P:\n  x: int\ndef f(x): return dataclasses.astuple(P(x))", [1], [1], 1),
    ("from __future__ import annotations\ndef f(x: Unknown) -> Nothing: return x", [1], 1, 1),
    ("# -*- coding: latin-1 -*-\ndef f(x): return 'é'", [1], "Ã©", 1),
    ("def f(x): return 'é\U0001f600'", [1], "é\U0001f600", 1),
    ("\x00def f(x): return x", [1], 1, 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "args", "expected", "value"), RETURNED, ids=lambda part: str(part)[-40:])
def test_a_function_is_judged_by_what_it_returns(score, source, args, expected, value):
    found = score(source, call(args, expected))
    assert found.value == value, found.note
    assert found.note.isprintable() and not found.is_limit


def test_a_method_is_reached_by_its_class_and_a_preamble_is_there(score):
    source = "class Other:\n  def go(self, xs: List[int], k=0) -> int: return sum(xs) + k"
    answer = call([[1, 2]], 3, entry_point="Other.go", preamble="from typing import *")
    assert score(source, answer).value == 1.0
    assert score(source, {**answer, "preamble": ""}).value == 0.0
    with_keywords = {**answer, "tests": [{"args": [[1]], "kwargs": {"k": 4}, "expected": 5}]}
    assert score(source, with_keywords).value == 1.0


def test_a_value_too_large_or_too_slow_is_a_limit(score):
    assert score("def f(x): return 'a' * 10**8", call([1], 1, limits={"seconds": 8})).value == 0.0
    slow = score("def f(x):\n  while True: pass", call([1], 1, limits={"seconds": 0.5}))
    assert slow.is_limit and slow.note.startswith("limit: test 1 of 1: timeout after")


ASSERTED = [
    ("def f(x): return x+1", "assert f(1) == 2\nassert f(x=2) == 3", 1),
    ("def f(x): return x+1", "def check(candidate):\n  assert candidate(1) == 2", 1),
    ("def f(x): return x", "def check(candidate):\n  assert candidate(1) == 2", 0),
    ("def f(x): return x+1", "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)", 1),
    ("def f(x): return x", "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)", 0),
    ("def f(x): return x+1", "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)\nunittest.main()", 1),
    ("def f(x): return x", "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)\nunittest.main(argv=[''], exit=False)", 0),
    ("def f(x): return x+1", "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    with self.subTest(): self.assertEqual(f(1), 2)\nunittest.main(argv=[''], exit=False)", 1),
    ("def f(x): return x", "import unittest\nclass T(unittest.TestCase):\n  def test(self):\n    with self.subTest(): self.assertEqual(f(1), 2)\nunittest.main(argv=[''], exit=False)", 0),
    ("def f(x): 1 / 0", "from unittest import *\nclass T(TestCase):\n  def test(self): f(1)\nTextTestRunner().run(defaultTestLoader.loadTestsFromTestCase(T))", 0),
    ("class A: pass\ndef f(x): return A()", "assert f(1) and not None", 1),
    ("class A:\n  def __bool__(s): return False\ndef f(x): return A()", "assert f(1)", 0),
    ("class Node:\n  next = None\n  def __init__(s, v): s.value = v\ndef f(n):\n  return n.value + f(n.next) if n else 0",
     "n = Node(1)\nn.next = Node(2)\nn.next.value = 4\nassert f(n) == 5 and n.next.value == 4 and n.next.next is None", 1),
    ("class A:\n  x = property(lambda s: 1)\ndef f(a): return 1", "a = A()\ntry:\n  a.x = 5\nexcept AttributeError:\n  pass\nelse:\n  assert False\nassert f(a) == 1", 1),
    ("class A:\n  def __len__(s): return 0\ndef f(x): return A()", "assert f(1)", 0),
    ("def f(x): return x+1", "def test_one():\n  assert f(1) == 2", 1),
    ("def f(x): return x", "def test_one():\n  assert f(1) == 2", 0),
    ("def f(x): return x+1", "import sys\nassert f(1) == 2\nsys.exit(0)", 1),
    ("def f(x): return x", "import sys\nsys.exit(f(1) != 2)", 0),
    ("def f(x): return x+1", "if __name__ == '__main__':\n  assert f(1) == 2", 1),
    ("def f(x): return x+1", "from solution import f as g\nassert g(1) == 2", 1),
    ("def f(x): return x+1", "import solution\nassert solution.f(1) == 2", 1),
    ("def f(x): return 0", "try:\n  f(1)\n  assert False\nexcept AssertionError:\n  raise", 0),
    ("def f(x): raise ValueError('no')", "try:\n  f(1)\nexcept ValueError as e:\n  assert str(e) == 'no'\nelse:\n  assert False", 1),
    ("class E(KeyError): pass\ndef f(x): raise E('no')", "try:\n  f(1)\nexcept KeyError:\n  pass\nelse:\n  assert False", 1),
    ("def f(x): return x", "try:\n  f(1)\nexcept ValueError:\n  pass\nelse:\n  assert False", 0),
    ("class EmptyError(Exception): pass\ndef f(x): raise EmptyError('no')", "try:\n  f(1)\nexcept EmptyError as e:\n  assert str(e) == 'no'\nelse:\n  assert False", 1),
    ("class AnyError(LookupError): pass\nclass EmptyError(AnyError): pass\ndef f(x): raise EmptyError('no')", "for kind in (EmptyError, AnyError, LookupError):\n  try:\n    f(1)\n  except kind:\n    pass\n  else:\n    assert False", 1),
    ("class AnyError(Exception): pass\nclass EmptyError(Exception): pass\ndef f(x): raise AnyError('no')", "try:\n  f(1)\nexcept EmptyError:\n  pass\nexcept AnyError:\n  assert False", 0),
    ("class EmptyError(Exception): pass\ndef f(x): return 1", "try:\n  f(1)\nexcept EmptyError:\n  pass\nelse:\n  assert False", 0),
    ("class KeyError(Exception): pass\ndef f(x): raise KeyError('no')", "try:\n  f(1)\nexcept KeyError:\n  pass", 0),
    ("class f(Exception): pass\ndef g(x): return 1", "assert g(1) == 1\nassert f(1) == 2", 0),
    ("def f(x): b'\\xff'.decode()", "try:\n  f(1)\nexcept ValueError:\n  pass\nelse:\n  assert False", 1),
    ("def f(x): raise SystemExit(0)", "try:\n  f(1)\nexcept BaseException:\n  pass", 0),
    ("import os\ndef f(x): os._exit(0)", "try:\n  f(1)\nexcept:\n  pass", 0),
    ("def f(x): raise KeyboardInterrupt", "try:\n  f(1)\nexcept:\n  pass", 0),
    ("from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(x): return P(x, 2)\ndef g(p): return p.y", "p = f(1)\nassert p == (1, 2) and p.x == 1 and p._replace(x=5) == (5, 2) and g(p) == 2", 1),
    ("from collections import Counter\ndef f(x): return Counter(x)", "c = f('aab')\nassert c == {'a': 2, 'b': 1} and c.most_common(1) == [('a', 2)] and c['z'] == 0 and 'z' not in c", 1),
    ("class D(dict): pass\ndef f(x): return D(a=x)", "d = f(1)\nd['b'] = 2\nassert d == {'a': 1, 'b': 2}\ntry:\n  d['c']\nexcept KeyError:\n  pass\nelse:\n  assert False", 1),
    ("class L(list):\n  __eq__ = __contains__ = lambda *a: True\n  __len__ = lambda s: 1\ndef f(x): return L([7])", "assert f(1) == [2]", 0),
    ("class L(list):\n  __contains__ = lambda *a: True\ndef f(x): return L([7])", "assert 2 in f(1)", 0),
    ("class S(str):\n  strip = lambda s: 'right'\n  __eq__ = lambda *a: True\n  __hash__ = str.__hash__\ndef f(x): return S('wrong')", "assert f(1).strip() == 'right'", 0),
    ("class I(int):\n  __sub__ = __rsub__ = lambda s, o: 0\n  real = property(lambda s: 2)\ndef f(x): return I(9)", "assert f(1).real == 2 or abs(f(1) - 2) < 1", 0),
    ("def f(x): raise StopIteration", "def right(case): return f(case[0]) == case[1]\nassert all(map(right, [(1, 2), (3, 4)]))", 0),
    ("class EndError(StopIteration): pass\ndef f(x): raise EndError", "assert all(map(lambda x: f(x) == x + 1, [1, 2])) and [EndError]", 0),
    ("class It:\n  def __iter__(s): return s\n  def __next__(s): raise StopIteration", "assert list(It()) == []", 1),
    ("def f(x): raise StopIteration", "try:\n  f(1)\n  assert False\nexcept StopIteration:\n  pass", 1),
    ("Y = type('BError', (Exception,), {}); AError = type('x', (Y,), {})\nW = type('AError', (Exception,), {}); BError = type('y', (W,), {})\ndef f(x): return 0", "assert f(1) == 2", 0),
    ("def f(x): raise GeneratorExit", "try:\n  f(1)\nexcept:\n  pass", 0),
    ("import unittest\ndef f(x): raise unittest.SkipTest('x')", "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)", 0),
    ("def f(x): return E()\nclass E:\n  __eq__ = __contains__ = __bool__ = lambda *a: True\n  __len__ = lambda s: 1", "assert f(1) == 2", 0),
    ("def f(x): return E()\nclass E:\n  __eq__ = lambda *a: True", "assert 2 in [f(1)]", 0),
    ("def f(x): return E()\nclass E:\n  __sub__ = __rsub__ = lambda s, o: s\n  __abs__ = lambda s: 0", "assert abs(f(1) - 2) < 1e-6", 0),
    ("class E(float):\n  __eq__ = lambda *a: True\n  __lt__ = __eq__\n  __sub__ = lambda s, o: s\n  __abs__ = lambda s: s\ndef f(x): return E(9)", "assert abs(f(1) - 2) < 1e-6", 0),
    ("def f(xs):\n  xs.clear()\n  return []", "x = [3, 1]\nassert f(x) == sorted(x)", 0),
    ("def f(x): return (1, {2}, b'', 2**80, 1j, None)", "assert f(1) == (1, {2}, b'', 2**80, 1j, None)", 1),
    ("LIMIT = 5\ndef f(x): return x + LIMIT", "assert f(LIMIT) == 10", 1),
    ("class Stack:\n  def __init__(self): self.x = []; self.n = 0\n  def push(self, v): self.x.append(v); self.n += 1; return self\n  def __len__(self): return self.n\n  def __iter__(self): return iter(self.x)",
     "s = Stack()\ns.push(1).push(2)\nassert len(s) == 2 and list(s) == [1, 2] and s.n == 2", 1),
    ("class Cache:\n  def __init__(self): self.x = {}\n  def __setitem__(self, k, v): self.x[k] = v\n  def __getitem__(self, k): return self.x[k]\n  def __delitem__(self, k): del self.x[k]\n  def __repr__(self): return f'Cache({self.x})'",
     "c = Cache()\nc['a'] = c['b'] = [1]\ndel c['b']\nassert c['a'] == [1] and repr(c) == str(c) == \"Cache({'a': [1]})\"\ntry:\n  c['b']\nexcept KeyError:\n  pass\nelse:\n  assert False", 1),
    ("class A: pass", "a = A()\ntry:\n  a['x'] = 1\nexcept TypeError:\n  pass\nelse:\n  assert False", 1),
    ("class A:\n  def __repr__(self): return 2\ndef f(x): return A()", "assert repr(f(1)) == 2", 0),
    ("def f(n):\n  for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]", 1),
    ("def f(x): return lambda y: x + y", "assert f(1)(2) == 3", 1),
    ("def f(a, b): return a.x + b\nclass A:\n  x = 1\ndef make(): return A()", "assert f(make(), 2) == 3", 1),
    ("import sys\ndef f(x): return sys._getframe(1).f_back.f_locals", "assert f(1) == 2", 0),
    ("import builtins\nbuiltins.AssertionError = ValueError\nbuiltins.print = None\ndef f(x): return 0", "assert f(1) == 2", 0),
    ("def check(c): pass\ndef f(x): return 0", "def check(candidate):\n  assert candidate(1) == 2\ncheck(f)", 0),
    ("class math:\n  isclose = lambda *a: True\ndef f(x): return 0", "assert math.isclose(f(1), 2.0)", 0),
    ("def f(x): return 0\ndef abs(x): return 0", "assert abs(f(1) - 2) < 1", 0),
    ("def f(x): print('PASSED'); import os; os.write(1, b'\\0\\0\\0\\1x'); return x + 1", "print('noise')\nassert f(1) == 2", 1),
    ("import os\nfor fd in range(3, 9):\n  try: os.write(fd, b'\\x00\\x00\\x00\\x01t')\n  except OSError: pass\ndef f(x): return 0", "assert f(1) == 2", 0),
    ("import os\nfor fd in range(3, 9):\n  try: os.write(fd, b'\\xff' * 99)\n  except OSError: pass\ndef f(x): return 0", "assert f(1) == 2", 0),
    ("def f(x): return '\\ud800'", "assert f(1) == '\\ud800'", 1),
    ("def f(x): return x +", "assert f(1) == 2", 0),
    ("raise SystemExit(0)", "assert f(1) == 2", 0),
    ("import os; os._exit(0)", "assert f(1) == 2", 0),
    ("def g(x): return x", "assert f(1) == 2", 0),
    ("def f(x):\n  d = []\n  for _ in range(100000): d = [d]\n  return d", "assert f(1) == 2", 0),
    ("def f(x): return object()", "assert f([f(1)]) == 2", 0),
    ("import time\ntime.sleep = print\ndef f(x): return x + 1", "import time\ntime.sleep(0.01)\nassert f(1) == 2", 1),
    ("import sys\nsys.setrecursionlimit(50)\ndef f(x): return f(x)", "assert f(1) == 2", 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "tests", "value"), ASSERTED, ids=lambda part: str(part)[-50:])
def test_tests_that_are_code_judge_from_their_own_process(score, source, tests, value):
    entry_point = "f" if "candidate" in tests else ""
    found = score(source, code(tests, entry_point=entry_point))
    assert found.value == value, found.note
    assert found.note.isprintable() and not found.is_limit


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("assert f(", "does not compile"),
        ("import numpy_of_nowhere\nassert f(1) == 2", "cannot import"),
        ("assert f(object()) == 2", "object to f"),
        ("try:\n  f(print)\nexcept TypeError:\n  pass", "to f"),
        ("x = 1", "never asks"),
        ("def check(other):\n  pass", "never asks"),
        ("import unittest\nunittest.main()", "never asks"),
        ("f(1)\nimport os\nos._exit(0)", "did not come to its end"),
        ("f(1)\nimport os\nos.kill(os.getpid(), 9)", "did not come to its end"),
        ("f(1)\nwhile True: pass", "did not come to its end: timeout"),
    ],
)
def test_test_code_at_fault_is_an_error_of_the_task(score, tests, said):
    with pytest.raises(TaskError, match=said):
        score("def f(x): return x + 1", code(tests, limits={"seconds": 1}))


def test_only_the_entry_point_can_be_reached_where_the_task_names_one(score):
    source = "def poly(x): return 0\ndef f(x): return 5"
    tests = "def poly(x):\n  return x - 2\ndef check(candidate):\n  assert poly(candidate(1)) == 0\ncheck(f)"
    assert score(source, code(tests, entry_point="f")).value == 0.0
    assert score(source, code("assert poly(f(1)) == 0")).value == 1.0
    assert score(source, code("assert poly(f(1)) == 0", entry_point="f")).value == 0.0
    assert (
        score("class S:\n  def f(self): return 2", code("assert candidate() == 2 == S.f()", entry_point="S.f")).value
        == 0
    )


def test_several_test_codes_are_several_tests(score):
    found = score(
        "def f(x): return x", code(["assert f(1) == 1", "assert f(2) == 3", "assert f(3) == 3"]), every_test=True
    )
    assert (found.value, found.metrics["tests_passed"]) == (0.0, 2 / 3)
    assert found.note.startswith("test 2 of 3: line 1 of the tests: AssertionError")


FORGED = {
    "names": "D1;s5:namesi1;",
    "more names": "D1;s5:namesD1;i1;i1;",
    "no message": "x",
    "nothing": "",
    "a huge message": "L1000000;" + "n" * 1_000_000,
    "a wrong length": None,
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("when", ["import", "call"])
def test_a_solution_that_speaks_out_of_turn_has_failed(score, name, when):
    frame = b"\xff" * 8 if FORGED[name] is None else len(FORGED[name]).to_bytes(4, "big") + FORGED[name].encode()
    packed = f"import os, zlib\nframe = zlib.decompress({zlib.compress(frame)!r})\n"
    forge = "for fd in range(3, 9):\n  try:\n    if not os.isatty(fd): os.write(fd, frame)\n  except OSError: pass\n"
    source = packed + (forge if when == "import" else "def f(x):\n  " + forge.replace("\n", "\n  ") + "\n  return 0")
    assert score(source, code("assert f(1) == 2")).value == 0.0


def test_a_solution_that_drowns_its_tests_has_failed(score):
    flood = "import os\nframe = b'L1000000;' + b'n' * 1000000\ndef f(x):\n  for fd in range(3, 9):\n    try:\n      for i in range(40): os.write(fd, len(frame).to_bytes(4, 'big') + frame)\n    except OSError: pass"
    found = score(flood, code("for i in range(40):\n  try: f(i)\n  except Exception: pass", limits={"seconds": 2}))
    assert found.value == 0.0


def test_a_solution_that_stops_answering_is_a_limit(score):
    found = score("def f(x):\n  while True: pass", code("assert f(1) == 2", limits={"seconds": 0.5}))
    assert found.is_limit and "timeout" in found.note


TALK = {"kind": "stdin", "tests": [{"stdin": "2\n", "stdout": "4\n"}, {"stdin": "3\n", "stdout": "9\n"}]}


@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("print(int(input())**2)", "passes all 2 tests"),
        ("print(4)", "test 2 of 2: wrong answer: token 1 is '4', expected '9'"),
        ("print(", "test 1 of 2: exit status 1: SyntaxError: '(' was never closed"),
        ("raise ValueError('no')", "test 1 of 2: exit status 1: ValueError: no"),
        ("import os\nos.abort()", "test 1 of 2: ended by SIGABRT"),
        ("while True: pass", "limit: test 1 of 2: timeout after 0."),
        ("print('x' * 10**7)", "limit: test 1 of 2: more than 1 MB of output"),
        ("x = bytearray(10**9)", "limit: test 1 of 2: more than 64 MB of memory"),
        (
            "import sys\nsys.stderr.write('\\x1b[31m\\u202e\\n')\nsys.exit(3)",
            "test 1 of 2: exit status 3: \\x1b[31m\\x202e",
        ),
    ],
)
def test_a_note_says_what_happened_in_one_line(score, source, note):
    found = score(source, {**TALK, "limits": {"seconds": 0.5, "memory_mb": 64, "output_mb": 1}})
    assert found.note.startswith(note)
    assert "\n" not in found.note and found.is_limit is note.startswith("limit")


def test_a_program_is_stopped_at_its_first_failure_unless_every_test_counts(score):
    answer = {"kind": "stdin", "tests": [{"stdin": str(n), "stdout": str(n % 2)} for n in range(4)]}
    early = score("print(0)", answer)
    assert (early.value, dict(early.metrics)) == (0.0, {"program": 1.0})
    every = score("print(0)", answer, every_test=True)
    assert (every.value, dict(every.metrics)) == (0.0, {"program": 1.0, "tests_passed": 0.5})
    assert every.note.endswith("; 2 of 4 passed")
    fraction = score("print(0)", {**answer, "scoring": "fraction"})
    assert (fraction.value, fraction.metrics["tests_passed"]) == (0.5, 0.5)
    assert score("print(int(input()) % 2)", answer).metrics == {"program": 1.0}


def test_after_many_timeouts_the_other_tests_are_not_run(score):
    tests = [{"stdin": str(n), "stdout": "0"} for n in range(MOST_TIMEOUTS + 3)]
    source = f"n = int(input())\nwhile n < {MOST_TIMEOUTS}: pass\nprint(0)"
    found = score(source, {"kind": "stdin", "tests": tests, "limits": {"seconds": 0.2}}, every_test=True)
    assert found.metrics["tests_passed"] == 0.0 and found.is_limit


JUDGE = "import sys\ni, o, x = [open(p).read() for p in sys.argv[1:4]]\n"
VERDICTS = [
    ("sys.exit(0 if i == '2\\n' and o == '7\\n' and x == '4\\n' else 1)", 1),
    ("print('not', o.strip()); sys.exit(1)", 0),
]
FAILURES = ["sys.exit(2)", "import os\nos.kill(os.getpid(), 9)", "while True: print('x' * 10**6)"]


def judged_by(source, **more):
    return {
        "kind": "stdin",
        "tests": [{"stdin": "2\n", "stdout": "4\n"}],
        "checker": {"type": "program", "source": JUDGE + source, **more},
    }


@pytest.mark.parametrize(("source", "value"), VERDICTS)
def test_a_special_judge_decides_by_its_status(score, source, value):
    found = score("print(7)", judged_by(source))
    assert found.value == value and ("not 7" in found.note or value)


@pytest.mark.parametrize("source", FAILURES)
def test_a_special_judge_that_fails_is_an_error_and_no_verdict(score, source):
    with pytest.raises(TaskError, match="special judge failed"):
        score("print(7)", judged_by(source))


def test_a_program_that_failed_is_not_shown_to_the_special_judge(score):
    assert score("print(7)\nraise SystemExit(1)", judged_by("sys.exit(2)")).value == 0.0


def test_what_a_program_prints_cannot_reach_the_special_judge_or_be_read_from_it(score):
    spy = "import glob\nroots = ['.', '..', '/tmp', '/dev/shm', '/run', '/work', '/home', '/opt', '/inside']\nprint([p for root in roots for p in glob.glob(root + '/**/expected', recursive=True)])"
    found = score(spy, judged_by("print(o[:80]); sys.exit('expected' in o)"))
    assert found.value == 1.0


CPP = "#include <iostream>\nint main() { long long n; std::cin >> n; std::cout << n * n; }"


def test_a_program_in_cpp_is_compiled_once_and_judged(score):
    require_engine("cpp")
    assert score(CPP, {**TALK, "language": "cpp"}, tag="cpp").value == 1.0
    broken = score(CPP[:-1], {**TALK, "language": "c++20"}, tag="c++", every_test=True)
    assert broken.note.startswith("test 1 of 2: compile error: ") and broken.metrics["tests_passed"] == 0.0
    checked = {
        **TALK,
        "checker": {"type": "program", "language": "c++17", "source": "int main(int n, char**) { return n != 4; }"},
    }
    assert score("print(int(input()))", checked).value == 1.0
    with pytest.raises(TaskError, match="special judge does not compile"):
        score("print(1)", {**TALK, "checker": {**checked["checker"], "source": "int main( {"}})


@pytest.mark.parametrize("source", ["#" * 5_000_000 + "\nprint(int(input())**2)", "print(int(input())**2)#\udcff\ud800", "print(\r\nint(input())**2)\r\n", "\ufeffprint(int(input())**2)"], ids=["large", "surrogates", "crlf", "mark"])  # fmt: skip
def test_an_odd_source_is_run_as_it_is(score, source):
    found = score(source, TALK)
    assert found.value == 1.0, found.note


def test_verdicts_do_not_depend_on_the_order_of_programs(score):
    honest, hostile = "print(int(input())**2)", "import os, signal\nprint(4)\nos.kill(-1, signal.SIGKILL)"
    for source in itertools.chain.from_iterable(zip([hostile] * 3, [honest] * 3, strict=True)):
        assert score(source, TALK).value == float(source == honest)
