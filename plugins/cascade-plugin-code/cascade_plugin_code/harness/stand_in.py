"""What test code sees of the solution: functions that forward each call, and objects that stay where they are.

An exception of the solution arrives as the nearest class that the test code knows: a stand-in for one of the solution's own, or a built-in
one that is an `Exception`, never one that would end this process. `StopIteration` ends loops of the test code's own without a word,
`all(map(…))` for one, so a call raises `RuntimeError` for it, as a generator does, unless the test code names it. A solution that has
ended raises `Died`, then and at every later call.

Arguments are copies, except in calls on the lines of the test code that look at what was made of them (`looking`): what such a call changed in a list, a dictionary, a set,
a deque or a bytearray is changed here too, in the same object. An argument that cannot be handed over is the test code's fault and noted as
such, whatever the test code catches, except functions, which the solution may call (`callbacks`); but one that is too large or too deep only where the solution has given nothing that it may be made of.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from cascade_plugin_code.harness.callbacks import Callbacks, told
from cascade_plugin_code.harness.channel import CALLBACK, OF_THE_TESTS, Channel, Ended
from cascade_plugin_code.harness.instances import Computed, Made, makes
from cascade_plugin_code.harness.kinds import is_class_of_a_kind
from cascade_plugin_code.harness.remote import Remote, is_ours, unchanged, with_more
from cascade_plugin_code.harness.travel import PLAIN, Reader, Writer, refill
from cascade_plugin_code.harness.typed import Foreign, Unplain, dumps

INTERRUPTED = "the solution broke into the conversation"
SOLUTION_ENDED = "the solution ended before the tests did"
UNPLAIN = "the solution made of an argument what is no plain value: "
TEST = "test.py"
MOST_BASES = 20
"""Bases of an exception class that get stand-ins of their own; the solution may have any number, and name them in a circle."""


class Died(BaseException):
    """The solution has ended; no `except Exception` of the test code stops this."""


class Solution:
    """The solution, reached through the channel.

    `looking` are the lines of the test code whose calls change their arguments, `None` if all do.
    """

    def __init__(self, channel: Channel, looking: frozenset[int] | None = frozenset()) -> None:
        self._channel, self._looking = channel, looking
        self.asked = 0
        self.died = ""
        self.broken = ""
        self.names_stop = False
        self._gave_containers = False
        self.raised: list[BaseException] = []
        self._classes: dict[str, type[Exception]] = {}
        self._of_the_tests: dict[str, type[Exception]] = {}
        self._remotes: dict[int, Remote] = {}
        self._functions: dict[int, str] = {}
        self._callbacks = Callbacks()
        self._kept: list[Any] = []
        hello, _ = self._read(self._heard())
        if "unloadable" in hello:
            self._die(str(hello["unloadable"]))
        self.names = self._names(hello.get("names"))

    def _names(self, told: Any) -> dict[str, str]:
        if not isinstance(told, dict) or not all(type(part) is str for pair in told.items() for part in pair):
            self._die(INTERRUPTED)
        return told

    def call(self, name: str, args: Any, kwargs: Any, of: int | None = None, *, makes: bool = False) -> Any:
        """Calls a function, or a method of a remote object; where it `makes` instances, these have operators."""
        request = {"call": name, "args": list(args), "kwargs": kwargs, **({} if of is None else {"of": of})}
        kind = Made if makes else Remote
        return self._ask({**request, "back": True} if (args or kwargs) and self._looks() else request, kind)

    def do(self, name: str, *operands: Any) -> Any:
        """What an operator gives, or a function of `builtins` that is one."""
        kind = Computed if isinstance(operands[0], Computed) or isinstance(operands[-1], Computed) else Remote
        return self._ask({"do": name, "args": list(operands)}, kind)

    def get(self, name: str, of: int | None = None) -> Any:
        """A value, or an attribute of a remote object."""
        value = self._ask({"get": name} if of is None else {"get": name, "of": of})
        if of is None and isinstance(value, Remote):
            vars(value).update(_makes=makes(name, self.names.get(name, "")))
        return value

    def put(self, name: str, value: Any, of: int) -> None:
        """Sets an attribute of a remote object."""
        self._ask({"set": name, "to": value, "of": of})

    def is_instance(self, value: Remote, of: int, *, a_class: bool = False) -> bool:
        """Whether a remote object is an instance, or as a class a subclass, of another."""
        return self._ask({"is": value, "class": a_class, "of": of}) is True

    def leave(self, error: BaseException | None, of: int) -> None:
        """Ends the `with` of a remote object."""
        if error is None:
            self._ask({"call": "__exit__", "args": [None, None, None], "kwargs": {}, "of": of})
        else:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            self._ask({"exit": kinds, "text": str(error)[:1000], "of": of})

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

    def _looks(self) -> bool:
        if not self._looking:
            return self._looking is None
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != TEST:
            frame = frame.f_back
        return frame is not None and frame.f_lineno in self._looking

    def _ask(self, request: dict[str, Any], kind: type[Remote] = Remote) -> Any:
        if self.died:
            raise Died(self.died)
        self.asked += 1
        writer = Writer(self._stays)
        self._send(writer, request, f"to {request.get('call') or request.get('set') or request.get('do')}")
        answer, reader = self._answered(writer.known if "back" in request else (), kind)
        self._gave_containers |= type(answer.get("value")) not in _SCALARS
        if "changed" in answer:
            self._change(answer, reader, request)
        if "kinds" in answer:
            error = self._error(answer)
            if isinstance(error, StopIteration) and request.get("do") != "next" and not self.names_stop:
                raise RuntimeError("the solution raised StopIteration")
            raise error
        return answer["value"]

    def _send(self, writer: Writer, message: dict[str, Any], where: str) -> None:
        """Says a message, and before it how functions that are new in it are called.

        Raises:
            TypeError: a value in it cannot be handed over, which is noted where it is not the solution's doing.
        """
        try:
            data = writer.whole(message)
            if self._callbacks.new:
                self._channel.send(dumps({"functions": self._callbacks.new}))
                self._callbacks.new.clear()
            self._channel.send(data)
        except Unplain as cause:
            why = f"the test code hands {cause} {where}"
            # What is too large may be made of the solution's.
            if isinstance(cause, Foreign) or not self._gave_containers:
                self.broken = why
            raise TypeError(why) from None
        except Ended:
            self._die(SOLUTION_ENDED)

    def _answered(self, known: Any, kind: type[Remote]) -> tuple[dict[str, Any], Reader]:
        """The answer, after the calls of the tests' functions that come before it."""
        while True:
            data = self._heard()
            if data != CALLBACK:
                return self._read(data, known, kind)
            asked, _ = self._read(self._heard())
            self._call_back(asked)

    def _call_back(self, asked: dict[str, Any]) -> None:
        self._gave_containers = True  # its arguments are some
        try:
            function, args, kwargs = self._callbacks.function(asked["value"][0]), *asked["value"][1:]
            given = {"value": function(*args, **kwargs)}
        except Unplain:
            self._die(INTERRUPTED)
        except Died:
            raise
        except BaseException as error:  # noqa: BLE001 - the solution is told; it must not end the tests by a `SystemExit` of theirs
            given = told(error)
            if isinstance(error, Exception) and not hasattr(builtins, type(error).__name__):
                self._of_the_tests[type(error).__name__] = type(error)
        try:
            self._send(Writer(self._stays), given, "back")
        except TypeError as error:
            self._send(Writer(self._stays), told(error), "back")

    def _change(self, answer: dict[str, Any], reader: Reader, request: dict[str, Any]) -> None:
        """Makes the changes of a call in what it was handed, and sees that this is still a value; else the solution has ended."""
        changed = answer.pop("changed")
        try:
            if type(changed) is not dict or "back" not in request:
                raise Unplain("no changes")
            for place, row in changed.items():
                if type(place) is not int or not 0 <= place < len(reader.known):
                    raise Unplain("no container")
                refill(reader.known[place].value, row)
            Writer(self._stays).whole([request, answer])
        except Unplain as cause:
            self._die(UNPLAIN + str(cause))

    def _heard(self) -> bytes:
        try:
            return self._channel.receive()
        except Ended:
            self._die(SOLUTION_ENDED)

    def _read(self, data: bytes, known: Any = (), kind: type[Remote] = Remote) -> tuple[dict[str, Any], Reader]:
        def remote(number: int, is_function: bool) -> Any:
            if number >= OF_THE_TESTS:
                return self._callbacks.function(number)
            if number not in self._remotes:
                new.append(number)
            return self._remote(number, is_function)

        new: list[int] = []
        try:
            reader = Reader(data, remote, self._more, known)
            answer = reader.whole()
        except (Unplain, MemoryError):
            self._die(SOLUTION_ENDED)
        if not isinstance(answer, dict) or not any(key in answer for key in ("names", "unloadable", "value", "kinds")):
            self._die(INTERRUPTED)
        top = answer.get("value")
        if type(top) is Remote and top._number in new:
            object.__setattr__(top, "__class__", kind)
        return answer, reader

    def _stays(self, value: Any) -> tuple[int, bool]:
        """How a value goes that is of no kind: as an object of the solution, or as its base."""
        own = self._functions.get(id(value))
        remote = unchanged(value) if own is None else self.get(own)
        if isinstance(remote, Remote):
            return remote._number, False
        if isinstance(value, PLAIN):
            return -1, True
        handed = self._callbacks.number(value)
        if handed is not None:
            return handed, False
        said = "an object of type " + type(value).__name__[:80]
        raise Unplain(said) if _is_of_a_result(value) else Foreign(said)

    def function(self, name: str) -> Callable[..., Any]:
        """A function of this name that calls the solution's, and is that one where it is handed over."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, args, kwargs)

        forward.__name__ = forward.__qualname__ = name
        self._kept.append(forward)
        self._functions[id(forward)] = name
        return forward

    def _remote(self, number: int, is_function: bool) -> Remote:
        return self._remotes.setdefault(number, Remote(self, number, is_function))

    def _more(self, value: Any, number: int) -> Any:
        return with_more(value, self._remote(number, False))

    def _die(self, why: str) -> NoReturn:
        self.died = why
        raise Died(why)

    def _error(self, answer: dict[str, Any]) -> Exception:
        """The exception of the solution, as one that the tests know or a built-in one; never one that would end this process."""
        names = [name for name in answer["kinds"] if isinstance(name, str)] if type(answer["kinds"]) is list else []
        known = {**self._of_the_tests, **self._classes}
        for kind in [*(known[name] for name in names if name in known), *_built_ins(names)]:
            try:
                error = kind(str(answer.get("raised", "")))
            except Exception:  # noqa: BLE001 - it wants more than a text, or another
                continue
            self.raised.append(error)
            return error
        return Exception(str(answer.get("raised", "")))


_SCALARS = (type(None), bool, int, float, complex)


def _is_of_a_result(value: Any) -> bool:
    """Whether it may be there only because of what the solution returned: a method or an iterator of a value, its class, one of our classes."""
    own = type(value)
    if own.__module__ in ("builtins", "_collections") and own.__name__.endswith(("iterator", "reversed")):
        return True
    owner = getattr(value, "__self__", None) if own is type([].append) else None
    return (
        (owner is not None and type(owner) is not type(sys))
        or is_class_of_a_kind(value)
        or (own is type and is_ours(value))
    )


def _built_ins(names: list[str]) -> list[type[Exception]]:
    """The built-in exceptions among the names which do not end a process."""
    kinds = [getattr(builtins, name, None) for name in names]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
