"""The entry point: tells the core which domains this distribution offers."""

from __future__ import annotations

from cascade_core import Domain, hookimpl


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    """The one domain of this distribution; its detector is imported with the first score."""
    from cascade_plugin_language.domain import CodeSwitch

    return [CodeSwitch]
