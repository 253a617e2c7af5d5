"""Objects of a class that the tests themselves name and make, `Vector(1, 2)`: what they test is this class, its operators too.

Of these alone operators are asked of the solution. Of what a function returned they are not, since by them it could pass any test: `abs(f(x) - 2) < 1e-6`. For the same reason
what an operator gave has no order, but beside another such object, and is no number; `==` stays identity for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cascade_plugin_code.harness.remote import Remote, operator

_ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")  # fmt: skip
_ORDER = ("lt", "le", "gt", "ge")
_UNARY = ("neg", "pos", "invert")
_NUMBER = ("abs", "int", "float", "complex", "index", "round")


class Computed(Remote):
    """What an operator gave."""

    def __contains__(self, value: Any) -> bool:
        return bool(self._solution.do("contains", self, value))

    def __format__(self, how: str) -> str:
        return self._solution.do("format", self, how)  # type: ignore[no-any-return]  # Python itself refuses what is no text


class Made(Computed):
    """What a call of the class gave."""


def makes(name: str, kind: str) -> bool:
    """Whether what a call of this name gives is `Made`: what the solution says to be a class, and the tests write like one."""
    return kind == "class" and name[:1].isupper() and name != "Solution"


def _new(name: str) -> Callable[..., Any]:
    return lambda self, *others: _computed(self._solution.do(name, self, *others))


def _reflected(name: str) -> Callable[..., Any]:
    return lambda self, other: _computed(self._solution.do(name, other, self))


def _computed(value: Any) -> Any:
    """The result of an operator, which may be an object that a call of the class gave."""
    if type(value) is Made:
        object.__setattr__(value, "__class__", Computed)
    return value


def _order(name: str) -> Callable[..., Any]:
    return lambda self, other: self._solution.do(name, self, other) if isinstance(other, Computed) else NotImplemented


for _kind in (Computed, Made):
    _kind.__doc__ = vars(Remote)["__doc__"]  # the solution's, not ours
for _name in _ARITHMETIC:
    setattr(Computed, f"__{_name}__", _new(_name))
    setattr(Computed, f"__r{_name}__", _reflected(_name))
    setattr(Computed, f"__i{_name}__", operator("i" + _name))
for _name in _UNARY:
    setattr(Computed, f"__{_name}__", _new(_name))
for _name in _ORDER:
    setattr(Computed, f"__{_name}__", _order(_name))
for _name in _NUMBER:
    setattr(Made, f"__{_name}__", operator(_name))
