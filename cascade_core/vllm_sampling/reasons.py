"""Why vLLM ended, in one line with the setting to change, by what it printed.

Which of several is told is said in `causes.py`. What the engines of a training job say is `trainers/openrlhf_log.py`'s, whose settings have
other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cascade_core.causes import cause
from cascade_core.trainers.openrlhf_log import HEADS, plain

REASONS = (
    (r"^cascade: (?P<told>(?:vLLM has no argument|nothing was asked for) .*)", "{told}"),
    (
        r"No module named '?vllm\b",
        "vLLM is not installed in the environment of {python}; set engine.python to the interpreter of one that has it,"
        " or evaluation.sampler to transformers",
    ),
    (
        r"Failed to infer device type|No CUDA GPUs are available|Found no NVIDIA driver",
        "vLLM finds no GPU on this machine; set evaluation.sampler to transformers, or engine.cpu where all is tried without one",
    ),
    (r"Unsupported CPU attention configuration: head_dim=\d+", HEADS + ", or set evaluation.sampler to transformers"),
    (
        r"Free memory on device .* less than desired|Available memory on node .* less than desired",
        "too little memory is free for vLLM; end what holds it, or lower evaluation.vllm_args.gpu_memory_utilization",
    ),
    (
        r"No available memory for the cache blocks|larger than the (?:maximum number of tokens that can be stored in|available) KV cache",
        "vLLM has no room for the longest response; raise evaluation.tensor_parallel_size or"
        " evaluation.vllm_args.gpu_memory_utilization, or lower evaluation.sampling.max_response_tokens",
    ),
    (
        r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory|DefaultCPUAllocator: can't allocate|^MemoryError",
        "vLLM ran out of memory; raise evaluation.tensor_parallel_size, or lower evaluation.vllm_args.gpu_memory_utilization or"
        " evaluation.vllm_args.max_num_seqs",
    ),
    (
        r"Model architectures \[[^\]]*\] (?:are not supported|failed to be inspected)|has no vLLM implementation",
        "this vLLM does not know the model ({found}); set evaluation.sampler to transformers",
    ),
    (
        r"(?:Total number of attention heads|Vocab size|num_heads) .*must be divisible by tensor.parallel.*|\d+ is not divisible by \d+",
        "the model cannot be split so ({found}); change evaluation.tensor_parallel_size",
    ),
    (
        r"World size \(\d+\) is larger than the number of available GPUs.*|invalid device ordinal|Insufficient resources|No available node types can fulfill|current platform .* does not have enough",
        "fewer GPUs are free than evaluation.tensor_parallel_size asks for",
    ),
    (
        r"(?:Address already in use|EADDRINUSE|Errno 98).*",
        "a port is in use; end what holds it, and give the same command again",
    ),
    (r"No space left on device|os error 28", "No space left on device"),
    (
        r"(?:ImportError: cannot import name|ModuleNotFoundError: No module named|AttributeError: module '?(?:vllm|transformers)) .*",
        "the packages beside vLLM do not fit it: {found}; `cascade doctor` says which versions go together",
    ),
)
_COMPILED = [(re.compile(pattern), told) for pattern, told in REASONS]


def reason(lines: Iterable[str], python: str) -> str:
    """Why vLLM ended or stands still, by the lines that it printed; `""` where nothing in them says so."""
    return cause(map(plain, lines), python, _COMPILED)
