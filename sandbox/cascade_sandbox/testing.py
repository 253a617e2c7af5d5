"""For tests that need the Docker sandbox: `require_engine`. Needs pytest.

A machine without an engine, or without an image, skips such tests with the reason; where CI is `true` they fail, so that nobody
takes a run without them for a whole one.
"""

from __future__ import annotations

import functools
import os
from typing import NoReturn

from cascade_sandbox import images
from cascade_sandbox.engine import Engine
from cascade_sandbox.errors import SandboxError


def require_engine(kind: str = "python") -> Engine:
    """An engine that has the image of that kind; skips the test that calls it, or fails it where CI is `true`."""
    found = _engine(kind)
    return found if isinstance(found, Engine) else give_up(found)


def give_up(why: str) -> NoReturn:
    """Skips the test that calls it, with the reason; fails it where CI is `true`."""
    import pytest

    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have the Docker sandbox: {why}", pytrace=False)
    pytest.skip(f"no Docker sandbox here: {why}")


@functools.cache
def _engine(kind: str) -> Engine | str:
    """The engine, or why there is none."""
    engine = Engine()
    try:
        if kind == "cpp" and engine.image(images.name("cpp")) is None:
            return f"the image {images.name('cpp')} is missing; cascade sandbox build cpp makes it"
        images.choose(engine)
    except SandboxError as error:
        return str(error)
    return engine
