"""Whether this machine has the GPUs that a stage is going to ask its own Ray for: OpenRLHF would wait for the others for ever.

Asked is the Ray of the environment that OpenRLHF is in, by the code with which it counts them when it starts, so that
`CUDA_VISIBLE_DEVICES` and every make of GPU count as they will. Where that cannot be said, nothing is: a stage that gets nowhere is
ended after `engine.stall_seconds` all the same. A cluster that runs already is asked by `openrlhf_submit.py`.
"""

from __future__ import annotations

import os
import subprocess

from cascade_core.settings import Engine

_COUNT = """
from ray._private.accelerators import get_all_accelerator_managers
most = 0
for one in get_all_accelerator_managers():
    if one.get_resource_name() == "GPU":
        count, seen = one.get_current_node_num_accelerators(), one.get_current_process_visible_accelerator_ids()
        most = max(most, count if seen is None else min(count, len(seen)))
print("gpus", most)
"""
_SECONDS = 60.0
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def lacking(engine: Engine, python: str) -> str:
    """That there are fewer than the stages of a spec with that `engine` ask for, and what to do; `""` where there are not, or nobody knows.

    Args:
        python: the interpreter that has OpenRLHF.
    """
    if engine.cpu or engine.ray is not None:
        return ""
    found = count(python)
    if found is None or found >= engine.gpus:
        return ""
    seen = os.environ.get(_VISIBLE)
    shown = f" ({_VISIBLE} is {seen[:40]!r})" if seen is not None else ""
    return (
        f"too few GPUs: every stage asks for {engine.gpus} (engine.gpus), and Ray finds {found} on this machine{shown}; lower"
        " engine.gpus, give engine.ray the address of a Ray whose machines have them, or set engine.cpu to try all without one"
    )


def count(python: str) -> int | None:
    """The GPUs that Ray finds on this machine, in the environment of that interpreter; `None` where it cannot be asked."""
    try:
        done = subprocess.run([python, "-c", _COUNT], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()[-2:]
    return int(words[1]) if done.returncode == 0 and len(words) == 2 and words[0] == "gpus" else None
