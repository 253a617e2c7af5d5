"""The entry point: what this distribution offers to cascade-rl."""

from __future__ import annotations

from cascade_core import Domain, hookimpl
from cascade_plugin_code.domain import CodeDomain


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    """The domain `code`."""
    return [CodeDomain]
