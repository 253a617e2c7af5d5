"""Which machines sample the benchmarks of a run whose stages run on a cluster, and whether this one has the GPUs that it samples with.

vLLM runs on the machine of `cascade run` where that one has the GPUs for it, or nobody can say how many it has. A head node without any
has the cluster sample, on one of its machines. A model that is spread over several of them is sampled from here all the same: its vLLM
must be started on a machine that takes part, and Ray gives a job no such place. Where the stages run on this machine
too, their own GPUs are counted instead (`trainers/openrlhf_gpus.py`).
"""

from __future__ import annotations

from cascade_core import vllm_sampling
from cascade_core.settings import Engine, Spec
from cascade_core.trainers import openrlhf_gpus
from cascade_core.vllm_sampling import Vllm

REMEDY = "run cascade on a machine of the cluster that has GPUs, or set evaluation.sampler to transformers"
_HEAD = 1  # of a vLLM that is spread over machines: the others are on those


def cluster(vllm: Vllm) -> Engine | None:
    """The engine whose Ray is to run vLLM; `None` where this machine does."""
    if vllm.cluster is None:
        return None
    found = openrlhf_gpus.count(vllm.python)
    return vllm.cluster if found is not None and found < vllm.tensor_parallel_size else None


def asked(spec: Spec) -> int:
    """GPUs of this machine that evaluation needs beside a cluster that trains; 0 where it needs none or there is no such cluster."""
    vllm = _of(spec)
    if vllm is None or cluster(vllm) is not None:
        return 0
    return _HEAD if vllm.ray else vllm.tensor_parallel_size


def lacking(spec: Spec) -> str:
    """That there are fewer, and what to do; `""` where there are not, or nobody knows."""
    vllm = _of(spec)
    if vllm is None or not vllm.ray:  # a cluster samples where there are too few
        return ""
    found = openrlhf_gpus.count(vllm.python)
    if found is None or found >= _HEAD:
        return ""
    return (
        f"too few GPUs here: evaluation spreads vLLM over machines from the one of `cascade run`, which needs {_HEAD}, and Ray finds"
        f" {found} on this one; {REMEDY}"
    )


def place(spec: Spec) -> str:
    """Where vLLM samples, where it need not be here; `""` where it is here, or is not what samples."""
    vllm = _of(spec)
    if vllm is None or vllm.cluster is None:
        return ""
    asks = f"{vllm.tensor_parallel_size} GPU{'' if vllm.tensor_parallel_size == 1 else 's'}"
    if cluster(vllm) is None:
        return f"evaluation samples with vLLM here, with {asks} of this machine"
    return (
        f"evaluation samples with vLLM on a machine of the Ray at {vllm.cluster.ray}, with {asks}: this one has fewer"
    )


def _of(spec: Spec) -> Vllm | None:
    """The vLLM that evaluates beside a cluster that trains."""
    if spec.engine.ray is None or spec.engine.cpu or spec.evaluation.benchmarks == []:
        return None
    return vllm_sampling.chosen(spec)
