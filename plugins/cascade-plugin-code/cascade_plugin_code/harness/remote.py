"""Objects that stay with the solution, as test code sees them, and values of a subclass that has more to it than its base.

Calls, attributes, items, iteration, lengths and truth values of such an object are asked of the solution, and whether another one is an instance of it. It is equal to
nothing but itself, whatever its own methods would say, and no operator is forwarded (but see `instances`): by these a function could return what passes any test. `with` enters and leaves
it, and no exception ends there or becomes another: by that it could end the test before its last line.

A value of a subclass is its base here, with all that this can do; only what the base has not, a field of a named tuple say, is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FORWARDED = {
    **{name: name for name in ("len", "getitem", "setitem", "delitem", "iter", "reversed", "next", "str", "repr")},
    "bool": "truth",
}
_ASKED = ("__name__", "__qualname__")


class Remote:
    """An object that stays with the solution."""

    def __init__(self, solution: Any, number: int, is_function: bool) -> None:
        vars(self).update(_solution=solution, _number=number, _is_function=is_function, _makes=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _ASKED:
            raise AttributeError(name)
        return self._solution.get(name, self._number)

    def __setattr__(self, name: str, value: Any) -> None:
        self._solution.put(name, value, self._number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_function:
            raise TypeError("the object of the solution cannot be called")
        return self._solution.call("__call__", args, kwargs, self._number, makes=self._makes)

    def __instancecheck__(self, value: Any) -> bool:
        behind = behind_of(value)
        return behind is not None and self._solution.is_instance(behind, self._number)

    def __subclasscheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and self._solution.is_instance(value, self._number, a_class=True)

    def __enter__(self) -> Any:
        return self._solution.call("__enter__", (), {}, self._number)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        try:
            self._solution.leave(error, self._number)
        except Exception:
            if error is None:
                raise
        return False  # what went wrong in the block goes on as what it was


def operator(name: str) -> Callable[..., Any]:
    """A method that asks the solution for what an operator gives."""
    return lambda self, *others: self._solution.do(name, self, *others)


for _name, _function in _FORWARDED.items():
    setattr(Remote, f"__{_name}__", operator(_function))
Remote.__doc__ = property(lambda self: self._solution.get("__doc__", self._number))  # type: ignore[assignment]


def _with_more(kind: type) -> type:
    def ask(self: Any, name: str) -> Any:
        if name == "_behind":  # not there yet
            raise AttributeError(name)
        return getattr(self._behind, name)

    def copied(self: Any, memo: Any = None) -> Any:
        from copy import deepcopy  # here, since few tests copy

        base = kind(self)
        return with_more(base if memo is None else deepcopy(base, memo), self._behind)

    more: dict[str, Any] = {"__getattr__": ask, "__copy__": copied, "__deepcopy__": copied}
    if kind is dict:
        more["__missing__"] = lambda self, key: self._behind[key]
    return type(kind.__name__, (kind,), more)


_MORE = {kind: _with_more(kind) for kind in (int, float, complex, str, bytes, tuple, frozenset, list, dict, set)}
_KINDS = frozenset(_MORE.values())
_UNCHANGED = frozenset(_MORE[kind] for kind in (int, float, complex, str, bytes, tuple, frozenset))


def with_more(value: Any, remote: Remote) -> Any:
    """The value, which asks the solution for attributes that it has not itself; of a dictionary also for keys."""
    kind = _MORE.get(type(value))
    if kind is None:
        return value
    made = kind(value)
    made._behind = remote
    return made


def behind_of(value: Any) -> Remote | None:
    """The solution's object that a value is, or is the base of."""
    if isinstance(value, Remote):
        return value
    return value._behind if type(value) in _KINDS else None


def unchanged(value: Any) -> Remote | None:
    """The solution's object that a value still is, and can be handed back as; what can be changed here may have been."""
    return behind_of(value) if isinstance(value, Remote) or type(value) in _UNCHANGED else None


def is_ours(kind: type) -> bool:
    """Whether it is a class of this module."""
    return issubclass(kind, Remote) or kind in _KINDS
