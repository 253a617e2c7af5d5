"""The sandboxes as resources of a run: `sandbox: docker`, which a spec gets by itself, and `sandbox: process`.

The only module here, beside `plugin.py`, that knows of cascade_core. There is no way from one to the other: where Docker cannot be used,
a run ends with what is missing, and whoever wants the weaker one names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cascade_core.resource import Resource
from cascade_sandbox.client import DockerSandbox, docker_sandbox
from cascade_sandbox.errors import SandboxError


@dataclass
class Docker(Resource):
    """A pool of warm containers; the fields are the options of `docker_sandbox`, and 0 slots are one for each core."""

    name: ClassVar[str] = "docker"
    provides: ClassVar[str] = "sandbox"
    default: ClassVar[bool] = True
    free: ClassVar[tuple[str, ...]] = ("slots", "recycle_after", "engine", "patience")

    slots: int = 0
    memory_mb: int = 2048
    work_mb: int = 512
    recycle_after: int = 2000
    image: str = ""
    engine: str = ""
    patience: float = 120.0
    _running: DockerSandbox | None = field(default=None, init=False, repr=False)

    def start(self) -> str:
        """Starts the pool; raises `SandboxError` saying what is missing."""
        try:
            self._running = docker_sandbox(
                slots=self.slots or None,
                memory_mb=self.memory_mb,
                work_mb=self.work_mb,
                recycle_after=self.recycle_after,
                image=self.image,
                engine=self.engine,
                patience=self.patience,
            )
        except SandboxError as cause:
            raise SandboxError(f"{cause}; `cascade sandbox doctor` says what is there and what is not") from cause
        return self._running.address

    def stop(self) -> None:
        """Ends every container."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def alive(self) -> bool:
        """Whether the keeper answers."""
        try:
            return self._running is not None and bool(self._running.status())
        except SandboxError:
            return False

    def describe(self) -> Mapping[str, Any]:
        """Image, engine and number of containers."""
        if self._running is None:
            return {}
        status = self._running.status()
        return {key: status[key] for key in ("image", "engine", "slots")}


@dataclass
class Process(Resource):
    """Process groups with limits on this machine: stops accidents, not attackers."""

    name: ClassVar[str] = "process"
    provides: ClassVar[str] = "sandbox"

    def start(self) -> str:
        """Nothing to start."""
        return "process:"

    def stop(self) -> None:
        """Nothing to stop."""
