"""The name that OpenRLHF imports from here; it cannot be used."""

from typing import Any, NoReturn


def all_gather(*_args: Any, **_named: Any) -> NoReturn:
    """Never there."""
    raise NotImplementedError("there is no flash attention on a CPU: ring attention cannot be used")
