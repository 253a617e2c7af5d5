"""What test code sees of the solution: functions that forward each call, and objects that stay where they are.

An exception of the solution arrives as the nearest class that the test code knows: a stand-in for one of the solution's own, or a built-in
one that is an `Exception`, never one that would end this process. `StopIteration` ends loops of the test code's own without a word,
`all(map(…))` for one, so a call raises `RuntimeError` for it, as a generator does, unless the test code names it. A solution that has
ended raises `Died`, then and at every later call. A value of a subclass is its base here, with all that this can do; only what the base has
not, a field of a named tuple say, is asked of the solution. An argument that is no plain value cannot be handed over, which is the test code's
fault and noted as such, whatever the test code catches.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NoReturn

from cascade_plugin_code.harness.channel import Channel, Ended
from cascade_plugin_code.harness.typed import Unplain

INTERRUPTED = "the solution broke into the conversation"
SOLUTION_ENDED = "the solution ended before the tests did"
_MUTABLE, _IMMUTABLE = (list, dict, set), (int, float, str, bytes, tuple, frozenset)
MOST_BASES = 20
"""Bases of an exception class that get stand-ins of their own; the solution may have any number, and name them in a circle."""
_FORWARDED = (
    "__len__",
    "__getitem__",
    "__setitem__",
    "__delitem__",
    "__iter__",
    "__next__",
    "__str__",
    "__repr__",
    "__call__",
)


class Died(BaseException):
    """The solution has ended; no `except Exception` of the test code stops this."""


class Solution:
    """The solution, reached through the channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.asked = 0
        self.died = ""
        self.broken = ""
        self.names_stop = False
        self._gave_objects = False
        self.raised: list[BaseException] = []
        self._classes: dict[str, type[Exception]] = {}
        told = self._receive()
        if "unloadable" in told:
            self._die(str(told["unloadable"]))
        self.names = self._names(told.get("names"))

    def _names(self, told: Any) -> dict[str, str]:
        if not isinstance(told, dict) or not all(type(part) is str for pair in told.items() for part in pair):
            self._die(INTERRUPTED)
        return told

    def call(self, name: str, args: Any, kwargs: Any, of: int | None = None) -> Any:
        """Calls a function, or a method of a remote object."""
        request = {
            "call": name,
            "args": [self._argument(value) for value in args],
            "kwargs": {key: self._argument(value) for key, value in kwargs.items()},
        }
        return self._ask(request if of is None else {**request, "of": of})

    def get(self, name: str, of: int | None = None) -> Any:
        """A value, or an attribute of a remote object."""
        return self._ask({"get": name} if of is None else {"get": name, "of": of})

    def put(self, name: str, value: Any, of: int) -> None:
        """Sets an attribute of a remote object."""
        self._ask({"set": name, "to": self._argument(value), "of": of})

    def exception(self, name: str, depth: int = 0) -> type[Exception] | None:
        """A class that stands for an exception class of the solution; `None` where the name is not that of one.

        Only names that say so count, `EmptyStack` does not: a function under test that is an exception class would else be a
        call that always gives something true, and never asks the solution.
        """
        kind, *bases = self.names.get(name, "").split(" ")
        if kind != "exception" or not name.endswith(("Error", "Exception")):
            return None
        if name not in self._classes:
            known = next((base for base in bases if base in self.names and base != name), "")
            own = self.exception(known, depth + 1) if known and depth < MOST_BASES else None
            parent = own or next(iter(_built_ins(bases)), Exception)
            self._classes[name] = type(name, (parent,), {})
        return self._classes[name]

    def _argument(self, value: Any) -> dict[str, Any]:
        remote = value if type(value) is Remote else getattr(type(value), "_unchanged", None)
        return {"object": remote._number} if type(remote) is Remote else {"value": value}

    def _ask(self, request: dict[str, Any]) -> Any:
        if self.died:
            raise Died(self.died)
        self.asked += 1
        try:
            self._channel.send(request)
        except Unplain as cause:
            why = f"the test code hands {cause} to {request.get('call') or request.get('set')}"
            if not self._gave_objects:  # else it may be one of the solution's that is handed on
                self.broken = why
            raise TypeError(why) from None
        except Ended:
            self._die(SOLUTION_ENDED)
        answer = self._receive()
        if "kinds" in answer:
            error = self._error(answer)
            if isinstance(error, StopIteration) and request.get("call") != "__next__" and not self.names_stop:
                raise RuntimeError("the solution raised StopIteration")
            raise error
        if "object" not in answer:
            return answer["value"]
        self._gave_objects = True
        remote = Remote(self, answer["object"], bool(answer.get("callable")))
        return _with_more(answer["value"], remote) if "value" in answer else remote

    def _receive(self) -> dict[str, Any]:
        try:
            answer = self._channel.receive()
        except Ended:
            self._die(SOLUTION_ENDED)
        keys = ("names", "unloadable", "value", "object", "kinds")
        if not isinstance(answer, dict) or not any(key in answer for key in keys):
            self._die(INTERRUPTED)
        return answer

    def _die(self, why: str) -> NoReturn:
        self.died = why
        raise Died(why)

    def _error(self, answer: dict[str, Any]) -> Exception:
        """The exception of the solution as a built-in one; never one that would end this process."""
        names = [name for name in answer["kinds"] if isinstance(name, str)]
        own = [self._classes[name] for name in names if name in self._classes]
        for kind in own or _built_ins(names):
            try:
                error = kind(str(answer.get("raised", "")))
            except TypeError:  # it wants more than a text
                continue
            self.raised.append(error)
            return error
        return Exception(str(answer.get("raised", "")))


