"""Finds plugins through the entry-point group `cascade_core`, keeps the broken ones, and looks things up by name.

Entry points are loaded one at a time, in name order. One that fails to import, misspells a hook or returns something
that is no class of ours is kept as a broken `Plugin` with its distribution and cause: it stops only what needs it.
Two plugins that offer one name are an error naming both, raised when that name is asked for.

This module loads no heavy library; a plugin's top module is expected not to do so either.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from cascade_core import hookspecs
from cascade_core.domain import Domain, DomainRef
from cascade_core.errors import ContractError, PluginBroken, PluginConflict, PluginNotFound, SpecError
from cascade_core.trainers import Trainer

KINDS = ("domain", "trainer", "command")


@dataclass(frozen=True)
class Plugin:
    """One entry point: where it comes from, what it offers, and why it is broken, if it is."""

    entry: str
    module: str
    distribution: str
    version: str
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""
    trace: str = ""


@dataclass(frozen=True)
class _Offer:
    kind: str
    name: str
    thing: Any
    plugin: Plugin


class Registry:
    """What the given entry points offer.

    Args:
        entries: entry points to load; the default is everything installed in the group `cascade_core`.
    """

    def __init__(self, entries: Iterable[EntryPoint] | None = None) -> None:
        found = entry_points(group=hookspecs.PROJECT) if entries is None else entries
        self._offers: list[_Offer] = []
        self.plugins: list[Plugin] = []
        for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
            plugin, offers = _load(entry)
            self.plugins.append(plugin)
            self._offers += [_Offer(kind, name, thing, plugin) for kind, name, thing in offers]

    def names(self, kind: str) -> list[str]:
        """The names of that kind, sorted."""
        return sorted({offer.name for offer in self._offers if offer.kind == kind})

    def find(self, kind: str, name: str) -> tuple[Any, Plugin]:
        """The class or function called `name`, and the plugin that offers it.

        Raises:
            PluginConflict: two plugins offer the name.
            PluginNotFound: none does; names the nearest, and any broken plugin that might have.
        """
        offers = [offer for offer in self._offers if offer.kind == kind and offer.name == name]
        if len(offers) > 1:
            owners = " and ".join(_owner(offer.plugin) for offer in offers)
            raise PluginConflict(f"{kind} {name!r} is offered by {owners}; uninstall one of them")
        if not offers:
            raise PluginNotFound(self._absent(kind, name))
        return offers[0].thing, offers[0].plugin

    def _absent(self, kind: str, name: str) -> str:
        known = self.names(kind)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f", did you mean {near[0]!r}" if near else ""
        broken = "".join(f"; {_owner(plugin)} is broken: {plugin.error}" for plugin in self.plugins if plugin.error)
        install = f"; try: pip install cascade-plugin-{name}" if kind == "domain" and not near else ""
        return f"no {kind} is called {name!r}{hint} (installed: {', '.join(known) or 'none'}){install}{broken}"

    def domain(self, name: str) -> type[Domain]:
        """The domain class called `name`; see `find` for what is raised."""
        return self.find("domain", name)[0]  # type: ignore[no-any-return]

    def trainer(self, name: str) -> type[Trainer]:
        """The trainer class called `name`; see `find` for what is raised."""
        return self.find("trainer", name)[0]  # type: ignore[no-any-return]

    def commands(self) -> dict[str, Callable[[], object]]:
        """Sub-commands that plugins add, by name; a name that two of them offer raises `PluginConflict`."""
        return {name: self.find("command", name)[0] for name in self.names("command")}

    def reference(self, name: str, options: Mapping[str, Any] | None = None) -> DomainRef:
        """What another process needs to rebuild the domain."""
        _, plugin = self.find("domain", name)
        return DomainRef(name, dict(options or {}), plugin.distribution, plugin.version)

    def build(self, ref: DomainRef) -> Domain:
        """The domain that `ref` stands for, in this process.

        Raises:
            PluginBroken: another version is installed here than where `ref` was made, or the constructor fails.
            SpecError: an option that the domain does not have.
        """
        cls, plugin = self.find("domain", ref.name)
        if ref.version and (plugin.distribution, plugin.version) != (ref.distribution, ref.version):
            raise PluginBroken(
                f"domain {ref.name!r} is {plugin.distribution} {plugin.version} here,"
                f" and {ref.distribution} {ref.version} where the run was started; install the same version"
            )
        check_options(cls, ref.options)
        try:
            return cls(**ref.options)  # type: ignore[no-any-return]
        except SpecError:
            raise
        except (TypeError, ValueError, OSError, LookupError) as cause:
            raise SpecError(f"domain {ref.name!r} refuses its options: {cause}") from cause


def check_options(cls: type[Domain], options: Mapping[str, Any]) -> None:
    """Refuses options that are no field of the domain.

    Raises:
        SpecError: names the option, and the nearest one that exists.
    """
    allowed = [f.name for f in fields(cls) if f.init] if is_dataclass(cls) else []
    for option in options:
        if option not in allowed:
            near = difflib.get_close_matches(option, allowed, n=1)
            hint = f", did you mean {near[0]!r}" if near else ""
            raise SpecError(
                f"domain {cls.name!r} has no option {option!r}{hint} (allowed: {', '.join(allowed) or 'none'})"
            )


def _owner(plugin: Plugin) -> str:
    return f"{plugin.distribution} {plugin.version} (entry point {plugin.entry!r})"


def _load(entry: EntryPoint) -> tuple[Plugin, list[tuple[str, str, Any]]]:
    dist = entry.dist
    plugin = Plugin(entry.name, entry.value, dist.name if dist else "unknown", dist.version if dist else "unknown")
    try:
        offers = _offers(entry.load(), entry.name)
    except (
        Exception,
        SystemExit,
    ) as cause:  # a stranger's import may raise anything; it is kept, shown and never hidden
        error = f"{type(cause).__name__}: {cause}".strip().splitlines()[0]
        return _replace(plugin, error=error, trace=traceback.format_exc()), []
    grouped = {kind: tuple(sorted(name for k, name, _ in offers if k == kind)) for kind in KINDS}
    return _replace(plugin, offers={kind: names for kind, names in grouped.items() if names}), offers


def _replace(plugin: Plugin, **changes: Any) -> Plugin:
    return Plugin(**{**{f.name: getattr(plugin, f.name) for f in fields(plugin)}, **changes})


def _offers(module: Any, name: str) -> list[tuple[str, str, Any]]:
    """What one module offers, as (kind, name, class); a manager of its own, so that a failure stays here."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module, name=name)
    manager.check_pending()
    offers: list[tuple[str, str, Any]] = []
    for kind, base, hook in (
        ("domain", Domain, manager.hook.cascade_domains),
        ("trainer", Trainer, manager.hook.cascade_trainers),
    ):
        for cls in (cls for result in hook() for cls in result):
            if not (isinstance(cls, type) and issubclass(cls, base)) or inspect.isabstract(cls):
                raise ContractError(f"{hook.name} must return concrete {kind} classes, found {cls!r}")
            if not isinstance(getattr(cls, "name", None), str) or not cls.name:
                raise ContractError(f"{kind} class {cls.__qualname__} has no name")
            offers.append((kind, cls.name, cls))
    for result in manager.hook.cascade_commands():
        offers += [("command", command, build) for command, build in result.items()]
    return offers


@functools.cache
def registry() -> Registry:
    """The registry of everything that is installed; loaded once per process."""
    return Registry()
