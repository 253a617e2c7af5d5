"""Whether what the service needs is installed: an extra, since most of cascade-rl does without."""

from __future__ import annotations

from importlib.util import find_spec

from cascade_core.errors import UsageError

PACKAGES = ("starlette", "uvicorn", "prometheus_client")


def check_installed() -> None:
    """Insists on it.

    Raises:
        UsageError: names what is missing, and the extra that has it.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(f"cascade serve needs {', '.join(missing)}: pip install 'cascade-rl[serve]'")
