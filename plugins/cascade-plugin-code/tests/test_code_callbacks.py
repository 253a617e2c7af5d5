"""Functions of test code that are handed to the solution: they are called where they are, and their results go back."""

import pytest
from cascade_plugin_code.domain import CodeDomain

from cascade_core import Response, Task
from cascade_core.errors import TaskError


@pytest.fixture
def score(docker):
    domain = CodeDomain()
    domain.open({"sandbox": docker.address})

    def judge(source, tests, seconds=4.0):
        answer = {"kind": "assert", "test_code": tests, "limits": {"seconds": seconds}}
        return domain.score(Task("t", "", answer), Response(f"```python\n{source}\n```"))

    yield judge
    domain.close()


SOURCE = """
import functools, inspect, threading
from concurrent.futures import ThreadPoolExecutor
def apply(f, *args, **more): return f(*args, **more)
def same(f): return f
def ordered(xs, key=None): return sorted(xs, key=key)
def lazily(f, xs): return (f(x) for x in xs)
def twice(f):
  @functools.wraps(f)
  def inner(*args):
    inner.calls += 1
    return f(f(*args))
  inner.calls = 0
  return inner
def memo(f): return functools.lru_cache(f)
def retry(f, times):
  for left in reversed(range(times)):
    try: return f()
    except ValueError:
      if not left: raise
def safe(f):
  try: return f()
  except Exception as error: return f'{type(error).__name__}: {error}'
def all_at_once(f, xs):
  with ThreadPoolExecutor(4) as pool: return list(pool.map(f, xs))
def curry(f):
  def more(*got): return f(*got) if len(got) == len(inspect.signature(f).parameters) else lambda x: more(*got, x)
  return more()
def form(f): return str(inspect.signature(f))
def left_over(f, times):
  global thread
  thread = threading.Thread(target=lambda: [f(x) for x in range(times)])
  thread.start()
def joined():
  thread.join()
  return True
def in_order(f):
  import collections
  given = f(collections.OrderedDict({1: 2}))
  return given if hasattr(given, 'get') else list(given)
class Bus:
  def __init__(self): self.heard = []
  def on(self, f): self.heard.append(f)
  def emit(self, x): return [f(x) for f in self.heard]
"""
RIGHT = [
    "assert apply(lambda x, y=1: x + y, 1) == 2 and apply(lambda x, y=1: x + y, 1, y=5) == 6",
    "assert ordered(['bb', 'a'], key=len) == ['a', 'bb'] and ordered([1, 2], key=lambda x: -x) == [2, 1]",
    "assert list(lazily(lambda x: x * 2, [1, 2])) == [2, 4]",
    "@twice\ndef inc(x):\n  'adds'\n  return x + 1\nassert inc(1) == 3 and inc.calls == 1 and (inc.__name__, inc.__doc__) == ('inc', 'adds')",
    "calls = []\n@memo\ndef fib(n):\n  calls.append(n)\n  return n if n < 2 else fib(n - 1) + fib(n - 2)\nassert fib(30) == 832040 and len(calls) == 31",
    "left = [1, 2]\ndef fails():\n  if left:\n    left.pop()\n    raise ValueError('no')\n  return 'yes'\nassert retry(fails, 3) == 'yes'",
    "def fails(): raise ValueError('no')\ntry:\n  retry(fails, 3)\n  assert False\nexcept ValueError as error:\n  assert str(error) == 'no'",
    "def fails(): raise KeyError('no')\nassert safe(fails) == \"KeyError: 'no'\"",
    "heard = []\nbus = Bus()\nbus.on(heard.append if False else lambda x: heard.append(x))\nbus.emit(3)\nassert heard == [3]",
    "class Count:\n  n = 0\n  def add(self, x):\n    self.n += x\n    return self.n\nc = Count()\nbus = Bus()\nbus.on(c.add)\nbus.on(c.add)\nassert bus.emit(3) == [3, 6] and c.n == 6",
    "assert all_at_once(lambda x: x * x, list(range(20))) == [x * x for x in range(20)]",
    "def f(x): return x\nassert same(f) is f and same(f)(3) == 3 and apply(same, f) is f",
    "assert apply(lambda: lambda x: x + 1)(2) == 3 and apply(apply, lambda x: x, 3) == 3",
    "def f(): return {}['no']\ntry:\n  apply(f)\nexcept KeyError as error:\n  assert str(error) == \"'no'\"\nelse:\n  assert False",
    "b = Bus()\nassert apply(lambda x: x is b, b)",
    "class Boom(Exception): pass\ndef fails(): raise Boom('x')\ntry: retry(fails, 3)\nexcept Boom as error: assert str(error) == 'x'\nelse: assert False",
    "class Base(ValueError): pass\nclass Boom(Base): pass\nleft = [1, 2]\ndef fails():\n  if left:\n    left.pop()\n    raise Boom('x')\n  return 1\nassert retry(fails, 3) == 1 and safe(lambda: retry(lambda: [].x, 1))[:14] == 'AttributeError'",
    "class Boom(Exception):\n  def __init__(self, a, b): super().__init__(a)\ndef fails(): raise Boom('x', 3)\nassert safe(fails) == 'Boom: x'\ntry: retry(fails, 1)\nexcept Exception as error: assert str(error) == 'x'\nelse: assert False",
    "assert curry(lambda x, y, z: x + y + z)(1)(2)(3) == 6 and curry(lambda x: x)(1) == 1",
    "class C:\n  def m(self, x, /, y): return x - y\n  def n(self, /): return 7\nassert curry(C().m)(3)(1) == 2 and form(C().m) == '(x, /, y)' and form(C().n) == '()'",
    "def f(a, b=1, /, c=2, *d, e, f=3, **g): pass\nassert form(f) == '(a, b=Ellipsis, /, c=Ellipsis, *d, e, f=Ellipsis, **g)' and form(lambda *, x: x) == '(*, x)' and form(lambda *a, **k: 0) == '(*a, **k)'",
    "heard = []\nleft_over(lambda x: heard.append(x), 50)\nassert [same(n) for n in range(100)] == list(range(100)) and joined() and heard == list(range(50))",
    "assert in_order(lambda d: d.items() and list(d.items()) and d.items()) == [(1, 2)]",
    "assert apply(lambda x: x, in_order(lambda d: d).values()) and in_order(lambda d: d.keys()) == [1]",
]
WRONG = [
    "assert apply(lambda x: x + 1, 1) == 3",
    "calls = []\napply(lambda: calls.append(1))\nassert calls == [1, 1]",
    "def fails(): raise ValueError('no')\nassert retry(fails, 3) == 'yes'",
]


