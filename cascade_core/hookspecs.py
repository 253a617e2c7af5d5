"""The hooks, and the two markers. Hooks find things; the classes they return do the work.

A plugin is a module named by an entry point of the group `cascade_core`::

    from cascade_core import hookimpl

    @hookimpl
    def cascade_domains():
        return [MyDomain]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable

    from cascade_core.domain import Domain
    from cascade_core.resource import Resource
    from cascade_core.tracker import Tracker
    from cascade_core.trainers import Trainer

PROJECT = "cascade_core"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def cascade_domains() -> Iterable[type[Domain]]:
    """Domain classes of this plugin. Called once per process, when its names are looked up; must import nothing heavy."""
    return ()


@hookspec
def cascade_trainers() -> Iterable[type[Trainer]]:
    """Trainer classes of this plugin. Called once per process, when its names are looked up."""
    return ()


@hookspec
def cascade_resources() -> Iterable[type[Resource]]:
    """Resource classes of this plugin. Called once per process, when names are looked up; must import nothing heavy."""
    return ()


@hookspec
def cascade_trackers() -> Iterable[type[Tracker]]:
    """Tracker classes of this plugin. Called once per process, when its names are looked up; must import nothing heavy."""
    return ()


@hookspec
def cascade_commands() -> Mapping[str, Callable[[], object]]:
    """Sub-commands of `cascade`: a name to a function that builds its typer app. Called when the command line is built."""
    return {}
