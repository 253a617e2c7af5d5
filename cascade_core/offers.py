"""One entry point to what it offers: imports the module, calls its hooks, checks what they return.

Nothing that a stranger's module does escapes, save Ctrl-C: any exception becomes a `Failure`. A hook that would silently
offer nothing is one too: a misspelt or unmarked function, a forgotten `return`, a module without any hook.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import pluggy

from cascade_core import hookspecs
from cascade_core.domain import Domain
from cascade_core.errors import ContractError
from cascade_core.nearest import hint
from cascade_core.resource import Resource
from cascade_core.tracker import Tracker
from cascade_core.trainers import Trainer

HOOKS = ("cascade_commands", "cascade_domains", "cascade_resources", "cascade_trackers", "cascade_trainers")
LANES = ("cpu", "io")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Offer:
    """Something that a plugin offers: a class, or for a command the function that builds it."""

    kind: str
    name: str
    thing: Any


@dataclass(frozen=True)
class Failure:
    """Why an entry point offers nothing; `missing` is the module that an import did not find."""

    error: str
    message: str
    trace: str
    missing: str = ""


def offers_of(entry: EntryPoint) -> list[Offer] | Failure:
    """What the entry point offers, or why it does not."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a module that prints must not spoil `--json`
            return list(_offers(entry.load(), entry.name))
    except KeyboardInterrupt:
        raise
    except BaseException as cause:  # noqa: BLE001 - SystemExit and worse: kept, shown, never hidden
        return failure_of(cause)


def failure_of(cause: BaseException) -> Failure:
    """The first line of an exception, and its traceback; survives an exception that cannot be printed."""
    name = type(cause).__name__
    try:
        message = next(iter(str(cause).strip().splitlines()), "")
    except Exception:  # noqa: BLE001 - the exception's own __str__ may fail
        message = "(its message cannot be shown)"
    missing = str(cause.name or "") if isinstance(cause, ModuleNotFoundError) else ""
    trace = "".join(traceback.format_exception(cause))
    return Failure(f"{name}: {message}" if message else name, message or name, trace, missing)


def _offers(module: Any, name: str) -> Iterator[Offer]:
    """What one module offers; a manager of its own, so that a failure stays here."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module, name=name)
    _check_hooks(module, manager)
    yield from _classes("domain", Domain, _results(manager, "cascade_domains"))
    yield from _classes("resource", Resource, _results(manager, "cascade_resources"))
    yield from _classes("trainer", Trainer, _results(manager, "cascade_trainers"))
    yield from _classes("tracker", Tracker, _results(manager, "cascade_trackers"))
    for result in _results(manager, "cascade_commands"):
        yield from _commands(result)


def _check_hooks(module: Any, manager: pluggy.PluginManager) -> None:
    """Refuses hooks that would not be called."""
    callers = {caller.name for caller in manager.get_hookcallers(_registered(manager)) or ()}
    for called in sorted(callers - set(HOOKS)):
        raise ContractError(f"{called!r} is marked as a hook, and there is none of that name{hint(called, HOOKS)}")
    for hook in HOOKS:
        if hook not in callers and callable(getattr(module, hook, None)):
            raise ContractError(f"{hook} is not marked: put @hookimpl (from cascade_core) before it")
    if not callers:
        raise ContractError(f"it implements none of the hooks {', '.join(HOOKS)}")


def _registered(manager: pluggy.PluginManager) -> Any:
    return next(iter(manager.get_plugins()))


def _results(manager: pluggy.PluginManager, hook: str) -> Iterator[Any]:
    """What the module's own function returns; pluggy itself would drop a `None`."""
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        if implementation.hookwrapper or implementation.wrapper:
            raise ContractError(f"{hook} must be an ordinary function, found a wrapper")
        result = implementation.function()
        if result is None:
            raise ContractError(f"{hook} returned None: a return statement is missing")
        yield result


def _classes(kind: str, base: type, results: Iterable[Any]) -> Iterator[Offer]:
    hook, seen = f"cascade_{kind}s", set()
    for result in results:
        if isinstance(result, type | str | Mapping) or not isinstance(result, Iterable):
            raise ContractError(f"{hook} must return a list of {kind} classes, found {result!r:.80}")
        for cls in result:
            if not (isinstance(cls, type) and issubclass(cls, base)):
                raise ContractError(f"{hook} must return classes derived from {base.__name__}, found {cls!r:.80}")
            if inspect.isabstract(cls):
                lacks = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
                raise ContractError(f"{kind} class {cls.__qualname__} is abstract: it lacks {lacks}")
            name = _name(kind, getattr(cls, "name", None), cls.__qualname__)
            if issubclass(cls, Domain) and cls.lane not in LANES:
                raise ContractError(f"the lane of domain {name!r} must be {' or '.join(LANES)}, found {cls.lane!r:.80}")
            if issubclass(cls, Resource):  # one name may stand for a way to provide this, and a way to provide that
                name = f"{_name('what is provided by', getattr(cls, 'provides', None), cls.__qualname__)}/{name}"
            if name in seen:
                raise ContractError(f"{hook} returned two classes called {name!r}")
            seen.add(name)
            yield Offer(kind, name, cls)


def _commands(result: Any) -> Iterator[Offer]:
    if not isinstance(result, Mapping):
        raise ContractError(f"cascade_commands must return a mapping of names to functions, found {result!r:.80}")
    for name, build in result.items():
        if not callable(build):
            raise ContractError(
                f"cascade_commands: {name!r} must be a function that builds a typer app, found {build!r:.80}"
            )
        yield Offer("command", _name("command", name, repr(name)), build)


def _name(kind: str, name: Any, what: str) -> str:
    """The name, which becomes part of paths and of the command line."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ContractError(
            f"{kind} {what} must have a name of letters, digits, '_', '.' and '-' (at most 64), found {name!r:.80}"
        )
    return name