def _built_ins(names: list[str]) -> list[type[Exception]]:
    """The built-in exceptions among the names which do not end a process."""
    kinds = [getattr(builtins, name, None) for name in names]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]


class Remote:
    """An object that stays with the solution."""

    def __init__(self, solution: Solution, number: int, is_function: bool) -> None:
        vars(self).update(_solution=solution, _number=number, _is_function=is_function)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._solution.get(name, self._number)
        is_method = type(found) is Remote and found._is_function
        return _method(self._solution, self._number, name) if is_method else found

    def __setattr__(self, name: str, value: Any) -> None:
        self._solution.put(name, value, self._number)

    def __bool__(self) -> bool:
        for name in ("__bool__", "__len__"):
            try:
                return bool(self._solution.call(name, (), {}, self._number))
            except AttributeError:
                continue
        return True  # as of any object that has neither


def _with_more(value: Any, remote: Remote) -> Any:
    """The value, which asks its solution for attributes that it has not itself; of a dictionary also for keys."""
    kind = type(value)
    if kind not in _MUTABLE and kind not in _IMMUTABLE:
        return value
    more: dict[str, Any] = {"__getattr__": lambda _, name: getattr(remote, name)}
    if kind in _IMMUTABLE:  # it can be handed back as what it was
        more["_unchanged"] = remote
    if kind is dict:
        more["__missing__"] = lambda _, key: remote[key]
    return type(kind.__name__, (kind,), more)(value)


def _special(name: str) -> Callable[..., Any]:
    def forward(self: Remote, *args: Any) -> Any:
        try:
            return self._solution.call(name, args, {}, self._number)
        except AttributeError as error:
            raise TypeError(str(error)) from None  # what Python says of an object without such a method

    return forward


for _name in _FORWARDED:
    setattr(Remote, _name, _special(_name))


def _method(solution: Solution, number: int, name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: solution.call(name, args, kwargs, number)


def stand_in(solution: Solution, name: str) -> Callable[..., Any]:
    """A function of this name that calls the solution's."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return solution.call(name, args, kwargs)

    forward.__name__ = forward.__qualname__ = name
    return forward
