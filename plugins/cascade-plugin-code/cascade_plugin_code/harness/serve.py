"""The solution's side of tests that are code: loads it, and answers calls of its functions until nobody asks any more.

First it says what the solution has: `{"names": {name: "callable" | "class" | "value" | "exception …"}}`, an exception class with the names of its
bases, or `{"unloadable": "…"}` and ends. Then each request is `{"call": name, "args": […], "kwargs": {…}}` or `{"get": name}`, at the top of the module
or, with `"of": number`, of an object that an earlier answer was; or of such an object `{"set": name, "to": value}`, `{"is": object, "class": false}`, whether that is an instance (a subclass) of
it, or `{"exit": [kinds], "text": …}`, the end of its `with` by an exception. `{"do": "add", "args": […]}` is an operator, or a built-in function that is one. The answer is `{"value": …}`, or
`{"raised": text, "kinds": ["ValueError", …]}`. Asked with `"back": true`, it also has what containers of the request hold now, if another thing than before, by
their numbers: `"changed": {number: contents}`. A function of the tests is called by `CALLBACK` and
`{"value": [number, args, kwargs]}`, and until its `{"value": …}` or `{"raised": …}` comes, requests are answered as ever. `{"functions": {number: [name, text, parameters]}}` says how those that are new in the next message are called. How values travel: `travel`. What ends the process from within, ends it: there is no answer then.
"""

from __future__ import annotations

import _thread
import builtins
import operator
import os
import types
from typing import Any

from cascade_plugin_code.harness.channel import CALLBACK, OF_THE_TESTS, Channel, Ended
from cascade_plugin_code.harness.loading import Unloadable, found, load, private_streams, told
from cascade_plugin_code.harness.travel import PLAIN, Reader, Writer, contents, same_contents, text_of
from cascade_plugin_code.harness.typed import Unplain, dumps

MOST_OBJECTS = 100_000


