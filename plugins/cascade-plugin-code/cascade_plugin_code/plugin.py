"""The entry point: what this distribution offers to cascade-rl."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cascade_core import Domain, hookimpl
from cascade_plugin_code.domain import CodeDomain


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    """The domain `code`."""
    return [CodeDomain]


@hookimpl
def cascade_commands() -> Mapping[str, Callable[[], object]]:
    """`cascade code`."""

    def code() -> object:
        from cascade_plugin_code.command import app

        return app()

    return {"code": code}
