"""Programs that run inside the sandbox, beside the solution or against it; here they are text.

They are ordinary modules of the standard library alone, put together as one file: `program("call")`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

_PARTS = {
    "call": ("typed", "loading", "call"),
    "serve": ("typed", "kinds", "travel", "channel", "loading", "serve"),
    "examine": (
        "typed",
        "kinds",
        "travel",
        "channel",
        "loading",
        "remote",
        "instances",
        "callbacks",
        "stand_in",
        "examine",
    ),
}
_FUTURE = "from __future__ import annotations\n"
_LEFT_OUT = (_FUTURE, f"from {__name__}", "from typing import", "from collections.abc import")


@lru_cache
def program(name: str) -> str:
    """The source of one harness program: `call`, `serve` or `examine`, with the modules that it imports in front of it."""
    return _FUTURE + "\n".join(_part(part) for part in _PARTS[name])


def _part(name: str) -> str:
    """A module without the imports that only annotations need, which are never evaluated: they would cost every run a millisecond or more."""
    lines = (files(__name__) / f"{name}.py").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_LEFT_OUT))
