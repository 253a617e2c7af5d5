"""`reward_model: {server: {model: PATH}}`: a reward model that the core starts, watches and ends for a run.

It is `cascade rm serve` in a process of its own on a free port of this machine. It ends with the run, however that ends; one that dies is started again under
the same address, and who asks meanwhile asks again (`client.py`). A model that runs elsewhere is named by its address instead, or by `elsewhere.py`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cascade_core.errors import ResourceError, UsageError
from cascade_core.resource import Resource
from cascade_core.server import Server
from cascade_plugin_rlhf.addresses import reward_model, why_not

_RESTARTS = 3
_ASK_SECONDS = 1.0
_ASK_TIMES = 60


@dataclass
class RewardModelServer(Resource):
    """One reward model. Options are those of `cascade rm serve`; `seconds` is how long its start may take."""

    name: ClassVar[str] = "server"
    provides: ClassVar[str] = "reward_model"
    default: ClassVar[bool] = True
    free: ClassVar[tuple[str, ...]] = ("max_tokens_per_batch", "threads", "seconds")
    decisive: ClassVar[tuple[str, ...]] = ("weights", "kind", "template", "max_tokens")

    model: str
    device: str = "auto"
    dtype: str = "auto"
    value_head_prefix: str = ""
    template: str = "auto"
    max_tokens: int = 0
    max_tokens_per_batch: int = 0
    threads: int = 0
    seconds: float = 600.0
    _running: Server | None = field(default=None, init=False, repr=False)
    _facts: Mapping[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        from cascade_core.settings import home, is_path  # pydantic, which listing the plugins must not cost

        self.model = str(home(self.model))
        if is_path(self.model) and not Path(self.model).is_dir():
            raise UsageError(
                f"option 'model' must be a reward model: no folder is at {self.model!r}; a hub name is OWNER/MODEL"
            )

    @classmethod
    def misaddressed(cls, address: str) -> str:
        """A reward model elsewhere is `http(s)://…`, or vLLM's with `vllm:` before it."""
        return why_not(reward_model, address)

    def start(self) -> str:
        """Starts the server and waits until it scores.

        Raises:
            ResourceError: it cannot be started; quotes its last line.
        """
        port = _free_port()
        address = f"http://127.0.0.1:{port}"
        self._running = Server(
            self._command(port),
            address,
            seconds=self.seconds,
            is_ready=lambda: bool(_told(address, "/health")),
            environment={"TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "false")},
            restarts=_RESTARTS,
        )
        self._running.start()
        self._facts = self._served(address)
        return address

    def _served(self, address: str) -> Mapping[str, Any]:
        for _ in range(_ASK_TIMES):  # each waits for a second: a busy machine may need several
            if told := _told(address, "/models"):
                return dict(told["models"]["reward_model"])
        raise ResourceError("the server of the reward model scores and does not say what it serves")

    def stop(self) -> None:
        """Ends the server."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def alive(self) -> bool:
        """Whether the server runs, or is being started again."""
        return self._running is not None and self._running.alive()

    def describe(self) -> Mapping[str, Any]:
        """The model, the digest of its files, how it is run, and the versions of transformers and torch."""
        return dict(self._facts)

    def _command(self, port: int) -> list[str]:
        code = "from cascade_core.cli import main; main()"
        command = [
            sys.executable,
            "-c",
            code,
            "rm",
            "serve",
            "--model",
            f"reward_model={self.model}",
            "--port",
            str(port),
        ]
        for name in (
            "device",
            "dtype",
            "value_head_prefix",
            "template",
            "max_tokens",
            "max_tokens_per_batch",
            "threads",
        ):
            if value := getattr(self, name):
                command += [f"--{name.replace('_', '-')}", str(value)]
        return command


def _free_port() -> int:
    with socket.socket() as channel:
        channel.bind(("127.0.0.1", 0))
        return int(channel.getsockname()[1])


def _told(address: str, path: str) -> dict[str, Any] | None:
    """What the server says; `None` where it does not answer."""
    import urllib.request  # 20 ms, which listing the plugins must not cost

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address + path, timeout=_ASK_SECONDS) as answer:
            return dict(json.load(answer))
    except (OSError, ValueError):
        return None
