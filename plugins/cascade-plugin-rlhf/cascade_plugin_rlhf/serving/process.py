"""Models to a process that serves until SIGTERM: the address is taken first, then the models are read and warmed, then requests are answered.

Whoever connects meanwhile waits. SIGTERM drains as `cascade_core/serve/listen.py` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from cascade_core.errors import UsageError
from cascade_core.settings import home
from cascade_plugin_rlhf.serving.model import Source

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Bounds:
    """What the process may hold, and how long it drains.

    Attributes:
        most_waiting: items that may wait for one model; more are refused with 503.
        body_mib: the longest body of a request.
        drain_seconds: how long SIGTERM waits for what is in flight.
        threads: of torch on a processor; 0 leaves it to torch.
    """

    most_waiting: int = 16_384
    body_mib: int = 16
    drain_seconds: float = 60.0
    threads: int = 0


def named(models: Sequence[str]) -> dict[str, str]:
    """`PATH` or `NAME=PATH` each, as names to paths; a path alone is called by its last part.

    Raises:
        UsageError: a name that cannot stand in a URL, or one twice.

    >>> named(["runs/r/rm", "old=org/model"])
    {'rm': 'runs/r/rm', 'old': 'org/model'}
    """
    found: dict[str, str] = {}
    for given in models:
        name, equals, path = given.partition("=")
        if not equals or "/" in name:
            name, path = PurePath(given).name, given
        if not path or not _NAME.fullmatch(name):
            raise UsageError(
                f"--model {given!r}: a model is PATH or NAME=PATH, a name is 1 … 64 letters, digits, '.', '_', '-'"
            )
        if name in found:
            raise UsageError(f"two models are called {name!r}: give one another name with NAME=PATH")
        found[name] = str(home(path))
    return found


def run(
    sources: Mapping[str, Source],
    host: str,
    port: int,
    token: str,
    bounds: Bounds,
    ready: Callable[[str, Sequence[str]], None],
) -> None:
    """Serves until SIGTERM.

    Args:
        ready: called once with the address and the names, when requests are answered.

    Raises:
        UsageError: nothing can listen there.
        ResourceError: a model cannot be read or run.
    """
    from cascade_core.serve.access import Access
    from cascade_core.serve.listen import address, bound, listen

    with bound(host, port) as channel:
        import torch
        from transformers.utils import logging

        from cascade_plugin_rlhf.serving.app import Serving, build
        from cascade_plugin_rlhf.serving.model import RewardModel

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if bounds.threads:
            torch.set_num_threads(bounds.threads)
        models = {name: RewardModel(source) for name, source in sources.items()}
        for model in models.values():
            model.warm()
        serving = Serving(models, Access(token), bounds.most_waiting, bounds.body_mib)
        where = address(channel)
        listen(build(serving), channel, lambda: ready(where, list(models)), bounds.drain_seconds)
