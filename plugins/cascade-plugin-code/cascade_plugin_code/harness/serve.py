"""The solution's side of tests that are code: loads it, and answers calls of its functions until nobody asks any more.

First it says what the solution has: `{"names": {name: "callable" | "value" | "exception …"}}`, an exception class with the names of its
bases, or `{"unloadable": "…"}` and ends. Then each request
is `{"call": name, "args": […], "kwargs": {…}}` or `{"get": name}`, at the top of the module or, with `"of": number`, of an object
that an earlier answer was; or `{"set": name, "to": argument, "of": number}`. An argument is `{"value": …}` or `{"object": number}`. The answer is one of these, or
`{"raised": text, "kinds": ["ValueError", …]}`. What is no plain value stays here and travels as its number; a value of a subclass, a named
tuple say, travels as its base with its number beside it. What ends the process from within, ends it: there is no answer then.
"""

from __future__ import annotations

import builtins
import os
from typing import Any

from cascade_plugin_code.harness.channel import Channel, Ended
from cascade_plugin_code.harness.loading import Unloadable, found, load, private_streams, told
from cascade_plugin_code.harness.typed import Unplain

MOST_OBJECTS = 100_000
PLAIN = (bool, int, float, str, bytes, list, tuple, dict, set, frozenset)


class Server:
    """Answers for one solution."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._module = load()
        self._objects: list[Any] = []

    def names(self) -> dict[str, str]:
        """What the solution has at its top, without what begins with two underscores."""
        return {
            name: _kind(value)
            for name, value in list(vars(self._module).items())
            if isinstance(name, str) and not name.startswith("__")
        }

    def serve(self) -> None:
        """Answers until the other side ends."""
        self._channel.send({"names": self.names()})
        while True:
            request = self._channel.receive()
            try:
                self._reply(self._done(request))
            except Unloadable as error:
                self._channel.send({"raised": str(error), "kinds": ["NameError"]})
            except Ended:
                raise
            except Exception as error:  # noqa: BLE001 - forwarded; what is no Exception ends this process
                self._channel.send({"raised": _text(error), "kinds": _kinds(type(error))})

    def _done(self, request: Any) -> Any:
        if "set" in request:
            setattr(self._objects[request["of"]], request["set"], self._argument(request["to"]))
            return None
        if "of" in request:
            target = getattr(self._objects[request["of"]], request.get("get") or request["call"])
        elif "get" in request:
            target = vars(self._module)[request["get"]]
        else:
            target = found(self._module, request["call"])
        if "get" in request:
            return target
        kwargs = {name: self._argument(given) for name, given in request["kwargs"].items()}
        return target(*[self._argument(given) for given in request["args"]], **kwargs)

    def _argument(self, given: Any) -> Any:
        return self._objects[given["object"]] if "object" in given else given["value"]

    def _reply(self, value: Any) -> None:
        has_room = len(self._objects) < MOST_OBJECTS
        try:
            if has_room and _is_of_a_subclass(value):
                self._channel.send({"value": value, "object": len(self._objects)})
                self._objects.append(value)
            else:
                self._channel.send({"value": value})
        except Unplain:
            if not has_room:
                raise
            self._objects.append(value)
            self._channel.send({"object": len(self._objects) - 1, "callable": callable(value)})


def _is_of_a_subclass(value: Any) -> bool:
    """Whether it is a plain value that may have more to it, such as a named tuple or a counter."""
    return type(value) not in PLAIN and isinstance(value, PLAIN)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except Exception:  # noqa: BLE001 - the solution wrote this exception's class
        return "an exception that cannot be shown"


def _kind(value: Any) -> str:
    if type(value) is type and issubclass(value, Exception):
        return " ".join(["exception", *_kinds(value)[1:]])
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
        channel.send({"unloadable": str(error)})
    except Ended:
        pass
    except BaseException as error:  # noqa: BLE001 - SystemExit of the solution among them
        os.write(2, ("ended by " + told(error) + "\n").encode("utf-8", "replace"))
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main()
