"""Whether this machine has the GPUs that a run samples its benchmarks with, where its stages run on a cluster and not here.

vLLM is a process of `cascade run`, on its machine, whichever machines train: a head node that has no GPU can submit every stage and
measure none. Where the stages run here too, their own GPUs are counted instead (`trainers/openrlhf_gpus.py`). Where nobody can
say how many there are, nothing is told.
"""

from __future__ import annotations

from cascade_core import vllm_sampling
from cascade_core.settings import Spec
from cascade_core.trainers import openrlhf_gpus

REMEDY = "run cascade on a machine of the cluster that has GPUs, or set evaluation.sampler to transformers"


def asked(spec: Spec) -> int:
    """GPUs of this machine that evaluation needs beside a cluster that trains; 0 where it needs none or there is no such cluster."""
    vllm = vllm_sampling.chosen(spec)
    if vllm is None or spec.engine.ray is None or spec.engine.cpu or spec.evaluation.benchmarks == []:
        return 0
    return 1 if vllm.ray else vllm.tensor_parallel_size  # the others of a Ray's are on other machines


def lacking(spec: Spec) -> str:
    """That there are fewer, and what to do; `""` where there are not, or nobody knows."""
    wanted = asked(spec)
    vllm = vllm_sampling.chosen(spec)
    if vllm is None or not wanted:
        return ""
    found = openrlhf_gpus.count(vllm.python)
    if found is None or found >= wanted:
        return ""
    return (
        f"too few GPUs here: evaluation samples with vLLM on the machine of `cascade run`, which needs {wanted}, and Ray finds {found}"
        f" on this one; {REMEDY}"
    )
