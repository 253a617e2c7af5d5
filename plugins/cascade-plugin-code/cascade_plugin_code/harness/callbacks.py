"""Functions of the test code that are handed to the solution, `apply(lambda x: x + 1, 3)`: they stay where they are, and the solution's calls come here.

What they are given is what results of the solution are, values and objects that stay there, and what they give or raise goes back like an argument. They may call the solution
in turn. Only functions and methods that the test code defines are handed over: a built-in one such as `setattr` would be a tool in the solution's hands.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from cascade_plugin_code.harness.channel import OF_THE_TESTS
from cascade_plugin_code.harness.travel import text_of
from cascade_plugin_code.harness.typed import Unplain

MOST_FUNCTIONS = 100_000
_OTHERS, _OTHER_KEYWORDS = 0x04, 0x08  # of a code object's flags: `*args`, `**kwargs`


class Callbacks:
    """The functions that were handed over, by numbers."""

    def __init__(self) -> None:
        self._functions: list[Callable[..., Any]] = []
        self._numbers: dict[int, int] = {}
        self.new: dict[int, tuple[str, str | None, str]] = {}

    def number(self, value: Any) -> int | None:
        """The number of a function of the test code, `None` if it is none; a new one's name, text and parameters are kept in `new` until they are told."""
        function = value.__func__ if type(value) is types.MethodType else value
        if type(function) is not types.FunctionType:
            return None
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._functions) >= MOST_FUNCTIONS:
                raise Unplain(f"more than {MOST_FUNCTIONS} functions")
            number = self._numbers[id(value)] = OF_THE_TESTS + len(self._functions)
            self._functions.append(value)
            self.new[number] = (value.__name__, value.__doc__, _parameters(function, value is not function))
        return number

    def function(self, number: Any) -> Callable[..., Any]:
        """The function of a number.

        Raises:
            Unplain: there is none.
        """
        if type(number) is not int or not 0 <= number - OF_THE_TESTS < len(self._functions):
            raise Unplain("no function of the tests")
        return self._functions[number - OF_THE_TESTS]


def _parameters(function: types.FunctionType, is_bound: bool) -> str:
    """The parameters as they are written, without their defaults' values; of a method without the first."""
    code = function.__code__
    some, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    optional = some - len(function.__defaults__ or ())
    texts = [name + "=..." * (place >= optional) for place, name in enumerate(code.co_varnames[:some])]
    texts[code.co_posonlyargcount : code.co_posonlyargcount] = ["/"] * (code.co_posonlyargcount > is_bound)
    others = iter(code.co_varnames[named:])
    has_others = bool(code.co_flags & _OTHERS)
    if has_others or named > some:
        texts.append("*" + (next(others) if has_others else ""))
    keywords = function.__kwdefaults__ or {}
    texts += [name + "=..." * (name in keywords) for name in code.co_varnames[some:named]]
    if code.co_flags & _OTHER_KEYWORDS:
        texts.append("**" + next(others))
    return ", ".join(texts[1:] if is_bound and some else texts)


def told(error: BaseException) -> dict[str, Any]:
    """An exception of the test code as the solution is told it."""
    try:
        text = text_of(error)
    except Exception:  # noqa: BLE001 - an object of the solution may be in it
        text = "an exception that cannot be shown"
    return {"raised": text, "kinds": [kind.__name__ for kind in type(error).__mro__]}
