"""Finds plugins through the entry-point group `cascade_core`, keeps the broken ones, and looks things up by name.

Distributions are read and entry points loaded one at a time, in name order. One that fails to import, misspells a hook or
returns something that is no class of ours is kept as a broken `Plugin` with its distribution and cause: it stops only
what needs it. Two plugins that offer one name are an error naming both, raised when that name is asked for. What a
plugin prints while it is loaded goes to standard error.

This module loads no heavy library; a plugin's top module is expected not to do so either. How one entry point becomes
classes is `offers.py`'s; what options a domain takes is `options.py`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distributions, metadata
from typing import Any

from cascade_core.domain import Domain, DomainRef
from cascade_core.errors import CascadeError, PluginBroken, PluginConflict, PluginNotFound, SpecError
from cascade_core.hookspecs import PROJECT
from cascade_core.nearest import hint
from cascade_core.offers import Failure, Offer, failure_of, offers_of
from cascade_core.options import check_options, typed
from cascade_core.tracker import Tracker
from cascade_core.trainers import Trainer

__all__ = ["KINDS", "Plugin", "Registry", "check_options", "registry"]

KINDS = ("domain", "resource", "trainer", "tracker", "command")


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

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} (entry point {self.entry!r})"


class Registry:
    """What the given entry points offer.

    Args:
        entries: entry points to load; the default is everything installed in the group `cascade_core`.
    """

    def __init__(self, entries: Iterable[EntryPoint] | None = None) -> None:
        self._offers: list[tuple[Offer, Plugin]] = []
        self.plugins: list[Plugin] = []
        found: list[EntryPoint] = []
        for item in _installed() if entries is None else entries:
            if isinstance(item, Plugin):
                self.plugins.append(item)
            else:
                found.append(item)
        for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
            plugin, offers = _load(entry)
            self.plugins.append(plugin)
            self._offers += [(offer, plugin) for offer in offers]

    def names(self, kind: str) -> list[str]:
        """The names of that kind, sorted."""
        return sorted({offer.name for offer, _ in self._offers if offer.kind == kind})

    def owners(self, kind: str, name: str) -> list[Plugin]:
        """The plugins that offer the name: none, one, or those that are in each other's way."""
        return [plugin for offer, plugin in self._offers if (offer.kind, offer.name) == (kind, name)]

    def find(self, kind: str, name: str) -> tuple[Any, Plugin]:
        """The class or function called `name`, and the plugin that offers it.

        Raises:
            PluginConflict: two plugins offer the name.
            PluginBroken: none does, and a broken one is called like it.
            PluginNotFound: none does; names the nearest, and any broken plugin that might have.
        """
        offers = [(offer, plugin) for offer, plugin in self._offers if (offer.kind, offer.name) == (kind, name)]
        if len(offers) > 1:
            owners = " and ".join(str(plugin) for _, plugin in offers)
            raise PluginConflict(f"{kind} {name!r} is offered by {owners}; uninstall or rename one of them")
        if not offers:
            raise self._absent(kind, name)
        return offers[0][0].thing, offers[0][1]

    def _absent(self, kind: str, name: str) -> PluginBroken | PluginNotFound:
        broken = [plugin for plugin in self.plugins if plugin.error]
        for plugin in broken:
            if name in (plugin.entry, plugin.distribution.removeprefix("cascade-plugin-")):
                return PluginBroken(f"{kind} {name!r} could not be loaded: {plugin} is broken: {plugin.error}")
        known = self.names(kind)
        others = "".join(f"; {plugin} is broken: {plugin.error}" for plugin in broken)
        return PluginNotFound(
            f"no {kind} is called {name!r}{hint(name, known)} (installed: {', '.join(known) or 'none'})"
            f"{_how_to_install(name)}{others}"
        )

    def domain(self, name: str) -> type[Domain]:
        """The domain class called `name`; see `find` for what is raised."""
        return self.find("domain", name)[0]  # type: ignore[no-any-return]

    def trainer(self, name: str) -> type[Trainer]:
        """The trainer class called `name`; see `find` for what is raised."""
        return self.find("trainer", name)[0]  # type: ignore[no-any-return]

    def tracker(self, name: str) -> type[Tracker]:
        """The tracker class called `name`; see `find` for what is raised."""
        return self.find("tracker", name)[0]  # type: ignore[no-any-return]

    def meant(self, name: str, options: Mapping[str, Any] | None = None) -> tuple[str, Mapping[str, Any]]:
        """The domain that a name of a spec stands for, and its options.

        That is the domain so called; or, where none is, the only one that stands under the name with its own options: `preference:
        {rlhf: {reward: sigmoid_z}}` is `rlhf` under another name, beside which there may be others of it.
        """
        given, known = options or {}, self.names("domain")
        if name not in known and len(given) == 1:
            ((other, inner),) = given.items()
            # A slip in the domain's own name is what is refused then.
            near = not hint(name, known) and hint(other, known)
            if (other in known or near) and (inner is None or isinstance(inner, Mapping)):
                return other, inner or {}
        return name, given

    def reference(self, name: str, options: Mapping[str, Any] | None = None) -> DomainRef:
        """What another process needs to rebuild the domain that is `meant`."""
        known, given = self.meant(name, options)
        cls, plugin = self.find("domain", known)
        return DomainRef(known, dict(given), plugin.distribution, plugin.version, cls.lane)

    def build(self, ref: DomainRef) -> Domain:
        """The domain that `ref` stands for, in this process.

        Raises:
            PluginBroken: another version is installed here than where `ref` was made, or the constructor fails.
            SpecError: an option that the domain does not have, or a value that it refuses.
        """
        cls, plugin = self.find("domain", ref.name)
        if ref.version and (plugin.distribution, plugin.version) != (ref.distribution, ref.version):
            raise PluginBroken(
                f"domain {ref.name!r} is {plugin.distribution} {plugin.version} here,"
                f" and {ref.distribution} {ref.version} where the run was started; install the same version"
            )
        return _built("domain", cls, plugin, ref.options)  # type: ignore[no-any-return]

    def build_tracker(self, name: str, options: Mapping[str, Any]) -> Tracker:
        """The tracker called `name`, which has not been started.

        Raises:
            PluginError: see `find`; or the constructor fails.
            SpecError: an option that the tracker does not have, or a value that it refuses.
        """
        cls, plugin = self.find("tracker", name)
        return _built("tracker", cls, plugin, options)  # type: ignore[no-any-return]


