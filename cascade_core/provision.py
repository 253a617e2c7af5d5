"""What the domains of a run need, and what provides it: chosen by the spec, started once, ended always.

A choice is text or a mapping with one key, the same in a spec (`resources:`), after `--resource` and for `check_domain`:

    docker                     the installed class of that name, with its default options
    {docker: {slots: 2}}       with options
    unix:/run/box.sock         an address, told by its colon: something that runs already, which is neither started nor ended

Where nothing is said, the class that is the `default` is taken. Another one is never taken in its place: if it cannot be
started, nothing is. All resources are started before anything else is done and run until the end, since every domain
of a spec is measured before the first stage already; only what is made of a stage's checkpoint is started after it (`waiting.py`). One that has gone is not started again here: its clients fail, those
failures stop the run, and the same command goes on from there with a fresh one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cascade_core.domain import Domain, DomainRef
from cascade_core.errors import CascadeError, PluginBroken, PluginNotFound, ResourceError, SpecError
from cascade_core.nearest import hint, suggestion
from cascade_core.offers import failure_of
from cascade_core.options import check_options, required, typed
from cascade_core.plugins import Registry, registry
from cascade_core.resource import Resource, stages_in
from cascade_core.server import reachable
from cascade_core.signals import as_exit

Choice = str | Mapping[str, Any]


@dataclass(frozen=True)
class Provision:
    """What is going to provide `need`: a class by its `name` with `options`, or, without a name, whatever is at `address`."""

    need: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""
    distribution: str = ""
    version: str = ""
    pinned: Mapping[str, Any] = field(default_factory=dict)
    """What a verdict may depend on: the class, and its options but for those that it says are free. Of an address, that it is one."""

    def __str__(self) -> str:
        return self.address or (f"{self.name}, {self.distribution} {self.version}")


def chosen(
    domains: Iterable[Domain | type[Domain]], given: Mapping[str, Choice], found: Registry | None = None
) -> dict[str, Provision]:
    """What provides each need of the domains.

    Raises:
        SpecError: a choice that cannot be, is for nothing that is needed, or is missing where there is no default.
        PluginError: nothing installed provides it.
    """
    needs = needed(domains)
    for need in given:
        if need not in needs:
            raise SpecError(unneeded(need, needs))
    return {need: choose(need, given, found) for need in needs}


def needed(domains: Iterable[Domain | type[Domain]]) -> list[str]:
    """Everything that any of the domains needs, sorted."""
    return sorted({need for domain in domains for need in domain.needs})


def judge_of(ref: DomainRef, found: Registry | None = None) -> Domain | type[Domain]:
    """The domain whose needs count: built with its options, which may say what it needs, where it can be; else its class."""
    found = found or registry()
    try:
        return found.build(ref)
    except CascadeError:
        return found.domain(ref.name)


def unneeded(need: str, needs: Iterable[str]) -> str:
    """The refusal of a choice for something that no domain asks for."""
    return f"no domain here needs {need!r}{suggestion(need, needs)}"


def choose(need: str, given: Mapping[str, Choice], found: Registry | None = None) -> Provision:
    """What provides one need; see `chosen`."""
    found = found or registry()
    if need not in given:
        name = _default(need, found)
        if wanted := required(found.find("resource", f"{need}/{name}")[0]):
            options = ", ".join(f"{option}: …" for option in wanted)
            raise SpecError(
                f"say what provides {need!r}: `{need}: {{{name}: {{{options}}}}}` under resources, or the address of what runs already"
            )
        return _provision(need, name, {}, found)
    choice = given[need]
    if isinstance(choice, str) and ":" in choice:
        return Provision(need, address=_address(need, choice, found), pinned={"address": "given"})
    if isinstance(choice, str) and choice:
        return _provision(need, choice, {}, found)
    if isinstance(choice, Mapping) and len(choice) == 1:
        ((name, options),) = choice.items()
        if options is None or isinstance(options, Mapping):
            return _provision(need, str(name), dict(options or {}), found)
    raise SpecError(
        f"what provides {need!r} must be a name, an address or one name with its options, found {choice!r:.80}"
    )


def _address(need: str, address: str, found: Registry) -> str:
    try:
        parts = urlsplit(address)
    except ValueError as cause:  # a bracket that is not closed
        raise SpecError(f"{need}: {address!r:.80} is no address: {cause}") from cause
    if parts.password or parts.username:
        raise SpecError(f"{need}: an address must hold no user name or password: it is written into files")
    reasons = [_misaddressed(need, name, address, found) for name in _offered(need, found)]
    if reasons and all(reasons):
        raise SpecError(reasons[0])
    return address


def _misaddressed(need: str, name: str, address: str, found: Registry) -> str:
    """Why an address is none for clients of what a class provides."""
    cls, plugin = found.find("resource", f"{need}/{name}")
    try:
        return str(cls.misaddressed(address))
    except Exception as cause:
        raise PluginBroken(
            f"resource {name!r} of {plugin} cannot read an address: {failure_of(cause).error}"
        ) from cause


def _default(need: str, found: Registry) -> str:
    names = _offered(need, found)
    defaults = [name for name in names if found.find("resource", f"{need}/{name}")[0].default]
    if len(defaults) == 1:
        return defaults[0]
    if not names:
        raise PluginNotFound(_nothing(need, found))
    what = f"{' and '.join(defaults)} both claim to be" if defaults else "none of those installed is"
    raise SpecError(f"say what provides {need!r}: {what} the default (installed: {', '.join(names)})")


def _offered(need: str, found: Registry) -> list[str]:
    return [name.partition("/")[2] for name in found.names("resource") if name.partition("/")[0] == need]


def _nothing(need: str, found: Registry) -> str:
    provided = sorted({name.partition("/")[0] for name in found.names("resource")})
    broken = "".join(f"; {plugin} is broken: {plugin.error}" for plugin in found.plugins if plugin.error)
    return (
        f"nothing installed provides {need!r}{hint(need, provided)} (provided: {', '.join(provided) or 'nothing'});"
        f" an address of something that runs already can be given{broken}"
    )


def _provision(need: str, name: str, options: dict[str, Any], found: Registry) -> Provision:
    names = _offered(need, found)
    if not names:
        raise PluginNotFound(_nothing(need, found))
    if name not in names:
        raise SpecError(
            f"nothing that provides {need!r} is called {name!r}{suggestion(name, names)}, nor is it an address"
        )
    cls, plugin = found.find("resource", f"{need}/{name}")
    check_options(cls, options, "resource")
    pinned = {key: value for key, value in options.items() if key not in cls.free}
    return Provision(need, name, options, "", plugin.distribution, plugin.version, {name: pinned})


def build(provision: Provision, found: Registry | None = None) -> Resource:
    """The resource, not started.

    Raises:
        SpecError: it refuses its options.
        PluginBroken: it cannot be built.
    """
    cls, plugin = (found or registry()).find("resource", f"{provision.need}/{provision.name}")
    try:
        return cls(**typed(cls, provision.options, "resource"))  # type: ignore[no-any-return]
    except CascadeError:
        raise
    except (TypeError, ValueError, OSError, LookupError) as cause:
        raise SpecError(f"resource {provision.name!r} refuses its options: {failure_of(cause).message}") from cause
    except Exception as cause:
        raise PluginBroken(
            f"resource {provision.name!r} of {plugin} cannot be built: {failure_of(cause).error}"
        ) from cause


@dataclass
class Running:
    """Resources that run: their addresses by what they provide, and facts about them."""

    addresses: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    decisive: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Those facts that a verdict depends on (`Resource.decisive`)."""
    _started: list[tuple[Provision, Resource]] = field(default_factory=list)

    def check(self, cause: BaseException | None = None) -> None:
        """Insists that all are alive.

        Raises:
            ResourceError: names the one that is not; `cause` is what it led to.
        """
        for provision, resource in self._started:
            if not _alive(resource):
                what = f"; because of it: {cause}" if cause else ""
                raise ResourceError(
                    f"what provides {provision.need!r} ({provision}) has gone; the same command starts it anew and goes on{what}"
                ) from cause
        for need, address in self.addresses.items():
            if not any(provision.need == need for provision, _ in self._started) and (why := reachable(address)):
                raise ResourceError(f"nothing answers any more at {address}, which provides {need!r}: {why}") from cause

    def start(self, provision: Provision, found: Registry | None = None) -> None:
        """One more, for as long as the others run.

        Raises:
            ResourceError: it cannot be started.
            PluginError, SpecError: see `build`.
        """
        self._start(provision, build(provision, found))

    def _start(self, provision: Provision, resource: Resource) -> None:
        self._started.append((provision, resource))
        try:
            address = resource.start()
        except Exception as cause:
            raise ResourceError(
                f"what provides {provision.need!r} ({provision}) cannot be started: {failure_of(cause).message}"
            ) from cause
        if not isinstance(address, str) or not address:
            raise PluginBroken(f"resource {provision.name!r} must give its address when started, found {address!r:.80}")
        self.addresses[provision.need] = address
        facts = _facts(provision, resource)
        self.facts[provision.need] = {"name": provision.name, **facts}
        self.decisive[provision.need] = {name: facts[name] for name in resource.decisive if name in facts}

    def _stop(self) -> None:
        """Ends all, the last first; one that fails at it is told and keeps none of the others."""
        while self._started:
            provision, resource = self._started.pop()
            try:
                resource.stop()
            except Exception as cause:  # noqa: BLE001 - a stranger's code; what the command found stays
                what = f"what provides {provision.need!r} ({provision}) could not be ended: {failure_of(cause).error}"
                print(f"cascade: {what}", file=sys.stderr)


