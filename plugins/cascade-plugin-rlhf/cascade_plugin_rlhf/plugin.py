"""The entry point: what this distribution offers to cascade-rl."""

from __future__ import annotations

from collections.abc import Iterable

from cascade_core import Domain, hookimpl


@hookimpl
def cascade_domains() -> Iterable[type[Domain]]:
    """The domains of this package."""
    return ()
