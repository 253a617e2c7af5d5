"""Takes down what goes through a real OpenRLHF, from inside: the tokens that vLLM is asked with, and the samples that OpenRLHF trains on.

torch loads it in every process that imports torch (entry points of the group `torch.backends`), where its folder is on `PYTHONPATH`. It
does something where `CASCADE_WITNESS` names a folder: `asked.jsonl` has a line for each request that reached vLLM's engine, `trained.jsonl` one
for each step, as OpenRLHF's own experiences hold it when advantages are final. Nothing that passes is changed.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any


def load() -> None:
    """Waits for the two modules."""
    if os.environ.get("CASCADE_WITNESS"):
        sys.meta_path.insert(0, _Finder())


def _note(name: str, told: Any) -> None:
    channel = os.open(Path(os.environ["CASCADE_WITNESS"]) / name, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(channel, (json.dumps(told) + "\n").encode())
    finally:
        os.close(channel)


def _engine(module: Any) -> None:
    real = module.EngineCore.add_request

    @functools.wraps(real)
    def add_request(self: Any, request: Any, *rest: Any, **more: Any) -> Any:
        _note("asked.jsonl", list(request.prompt_token_ids))
        return real(self, request, *rest, **more)

    module.EngineCore.add_request = add_request


def _maker(module: Any) -> None:
    real = module.RemoteExperienceMaker.compute_advantages_and_returns

    @functools.wraps(real)
    def compute(self: Any, experiences: Any) -> Any:
        found = real(self, experiences)
        _note("trained.jsonl", [sample for one in found for sample in _samples(one)])
        return found

    module.RemoteExperienceMaker.compute_advantages_and_returns = compute


def _samples(one: Any) -> list[dict[str, Any]]:
    """The samples of a micro-batch; `index` is a sample's place in the step, `slot` its row in OpenRLHF's data set."""
    return [
        {
            "index": one.index[i],
            "slot": int(one.labels[i]),
            "tokens": one.sequences[i][one.attention_mask[i].bool()].tolist(),
            "reward": float(one.rewards[i]),
            "advantages": one.advantages[i][one.action_mask[i].bool()].tolist(),
        }
        for i in range(len(one.index))
    ]


_HOOKS = {"vllm.v1.engine.core": _engine, "openrlhf.trainer.ppo_utils.experience_maker": _maker}


class _Loader(SourceFileLoader):
    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        _HOOKS[module.__name__](module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _HOOKS else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
