"""Where vLLM's process runs: on this machine, or, where it has too few GPUs, as a job on the Ray cluster of the spec.

    with launched(vllm, job, folder, log) as running:
        ...  # a Running

On a cluster `engine.python` and the folders of the run and of the model are the same on all its machines, as for a stage's job
(`trainers/openrlhf_cluster.py`); vLLM's GPUs are of one machine, and the job takes them all. Both end with the body; `end_earlier` ends
what an earlier start could not.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from cascade_core.settings import Engine
from cascade_core.trainers.openrlhf_cluster import Submission, followed, lend, variables
from cascade_core.trainers.openrlhf_job import Running, end_old
from cascade_core.vllm_sampling import Vllm, gpus, program

_SECRET = "VLLM_API_KEY"
_LAST_SECONDS = 60.0  # of a vLLM that was told that nothing more is asked


def end_earlier(vllm: Vllm, folder: Path) -> None:
    """Ends what an earlier start in `folder` left running, here and on a cluster.

    Raises:
        TrainerError: it cannot be ended; says how to end it by hand.
    """
    end_old(_record(folder))
    _submission(vllm, folder).end()


@contextmanager
def launched(vllm: Vllm, job: Path, folder: Path, log: Path) -> Iterator[Running]:
    """Runs `program.py` with the file `job` while the body does.

    Args:
        folder: of the evaluation, where it is written what runs.
        log: where vLLM's output is appended.
    """
    if (engine := gpus.cluster(vllm)) is not None:
        with _submitted(engine, vllm, job, folder, log) as running:
            yield running
        return
    command = [vllm.python, "-u", str(program.__file__), str(job.absolute())]
    with Running(command, environment(os.environ), log, _record(folder)) as running:
        yield running


@contextmanager
def _submitted(engine: Engine, vllm: Vllm, job: Path, folder: Path, log: Path) -> Iterator[Running]:
    mark, wide, submission = uuid4().hex, vllm.tensor_parallel_size, _submission(vllm, folder)
    lent = lend(folder.absolute() / "lent")
    command = [
        _interpreter(vllm),
        "-u",
        str(lent / "cascade_core" / "vllm_sampling" / "program.py"),
        str(job.absolute()),
    ]
    env = {**shared(os.environ), **variables(engine, lent, os.environ)}
    asks = f"evaluation asks for {wide} on one machine (evaluation.tensor_parallel_size)"
    name = f"{folder.absolute().parent.name}-sampling"
    words = submission.prepare(engine, name, mark, command, env, wide, asks)
    with followed(submission, words, mark, log, _record(folder)) as running:
        yield running
        # A job that ends by itself leaves nothing to be looked for.
        last = time.monotonic() + _LAST_SECONDS
        while running.poll() is None and time.monotonic() < last:
            time.sleep(0.1)


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """The variables of the process on this machine: those of this one, and nothing from the network."""
    return {
        **_ON_CPU,
        **base,
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }


def shared(base: Mapping[str, str]) -> dict[str, str]:
    """The variables of vLLM's that a job on a cluster gets; Ray shows them to whoever may open its dashboard."""
    return {**_ON_CPU, **{name: text for name, text in base.items() if name.startswith("VLLM_") and name != _SECRET}}


_ON_CPU = {  # of vLLM's build for CPUs, and of no other
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; without it, it wants nearly all of the memory to be free
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # others work on the same cores
}


def _record(folder: Path) -> Path:
    return folder / "process.json"


def _submission(vllm: Vllm, folder: Path) -> Submission:
    return Submission(folder.absolute() / "submission.json", _interpreter(vllm))


def _interpreter(vllm: Vllm) -> str:
    """Its path, which is the same on every machine of a cluster."""
    return str(Path(shutil.which(vllm.python) or vllm.python).absolute())