@contextlib.contextmanager
def running(provisions: Iterable[Provision], found: Registry | None = None) -> Iterator[Running]:
    """All of them, started; ended when the body ends, however it does. SIGTERM and SIGHUP end it as `signals.Ended`.

    Raises:
        SpecError: one is made of a stage's checkpoint, and has no folder in its place.
        ResourceError: one cannot be started, or nothing answers at an address; nothing stays started.
        PluginError, SpecError: see `build`.
    """
    wanted, run = list(provisions), Running()
    built = [(one, build(_whole(one), found)) for one in wanted if one.name]
    for one in wanted:
        if not one.name:
            if why := reachable(one.address):
                raise ResourceError(f"nothing answers at {one.address}, which is to provide {one.need!r}: {why}")
            run.addresses[one.need] = one.address
            run.facts[one.need] = {"name": "address"}
    with as_exit():
        try:
            for one, resource in built:
                run._start(one, resource)
            yield run
        finally:
            run._stop()


def _whole(provision: Provision) -> Provision:
    """The same, if it needs no stage.

    Raises:
        SpecError: it does.
    """
    for where, name in stages_in(dict(provision.options)):
        raise SpecError(
            f"what provides {provision.need!r} is made of the checkpoint of stage {name!r}, which only a run makes; name a"
            f" folder instead: resources.{'.'.join(map(str, (provision.need, provision.name, *where)))}=FOLDER"
        )
    return provision


def _alive(resource: Resource) -> bool:
    try:
        return bool(resource.alive())
    except Exception:  # noqa: BLE001 - a stranger's code; what cannot tell does not live
        return False


def _facts(provision: Provision, resource: Resource) -> dict[str, Any]:
    try:
        return dict(resource.describe())
    except Exception as cause:
        raise PluginBroken(f"resource {provision.name!r} cannot describe itself: {failure_of(cause).error}") from cause
