"""What this package offers to cascade_core: the command `cascade sandbox`, and the resources that domains need as `sandbox`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cascade_core.hookspecs import hookimpl
from cascade_core.resource import Resource


@hookimpl
def cascade_commands() -> Mapping[str, Callable[[], object]]:
    """`cascade sandbox`."""

    def sandbox() -> object:
        from cascade_sandbox.command import app

        return app()

    return {"sandbox": sandbox}


@hookimpl
def cascade_resources() -> Iterable[type[Resource]]:
    """`sandbox: docker` and `sandbox: process`."""
    from cascade_sandbox.resources import Docker, Process

    return (Docker, Process)
