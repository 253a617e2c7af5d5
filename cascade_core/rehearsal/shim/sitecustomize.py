"""Lets the real OpenRLHF, vLLM and DeepSpeed run where there is no GPU; Python loads this file at the start of a process.

It changes no file of theirs: after one of the modules below has been imported, a *hook* replaces in memory what a CPU does not
have. It does something only in a process that has this folder on `PYTHONPATH` and `CASCADE_OPENRLHF_CPU=1`, which
`cascade_core.rehearsal.environment` sets; children (Ray's workers, vLLM's engine) inherit both. Each hook says what happens
without it. Nothing of `cascade_core` is imported here. A `sitecustomize` of the system is shadowed in these processes.

It does not make a CPU fast, and no run with it says anything about packing, flash attention or CUDA's own transfers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

Hook = Callable[[Any], None]
_HOOKS: dict[str, Hook] = {}
_LOOK_MS = 10
_WAIT = timedelta(minutes=5)  # for a partner of the weight transfer that never comes


def after(name: str) -> Callable[[Hook], Hook]:
    """Marks what is done to the module `name` as soon as it has been imported."""

    def keep(hook: Hook) -> Hook:
        _HOOKS[name] = hook
        return hook

    return keep


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _HOOKS[module.__name__](module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _HOOKS else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Cpu(str):
    """The device `cpu` wherever torch takes a device; in a text such as `f"cuda:{device}"` it is the number 0."""

    def __format__(self, spec: str) -> str:
        return "0"


@after("torch")
def device(torch: Any) -> None:
    """OpenRLHF asks for the current CUDA device without looking whether there is one: without this, AttributeError."""
    cpu = _Cpu("cpu")
    torch.cuda.current_device = lambda: cpu
    for name in ("set_device", "synchronize", "empty_cache", "current_stream"):
        setattr(torch.cuda, name, lambda *_args, **_named: None)


@after("ray")
def cluster(ray: Any) -> None:
    """OpenRLHF reserves GPUs: without this, it waits for ever. A cluster that is given by RAY_ADDRESS is left as it is."""
    init = ray.init

    def local(*args: Any, **named: Any) -> Any:
        if not args and "address" not in named and not os.environ.get("RAY_ADDRESS"):
            gpus = int(os.environ["CASCADE_OPENRLHF_GPUS"])
            named |= {"address": "local", "num_gpus": gpus, "num_cpus": 4 + 2 * gpus, "include_dashboard": False}
        return init(*args, **named)

    ray.init = local


@after("openrlhf.utils.distributed_util")
def transfer(module: Any) -> None:
    """New weights go to vLLM by NCCL, whose stand-in switches itself off in silence: without this, vLLM samples garbage."""

    def group(master_address: str, master_port: int, rank: int, world_size: int, device: Any) -> _Broadcast:
        return _Broadcast(master_address, master_port, rank, world_size)

    module.stateless_init_process_group = group


class _Broadcast:
    """What OpenRLHF uses of a communicator, over gloo."""

    def __init__(self, address: str, port: int, rank: int, world_size: int) -> None:
        from torch import distributed as torch_distributed

        distributed: Any = torch_distributed  # its stubs lack what is used here
        self._store = distributed.TCPStore(address, port, world_size, rank == 0, _WAIT)
        prefixed = distributed.PrefixStore("cascade-weights", self._store)
        self._group: Any = distributed.ProcessGroupGloo(prefixed, rank, world_size, _WAIT)
        self._options = distributed.BroadcastOptions

    def broadcast(self, tensor: Any, src: int, stream: Any = None) -> None:
        options = self._options()
        options.rootRank, options.rootTensor = src, 0
        self._group.broadcast([tensor], options).wait()


@after("openrlhf.trainer.ray.vllm_worker_wrap")
def arrival(module: Any) -> None:
    """The worker makes room for a new weight on "cuda": without this, it fails, and the trainer waits for ever."""

    def update_weight(self: Any, name: str, dtype: Any, shape: Any, empty_cache: bool = False) -> None:
        import torch

        if dtype != self.model_config.dtype:
            raise TypeError(f"weight {name!r} comes as {dtype}, the engine's are {self.model_config.dtype}")
        weight = torch.empty(shape, dtype=dtype)
        self._model_update_group.broadcast(weight, src=0)
        self.model_runner.model.load_weights(weights=[(name, weight)])

    module.WorkerWrap.update_weight = update_weight


@after("vllm.model_executor.layers.utils")
def layers(module: Any) -> None:
    """vLLM packs weights once and drops the originals where the CPU can: without this, new weights would reach nothing."""

    def plain(layer: Any, remove_weight: bool) -> None:
        from torch.nn.functional import linear

        layer.cpu_linear = linear

    module.dispatch_cpu_unquantized_gemm = plain


@after("vllm.distributed.device_communicators.shm_broadcast")
def pause(module: Any) -> None:
    """vLLM puts even an engine of one device into two processes on a CPU, and each asks the other for messages without a pause
    for a second after the last: without this, they take a core from the processes that train. A message wakes the other; one whose
    notice is lost is found after `_LOOK_MS`.
    """
    wait = module.SpinCondition.wait

    def patient(self: Any, timeout_ms: int | None = None) -> None:
        self.busy_loop_s = min(self.busy_loop_s, 0.001)
        wait(self, _LOOK_MS if timeout_ms is None else min(timeout_ms, _LOOK_MS))

    module.SpinCondition.wait = patient


@after("openrlhf.utils.deepspeed.deepspeed_utils")
def optimizer(module: Any) -> None:
    """DeepSpeed compiles its own Adam: without this, minutes of a C++ compiler, and a lock that a killed build leaves."""
    configuration = module.get_train_ds_config

    def with_torch(*args: Any, **named: Any) -> Any:
        found = configuration(*args, **named)
        if "optimizer" in found:
            found["optimizer"]["params"]["torch_adam"] = True
        return found

    module.get_train_ds_config = with_torch


@after("deepspeed.comm.torch")
def shared_memory(module: Any) -> None:
    """DeepSpeed compiles a transport between processes of one machine: without this, minutes at the first start."""
    module.build_shm_op = lambda: None


if os.environ.get("CASCADE_OPENRLHF_CPU") == "1":
    for _left_out in filter(None, os.environ.get("CASCADE_OPENRLHF_WITHOUT", "").split(",")):
        del _HOOKS[_left_out]  # by tests, to see that its absence is noticed
    sys.meta_path.insert(0, _Finder())
    sys.path.append(str(Path(__file__).with_name("stubs")))  # behind everything, so that a real flash_attn wins