class Server:
    """Answers for one solution."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._module = load()
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._methods: dict[tuple[int, str], Any] = {}
        self._handed: dict[int, Any] = {}
        self._lock = _thread.RLock()

    def names(self) -> dict[str, str]:
        """What the solution has at its top, without what begins with two underscores."""
        return {
            name: _kind(value)
            for name, value in list(vars(self._module).items())
            if isinstance(name, str) and not name.startswith("__")
        }

    def serve(self) -> None:
        """Answers until the other side ends."""
        self._channel.send(dumps({"names": self.names()}))
        while True:
            with self._lock:  # a thread that a call left over must not come between a request and its answer
                self._until_told(is_outermost=True)

    def _until_told(self, *, is_outermost: bool = False) -> dict[str, Any]:
        """Answers requests until what comes is an answer: what a function of the tests gave. Threads may talk while an outermost request is worked on."""
        while True:
            reader = Reader(self._channel.receive(), self._object, lambda base, _: base)
            request = reader.whole()
            if "functions" in request:
                self._name(request["functions"])
                continue
            if "value" in request or "kinds" in request:
                return request
            known = reader.known if request.get("back") else []
            before = [contents(one.value) for one in known]
            if is_outermost:
                self._lock.release()
            try:
                answer = self._answer(request)
            finally:
                if is_outermost:
                    self._lock.acquire()
            after = ((place, contents(one.value)) for place, one in enumerate(known))
            changed = {place: row for place, row in after if not same_contents(row, before[place])}
            self._reply({**answer, "changed": changed} if changed else answer, known)

    def _object(self, number: int, is_function: bool) -> Any:
        return self._function(number) if number >= OF_THE_TESTS else self._objects[number]

    def _function(self, number: int) -> Any:
        """What stands for a function of the tests."""
        if number not in self._handed:

            def forward(*args: Any, **kwargs: Any) -> Any:
                return self._call_back(number, args, kwargs)

            self._handed[number] = forward
            self._numbers[id(forward)] = number
        return self._handed[number]

    def _name(self, functions: dict[int, tuple[str, str | None, str]]) -> None:
        from inspect import signature  # here, since few tests hand functions over

        for number, (name, text, parameters) in functions.items():
            function = self._function(number)
            function.__signature__ = signature(eval(f"lambda {parameters}: 0", {}))
            function.__name__ = function.__qualname__ = name
            function.__doc__ = text

    def _call_back(self, number: int, args: Any, kwargs: Any) -> Any:
        try:
            asked = Writer(self._stays).whole({"value": [number, args, kwargs]})
        except Unplain as cause:
            raise TypeError(str(cause)) from None
        with self._lock:  # the solution may have threads
            self._channel.send(CALLBACK)
            self._channel.send(asked)
            told = self._until_told()
        if "kinds" in told:
            raise _error(told["kinds"], told["raised"], vars(self._module))
        return told["value"]

    def _answer(self, request: Any) -> dict[str, Any]:
        try:
            return {"value": self._done(request)}
        except Unloadable as error:
            return {"raised": str(error), "kinds": ["NameError"]}
        except Exception as error:  # noqa: BLE001 - forwarded; what is no Exception ends this process
            return {"raised": _text(error), "kinds": _kinds(type(error))}

    def _done(self, request: Any) -> Any:
        if "of" in request:
            return self._done_with(self._objects[request["of"]], request)
        if "get" in request:
            return vars(self._module)[request["get"]]
        if "do" in request:
            return _operator(request["do"])(*request["args"])
        return found(self._module, request["call"])(*request["args"], **request["kwargs"])

    def _done_with(self, owner: Any, request: Any) -> Any:
        if "set" in request:
            return setattr(owner, request["set"], request["to"])
        if "is" in request:
            return (issubclass if request["class"] else isinstance)(request["is"], owner)
        if "exit" in request:
            error = _error(request["exit"], request["text"], vars(self._module))
            return owner.__exit__(type(error), error, None)
        if "call" in request:
            # A class may have a `__call__` for its instances.
            function = owner if request["call"] == "__call__" else getattr(owner, request["call"])
            return function(*request["args"], **request["kwargs"])
        held = getattr(owner, request["get"])
        if type(held) is types.MethodType:  # a new object each time, of which one is enough
            return self._methods.setdefault((request["of"], request["get"]), held)
        return held

    def _reply(self, answer: dict[str, Any], known: Any) -> None:
        """Answers; a value that cannot be sent stays here as a whole."""
        try:
            data = Writer(self._stays, known).whole(answer)
        except Unplain:
            if "value" not in answer:
                raise
            whole = Whole(answer["value"])
            data = Writer(self._stays, known).whole({**answer, "value": whole})
        self._channel.send(data)

    def _stays(self, value: Any) -> tuple[int, bool]:
        as_base = not isinstance(value, Whole) and type(value) not in PLAIN and isinstance(value, PLAIN)
        kept = value.value if isinstance(value, Whole) else value
        number = self._numbers.get(id(kept))
        if number is None:
            if len(self._objects) >= MOST_OBJECTS:
                raise Unplain(f"more than {MOST_OBJECTS} objects")
            number = self._numbers[id(kept)] = len(self._objects)
            self._objects.append(kept)
        return number, as_base


class Whole:
    """A value that stays here although its type could travel."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _operator(name: str) -> Any:
    return getattr(operator, name + "_", None) or getattr(operator, name, None) or getattr(builtins, name)


def _error(kinds: list[str], text: str, names: dict[str, Any]) -> Exception:
    """An exception of the test code: of its class where there is one of this name here, else of one that is made of the first base that there is."""
    for name in kinds:
        kind = names.get(name, getattr(builtins, name, None))
        if isinstance(kind, type) and issubclass(kind, Exception):
            is_new = kinds[0] not in names and not hasattr(builtins, kinds[0])
            return type(kinds[0], (kind,), {})(text) if is_new else kind(text)
    return Exception(text)


def _text(error: BaseException) -> str:
    try:
        return text_of(error)
    except Exception:  # noqa: BLE001 - the solution wrote this exception's class
        return "an exception that cannot be shown"


def _kind(value: Any) -> str:
    if type(value) is type and issubclass(value, Exception):
        return " ".join(["exception", *_kinds(value)[1:]])
    if isinstance(value, type):
        return "class"
    return "callable" if callable(value) else "value"


def _kinds(error: type[BaseException]) -> list[str]:
    """The names of an exception's class and of its bases, nearest first; none that only looks built-in."""
    mro = [(str(kind.__name__), kind) for kind in error.__mro__[:100]]
    return [name for name, kind in mro if getattr(builtins, name, kind) is kind]


def main() -> None:
    """Loads the solution and serves it."""
    channel = Channel(*private_streams())
    status = 0
    try:
        Server(channel).serve()
    except Unloadable as error:
        channel.send(dumps({"unloadable": str(error)}))
    except Ended:
        pass
    except BaseException as error:  # noqa: BLE001 - SystemExit of the solution among them
        os.write(2, ("ended by " + told(error) + "\n").encode("utf-8", "replace"))
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main()
