"""How a rehearsal measures: by the sampler of the spec, with those of vLLM's arguments that a CPU can have.

`checked` looks at `evaluation.vllm_args` as the run's own vLLM, or the one of the rehearsal, would; `on_cpu` says which of them are
tried with another value. Where there is no vLLM to try them with, transformers answers, and that is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cascade_core import vllm_sampling
from cascade_core.rehearsal.findings import Replaced
from cascade_core.settings import Spec
from cascade_core.vllm_sampling import arguments

_ONE, _NO_GPU, _WHOLE = (
    "one process holds the model",
    "no GPU memory is to be saved",
    "the tiny model is a plain folder",
)
_KERNELS, _EAGER = "these kernels need a GPU", "nothing is to be captured, and compiling takes minutes"
_ALONE, _DRAFT = "there is no other engine to hand anything to", "a draft model is not made small"
# What a CPU has instead, and why; `None`: what vLLM takes by itself.
_VALUES: Mapping[str, tuple[Any, str]] = {
    "dtype": ("float32", "a CPU computes in 32 bits"),
    "gpu_memory_utilization": (0.3, "the share of the machine's memory that must be free at the start"),
    "enforce_eager": (True, _EAGER),
    "block_size": (None, "vLLM's build for CPUs has its own"),
    "kv_cache_dtype": (None, "smaller numbers need a GPU"),
    "kv_cache_memory_bytes": (None, _NO_GPU),
    "num_gpu_blocks_override": (None, _NO_GPU),
    "load_format": (None, _WHOLE),
    "model_loader_extra_config": (None, _WHOLE),
    "enable_sleep_mode": (None, _NO_GPU),
    "enable_cumem_allocator": (None, _NO_GPU),
    "optimization_level": (None, _EAGER),
    "performance_mode": (None, _EAGER),
    "compilation_config": (None, _EAGER),
    "kernel_config": (None, _KERNELS),
    "disable_custom_all_reduce": (None, _ONE),
    "enable_expert_parallel": (None, _ONE),
    "enable_eplb": (None, _ONE),
    "pipeline_parallel_size": (None, _ONE),
    "enable_flashinfer_autotune": (None, _KERNELS),
}
# The same for all arguments that begin, or end, so.
_BEGIN: Mapping[str, str] = {
    "quantization": "fewer bits need a GPU",
    "cpu_offload_": _NO_GPU,
    "offload_": _NO_GPU,
    "kv_offloading_": _NO_GPU,
    "cudagraph_": _EAGER,
    "max_cudagraph_": _EAGER,
    "attention_": _KERNELS,
    "eplb_": _ONE,
    "data_parallel_": _ONE,
    "prefill_context_parallel_": _ONE,
    "decode_context_parallel_": _ONE,
    "numa_": _ONE,
    "spec": _DRAFT,
    "kv_transfer_": _ALONE,
    "kv_events_": _ALONE,
    "ec_": _ALONE,
}
_END: Mapping[str, str] = {"_backend": _KERNELS}
_SAFE = {"load_format": ("auto", "safetensors", "hf", "dummy"), "kv_cache_dtype": ("auto",)}


def checked(spec: Spec, pythons: Iterable[str]) -> Iterator[tuple[bool, str]]:
    """What is to be said of `evaluation.vllm_args`, and whether it is a mistake (else a note).

    Args:
        pythons: interpreters, of which the first that has vLLM is asked: the run's own before others.
    """
    given = spec.evaluation.vllm_args
    if not given:
        return
    known = next(filter(None, map(arguments.installed, pythons)), None)
    if known is None:
        yield (
            False,
            "evaluation.vllm_args were not looked at, there is no vLLM here to ask; `cascade rehearse --install` brings one,"
            " and --python names another environment",
        )
        return
    for name, what in arguments.problems(given, known):
        yield True, f"evaluation.vllm_args.{name}: {what}"


def on_cpu(spec: Spec, python: str | None) -> tuple[dict[str, Any], list[Replaced]]:
    """The `evaluation` of a rehearsal, as a spec has it, and what of it is another.

    Args:
        python: the interpreter that has vLLM; without one transformers samples.
    """
    data: dict[str, Any] = spec.model_dump(mode="json", exclude_unset=True).get("evaluation", {})
    wanted = vllm_sampling.chosen(spec)
    left = {key: value for key, value in data.items() if key not in ("sampler", "tensor_parallel_size", "vllm_args")}
    if wanted is None:
        return {**left, "sampler": "transformers"}, []
    if python is None:
        reason = "there is no vLLM for a CPU here; `cascade rehearse --install` brings one"
        return {**left, "sampler": "transformers"}, [Replaced("", "evaluation.sampler", "vllm", "transformers", reason)]
    given, replaced = {}, []
    if wanted.tensor_parallel_size > 1:
        wide = wanted.tensor_parallel_size
        replaced.append(Replaced("", "evaluation.tensor_parallel_size", wide, 1, _ONE))
    for name, value in spec.evaluation.vllm_args.items():
        instead = None if value in _SAFE.get(name, ()) else _instead(name)
        if instead is None or instead[0] == value:
            given[name] = value
            continue
        replaced.append(Replaced("", f"evaluation.vllm_args.{name}", value, *instead))
        if instead[0] is not None:
            given[name] = instead[0]
    return {**left, "sampler": "vllm", "vllm_args": given}, replaced


def _instead(name: str) -> tuple[Any, str] | None:
    """The value that a CPU has instead, and why; `None` where it can have any."""
    if name in _VALUES:
        return _VALUES[name]
    for head, reason in _BEGIN.items():
        if name.startswith(head):
            return None, reason
    return next(((None, reason) for tail, reason in _END.items() if name.endswith(tail)), None)