@pytest.mark.parametrize("tests", RIGHT + WRONG)
def test_a_function_of_the_tests_is_called_where_it_is(score, tests):
    found = score(SOURCE, tests)
    assert found.value == float(tests in RIGHT), found.note


LYING = """
import os, sys
class Any:
  __eq__ = __lt__ = __bool__ = __contains__ = __call__ = lambda self, *other: True
  __hash__ = object.__hash__
  __sub__ = __add__ = __mul__ = lambda self, other: self
def apply(f, *args):
  for given in ((), (Any(),), (Any(), Any())):
    try: f(*given)
    except BaseException: pass
  return Any()
def odd(f):
  import collections, decimal, fractions
  for given in ([1], {1: 2}, decimal.Decimal(1), fractions.Fraction(1), {1: 2}.keys(), int, collections.deque([1])):
    try: f(given)
    except BaseException: pass
  return 3
def flood(f):
  while True: f(1)
def ends(f): f(os._exit(0))
def large(f):
  try: f([0] * 900_000)
  except BaseException: return 3
def deep(f): return f(lambda *a: deep(f))
def forged(f):
  for fd in range(3, 9):
    for message in (b'', b'D1;s5:valueL0;', b'D1;s5:valueL3;i100000000;L0;D0;', b'D1;s5:valueL3;i100000001;L0;D0;', b'D1;s5:valueO4294967299,1;'):
      try: os.write(fd, len(message).to_bytes(4, 'big') + message)
      except OSError: pass
  return 3
"""
CHEATED = [
    "seen = []\ndef note(x=0):\n  seen.append(x)\n  return x\nassert apply(note, 3) == 3",
    "seen = []\napply(lambda x: seen.append(x), 3)\nassert seen == [3]",
    "seen = []\napply(lambda x: seen.append(x + 1), 3)\nassert 4 in seen",
    "assert ends(lambda x: x) is None",
    "assert large(lambda xs: xs + xs) == 4",
    "assert large(lambda xs: xs.append) == 4",
    "assert odd(lambda x: type(x)) == 4",
    "assert odd(lambda x: iter(x)) == 4",
    "assert odd(lambda x: reversed(x)) == 4",
    "assert flood(lambda x: x) is None",
    "assert deep(lambda f: f()) == 3",
    "def f(): return 1\nassert forged(f) == 4",
    "def f():\n  raise SystemExit(0)\napply(f)\nassert apply(f) == 3",
]


@pytest.mark.parametrize("tests", CHEATED)
def test_a_solution_gains_nothing_by_calling_functions_of_the_tests(score, tests):
    assert score(LYING, tests, 1.0).value == 0.0


def test_what_a_function_of_the_tests_gives_that_cannot_travel_is_their_fault(score):
    with pytest.raises(TaskError, match="the test code hands an object of type A back"):
        score(SOURCE, "class A: pass\nassert apply(lambda: A()) == 3")
