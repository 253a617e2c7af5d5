import os
from types import SimpleNamespace
from typing import Any


def list_nodes(address: str, **_: Any) -> list[Any]:
    """Two machines with as many GPUs each as `FAKE_RAY_GPUS` says, and one that is gone."""
    each = {"GPU": float(os.environ.get("FAKE_RAY_GPUS", "8"))}
    return [SimpleNamespace(state=state, resources_total=each) for state in ("ALIVE", "ALIVE", "DEAD")]
