"""The solution as a module of its own, inside the sandbox, and what an entry point names in it.

It is compiled from a file beside this program, never joined to any other text, and is not `__main__`: what it guards with
`if __name__ == "__main__"` does not run. Its standard input is empty, and what it prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, BinaryIO

SOLUTION = "solution.py"
PREAMBLE = "preamble.py"


class Unloadable(Exception):
    """The solution does not compile, ends while it is loaded, or has no such function."""


def path_of(name: str) -> str:
    """Where a file lies that lies beside this program."""
    return f"{__file__.rpartition('/')[0] or '.'}/{name}"


def beside(name: str) -> bytes:
    """A file that lies beside this program; nothing if there is none."""
    try:
        with open(path_of(name), "rb") as file:  # noqa: PTH123 - pathlib would cost every run some milliseconds
            return file.read()
    except FileNotFoundError:
        return b""


def private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output as this program's own; the solution gets an empty one, and standard error to print to."""
    sys.stdout.flush()
    mine = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return mine


def told(error: BaseException) -> str:
    """An exception in one line, whatever its own methods do."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - the solution wrote this exception's class
        text = "an exception that cannot be shown"
    return (text.splitlines() or [""])[0][:300]


def load() -> types.ModuleType:
    """Runs the solution as a module.

    Raises:
        Unloadable: it does not compile, or raised while it ran.
    """
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    sys.argv = [SOLUTION]
    for name in (PREAMBLE, SOLUTION):
        path, source = path_of(name), beside(name)
        module.__file__ = path
        try:
            code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise Unloadable("does not compile: " + told(error)) from None
        try:
            exec(code, module.__dict__)
        except BaseException as error:  # noqa: BLE001 - SystemExit too: a solution that ends while it is loaded has no function
            raise Unloadable("ended while it was loaded: " + told(error)) from None
    return module


def found(module: types.ModuleType, entry_point: str) -> Any:
    """What the entry point names: `f`, `Solution.f`, or a method `f` of a class `Solution` where there is no `f`.

    A method of a class is bound to a new instance.

    Raises:
        Unloadable: it names nothing, or nothing that can be called.
    """
    head, _, tail = entry_point.partition(".")
    names = vars(module)
    try:
        if tail:
            target = getattr(names[head](), tail)
        elif head in names:
            target = names[head]
        else:
            target = getattr(names["Solution"](), head)
    except (KeyError, AttributeError):
        raise Unloadable(f"there is no {entry_point}") from None
    except BaseException as error:  # noqa: BLE001 - the constructor is the solution's
        raise Unloadable(f"{entry_point} cannot be reached: " + told(error)) from None
    if not callable(target):
        raise Unloadable(f"{entry_point} is no function")
    return target