def _built(kind: str, cls: Any, plugin: Plugin, options: Mapping[str, Any]) -> Any:
    """A class made into an object with its options; what its constructor raises becomes an error of ours."""
    given = typed(cls, options, kind)
    try:
        return cls(**given)
    except CascadeError:
        raise
    except (TypeError, ValueError, OSError, LookupError) as cause:
        raise SpecError(f"{kind} {cls.name!r} refuses its options: {failure_of(cause).message}") from cause
    except Exception as cause:
        raise PluginBroken(f"{kind} {cls.name!r} of {plugin} cannot be built: {failure_of(cause).error}") from cause


def _how_to_install(name: str) -> str:
    """The command that brings the name, where cascade-rl has an extra of that name: no stranger's package is guessed."""
    try:
        extras = metadata("cascade-rl").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return ""
    return f"; pip install 'cascade-rl[{name}]' brings it" if name in extras else ""


def _installed() -> Iterator[EntryPoint | Plugin]:
    """Our entry points of every distribution; one whose list of entry points is damaged is a broken plugin."""
    seen = set()
    for dist in distributions():
        try:
            name = dist.metadata["Name"] or ""
            text = dist.read_text("entry_points.txt") or ""
            key = name.replace("_", "-").replace(".", "-").lower()
            if key in seen:  # a second copy further down the path is not what gets imported
                continue
            seen.add(key)
            entries = [entry for entry in dist.entry_points if entry.group == PROJECT] if PROJECT in text else []
        except Exception as cause:  # noqa: BLE001 - a damaged stranger must not take the others with it
            failure = failure_of(cause)
            yield Plugin(
                "", "", *_identity(dist), error=f"its metadata cannot be read: {failure.error}", trace=failure.trace
            )
            continue
        yield from entries


def _identity(dist: Distribution | None) -> tuple[str, str]:
    """Name and version of a distribution, as far as they can be read."""
    try:
        return (dist.metadata["Name"] or "unknown", dist.version or "unknown") if dist else ("unknown", "unknown")
    except Exception:  # noqa: BLE001 - whatever a damaged distribution raises, it has no name
        return str(getattr(dist, "_path", "unknown")).rpartition("/")[2], "unknown"


def _load(entry: EntryPoint) -> tuple[Plugin, list[Offer]]:
    plugin = Plugin(entry.name, entry.value, *_identity(entry.dist))
    found = offers_of(entry)
    if isinstance(found, Failure):
        fix = ""
        if found.missing and found.missing == entry.value.partition(":")[0].strip():
            fix = f"; its files are gone and its metadata is not: pip uninstall {plugin.distribution}"
        return replace(plugin, error=found.error + fix, trace=found.trace), []
    grouped = {kind: tuple(sorted(offer.name for offer in found if offer.kind == kind)) for kind in KINDS}
    return replace(plugin, offers={kind: names for kind, names in grouped.items() if names}), found


@functools.cache
def registry() -> Registry:
    """The registry of everything that is installed; loaded once per process."""
    return Registry()
