"""The environment that OpenRLHF runs in: which interpreter, which version, which variables its processes see.

OpenRLHF's requirements rarely go together with anybody else's, so that it may live in an environment of its own on the same machine
(`engine.python`). That one needs nothing of this project: what the agent is part of, and the one package that it needs, are lent to
it by a folder with two links. Ray is started for the stage and ended with it, unless the spec names one that runs already (`openrlhf_cluster.py`).
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pluggy

import cascade_core
from cascade_core import versions
from cascade_core.errors import SpecError, TrainerError
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_gpus
from cascade_core.trainers import openrlhf_parser as parser
from cascade_core.trainers.openrlhf_client import ADDRESS, TOKEN
from cascade_core.trainers.openrlhf_sizes import Cluster

_ASK = "from importlib.metadata import version; print('openrlhf', version('openrlhf'))"
_WHERE = "from importlib.util import find_spec; print(find_spec('openrlhf').submodule_search_locations[0])"
# Processes that share a model, of which a CPU's have the whole.
_SPREAD = ("vllm.tensor_parallel_size", "ds.ring_attn_size", "ds.tensor_parallel_size")


def interpreter(engine: Engine) -> str:
    """The Python that has OpenRLHF."""
    return str(Path(engine.python).expanduser().absolute()) if engine.python else sys.executable


def cluster(engine: Engine) -> Cluster:
    """What the flags of a stage are computed for; on a CPU one machine, whose processes are as many as the GPUs would be."""
    if engine.cpu:
        return Cluster(nodes=1, gpus_per_node=engine.gpus, address=engine.ray or "")
    wide = engine.tensor_parallel_size
    return Cluster(nodes=engine.nodes, gpus_per_node=engine.gpus, tensor_parallel_size=wide, address=engine.ray or "")


def adapted(engine: Engine, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """The flags as this engine can have them.

    Raises:
        SpecError: a model is to be spread over processes, and a CPU has none that share one.
    """
    if not engine.cpu:
        return flags
    from cascade_core import rehearsal

    for flag in _SPREAD:
        if (found := flags.get(flag, 1)) != 1:
            raise SpecError(
                f"trainer_args.{flag} must be 1 with engine.cpu, found {found}: every process has the whole model"
            )
    return rehearsal.on_cpu(flags)[0]


def known(engine: Engine, kind: str) -> parser.Known:
    """The flags of the OpenRLHF that a stage will run, of its source where that can be read; where there is none yet, of the newest that is known.

    Raises:
        SpecError: what is there is of a version that is not known.
    """
    if not engine.python:
        return parser.flags(kind)
    found = version(interpreter(engine))
    if not found:
        return parser.recorded(kind, parser.VERSIONS[0])
    if found not in parser.VERSIONS:
        raise SpecError(
            f"trainer 'openrlhf' knows OpenRLHF {' and '.join(parser.VERSIONS)}, and {engine.python} has {found}; try:"
            f" {engine.python} -m pip install openrlhf=={parser.VERSIONS[0]}"
        )
    folder = source(interpreter(engine))
    with suppress(SpecError):
        if folder is not None:
            return parser.read(folder, kind, found)
    return parser.recorded(kind, found)


def check(engine: Engine) -> None:
    """Insists that OpenRLHF is there, and the GPUs that a stage asks for.

    Raises:
        TrainerError: one of them is not, or the interpreter cannot be run.
    """
    version.cache_clear()
    source.cache_clear()
    if lacking := lacks(engine):
        raise TrainerError(lacking)


def lacks(engine: Engine) -> str:
    """That OpenRLHF is not where it should be, or too few GPUs are, and what to do; `""` where all is."""
    if version(interpreter(engine)):
        return openrlhf_gpus.lacking(engine, interpreter(engine))
    if engine.python and not Path(interpreter(engine)).exists():
        return f"engine.python: there is no {interpreter(engine)}; name the interpreter of an environment that has OpenRLHF"
    return (
        f"OpenRLHF is not installed in the environment of {interpreter(engine)}; set engine.python to the interpreter"
        " of one that has it, or install it there"
    )


def packages(engine: Engine) -> dict[str, str]:
    """The versions of OpenRLHF and of what goes with it, as far as they are installed where it is."""
    try:
        where = versions.folders(interpreter(engine)) if engine.python else ()
    except OSError:
        return {}
    found = {"openrlhf": versions.installed("openrlhf", where)}
    found |= {one.name: one.found for one in versions.openrlhf(where)}
    return {name: number for name, number in found.items() if number}


@functools.cache
def version(python: str) -> str:
    """The version of OpenRLHF in an interpreter's environment; `""` where it has none, or there is no such interpreter."""
    try:
        done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.split()
    return words[1] if done.returncode == 0 and len(words) == 2 and words[0] == "openrlhf" else ""


@functools.cache
def source(python: str) -> Path | None:
    """The folder of the OpenRLHF in an interpreter's environment, which is not imported; `None` where it cannot be seen from here."""
    try:
        done = subprocess.run([python, "-c", _WHERE], capture_output=True, text=True, timeout=120, check=True, cwd="/")
    except (OSError, subprocess.SubprocessError):
        return None
    folder = Path(done.stdout.strip() or "/")
    return folder if (folder / "cli").is_dir() else None


def environment(base: Mapping[str, str], engine: Engine, lent: Path, address: str, token: str) -> dict[str, str]:
    """The variables of the job: those of this process, its own Ray, nothing from the network, and where the service is.

    Args:
        lent: a folder that is made, which lends `cascade_core` and what it imports at once.
    """
    lent.mkdir(parents=True, exist_ok=True)
    for package in (cascade_core, pluggy):
        link = lent / package.__name__
        link.unlink(missing_ok=True)
        link.symlink_to(Path(str(package.__file__)).parent)
    found = {
        **base,
        "PYTHONPATH": os.pathsep.join([str(lent), *filter(None, [base.get("PYTHONPATH")])]),
        "PYTHONUNBUFFERED": "1",
        "RAY_ADDRESS": "local",
        "RAY_DEDUP_LOGS": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        ADDRESS: address,
        TOKEN: token,
    }
    if engine.cpu:
        from cascade_core import rehearsal

        del found["RAY_ADDRESS"]  # the shim's hook starts a Ray of its own where none is named
        return rehearsal.environment(found, max(2, engine.gpus))
    return found
