"""The engine that runs containers, through the docker SDK: `Engine`. Docker, and podman through its socket of the same protocol.

Addresses are tried in a fixed order (`addresses`). Nothing here ever pulls an image: a container is made only of what is there.
Every call has a time limit, and every failure is an `EngineError` that says what to do, as far as that can be known.

This module knows nothing of pools or programs, and imports the SDK only when an engine is asked.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.owner import OWNER_LABEL, POOL_LABEL
from cascade_sandbox.owner import labels as owned

CALL_SECONDS = 60.0
"""How long the engine may take to answer one call."""

_CAPABILITIES = ("SETUID", "SETGID", "CHOWN", "KILL", "DAC_OVERRIDE")


class EngineError(SandboxError):
    """The engine cannot be reached, refuses, or does not answer in time."""


@dataclass(frozen=True)
class Shape:
    """How large one container is: MiB of memory (swap included), MiB and files of its only writable folder, processes.

    It has no quota of CPU time. Once, under one, an honest program that followed a fork bomb waited 4 seconds, of which the kernel told
    nobody, and got `timeout`; what the bomb owed of the quota is the likely cause, and was not shown. Containers share the cores
    evenly without a quota, and a program's own limits end it.
    """

    memory_mb: int = 2048
    work_mb: int = 512
    inodes: int = 16384
    processes: int = 256

    @property
    def options(self) -> dict[str, Any]:
        """Everything that shuts a container in, in the words of the SDK."""
        work = f"rw,exec,nosuid,nodev,size={self.work_mb}m,nr_inodes={self.inodes},mode=711"
        return {
            "network_mode": "none",
            "ipc_mode": "none",
            "read_only": True,
            "tmpfs": {"/w": work},
            "cap_drop": ["ALL"],
            "cap_add": list(_CAPABILITIES),
            "security_opt": ["no-new-privileges"],
            "pids_limit": self.processes,
            "mem_limit": f"{self.memory_mb}m",
            "memswap_limit": f"{self.memory_mb}m",
            "log_config": {"type": "none"},
            "working_dir": "/",
            "user": "0:0",
        }


@dataclass(frozen=True)
class Container:
    """A container that the engine knows."""

    name: str
    labels: Mapping[str, str]
    running: bool


def addresses() -> list[str]:
    """Where an engine may listen, best first: DOCKER_HOST alone if it is set, else the usual sockets that are there."""
    host = os.environ.get("DOCKER_HOST")
    if host:
        return [host]
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    sockets = ("/var/run/docker.sock", f"{own}/docker.sock", f"{own}/podman/podman.sock", "/run/podman/podman.sock")
    return [f"unix://{path}" for path in sockets if _is_socket(path)]


def _is_socket(path: str) -> bool:
    try:
        return Path(path).is_socket()
    except OSError:
        return False


class Engine:
    """One engine. Safe to use from several threads.

    Args:
        address: such as `unix:///var/run/docker.sock`; by default the first of `addresses`.
        seconds: how long one call may take.
    """

    def __init__(self, address: str = "", seconds: float = CALL_SECONDS) -> None:
        self._asked = address
        self._seconds = seconds
        self._lock = threading.Lock()
        self._made: Any = None

    @property
    def address(self) -> str:
        """Where it listens; empty if none was found."""
        return self._asked or next(iter(addresses()), "")

    def version(self) -> dict[str, Any]:
        """What the engine says of its version."""
        with self._calls() as client:
            return dict(client.version())

    def info(self) -> dict[str, Any]:
        """What the engine says of itself and of its machine."""
        with self._calls() as client:
            return dict(client.info())

    def image(self, name: str) -> str | None:
        """The id of a local image, None if there is none of that name."""
        from docker.errors import ImageNotFound

        with self._calls() as client:
            try:
                return str(client.images.get(name).id)
            except ImageNotFound:
                return None

    def image_labels(self, name: str) -> dict[str, str]:
        """The labels of a local image.

        Raises:
            EngineError: there is none of that name.
        """
        from docker.errors import ImageNotFound

        with self._calls() as client:
            try:
                return dict(client.images.get(name).labels)
            except ImageNotFound:
                raise missing_image(name) from None

    def images(self, label: str) -> list[str]:
        """The names of all local images with that label."""
        with self._calls() as client:
            found = client.images.list(filters={"label": label})
            return sorted(name for image in found for name in image.tags)

    def remove_image(self, name: str) -> None:
        """Removes a name, and the image if that was its last; a missing one is fine."""
        from docker.errors import NotFound

        with self._calls() as client:
            try:
                client.images.remove(name)
            except NotFound:
                return

    def load(self, path: Path, name: str, label: str) -> None:
        """Makes an image of an archive of files."""
        repository, _, tag = name.rpartition(":")
        with self._calls() as client:
            changes = [f"LABEL {label}"]
            client.api.import_image_from_file(str(path), repository=repository, tag=tag, changes=changes)
        if self.image(name) is None:
            raise EngineError(f"the engine at {self.address} took the archive of {name} and made no image of it")

    def extend(self, image: str, command: list[str], name: str, label: str, seconds: float) -> None:
        """Runs a command in a container of that image, without a network, and makes an image of what it left.

        Raises:
            EngineError: the command failed; its last words are in the message.
        """
        repository, _, tag = name.rpartition(":")
        with self._calls() as client:
            container = client.containers.create(image, command, network_mode="none", labels=owned("build"), user="0:0")
            try:
                container.start()
                status = container.wait(timeout=seconds)["StatusCode"]
                if status:
                    words = container.logs(tail=5).decode("utf-8", "replace").strip()
                    raise EngineError(f"{command[0]} in a container of {image} ended with status {status}: {words}")
                # The labels of the container must not stay in the image: what others start from it is not ours.
                changes = [f"LABEL {label}", f'LABEL {POOL_LABEL}=""', f'LABEL {OWNER_LABEL}=""']
                container.commit(repository, tag, changes=changes)
            finally:
                container.remove(force=True)

    def start(
        self,
        name: str,
        image: str,
        command: list[str],
        mounts: Mapping[str, str],
        labels: Mapping[str, str],
        shape: Shape,
    ) -> None:
        """Starts a container that removes itself when it ends. `mounts`: a path inside, with `:ro` or not, to a folder here.

        Raises:
            EngineError: no such image here, or the engine refuses.
        """
        from docker.errors import ImageNotFound
        from docker.types import Mount, Ulimit

        bound = [
            Mount(inside.removesuffix(":ro"), folder, type="bind", read_only=inside.endswith(":ro"))
            for inside, folder in mounts.items()
        ]
        with self._calls() as client:
            try:
                container = client.containers.create(
                    image,
                    command,
                    name=name,
                    mounts=bound,
                    labels=dict(labels),
                    ulimits=[Ulimit(name="core", soft=0, hard=0)],
                    auto_remove=True,
                    **shape.options,
                )
            except ImageNotFound:
                raise missing_image(image) from None
            container.start()

    def containers(self, label: str) -> list[Container]:
        """All containers with that label, running or not."""
        with self._calls() as client:
            found = client.api.containers(all=True, filters={"label": label})
        return [
            Container(one["Names"][0].lstrip("/"), dict(one.get("Labels") or {}), one.get("State") == "running")
            for one in found
            if one.get("Names")
        ]

    def is_running(self, name: str) -> bool:
        """Whether a container of that name runs."""
        from docker.errors import NotFound

        with self._calls() as client:
            try:
                return bool(client.api.inspect_container(name)["State"]["Running"])
            except NotFound:
                return False

    def remove(self, name: str) -> None:
        """Ends and removes a container; a missing one, or one that is just being removed, is fine."""
        from docker.errors import APIError, NotFound

        with self._calls() as client:
            try:
                client.api.remove_container(name, v=True, force=True)
            except NotFound:
                return
            except APIError as error:
                if error.status_code != 409:  # its removal is already under way
                    raise

    @contextmanager
    def _calls(self) -> Iterator[Any]:
        """The client; whatever the SDK raises becomes an `EngineError`."""
        try:
            import docker
            import requests
        except ImportError as error:
            raise EngineError(
                f"the docker SDK is missing ({error}); pip install 'cascade-rl[sandbox]' brings it"
            ) from error
        try:
            _knock(self.address)
            yield self._client(docker)
        except SandboxError:
            raise
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise EngineError(f"the engine at {self.address}: {_reason(error)}") from error

    def _client(self, docker: Any) -> Any:
        with self._lock:
            if self._made is None:
                address = self.address
                if not address:
                    raise EngineError(
                        "no Docker or podman engine was found on this machine; cascade sandbox doctor says how to get one"
                    )
                if address == os.environ.get("DOCKER_HOST"):  # with the certificates that go with it
                    self._made = docker.from_env(version="auto", timeout=self._seconds)
                else:
                    self._made = docker.DockerClient(base_url=address, version="auto", timeout=self._seconds)
            return self._made


def missing_image(name: str) -> EngineError:
    """The error of an image that is not there; none is ever pulled."""
    return EngineError(f"the image {name} is missing here, and is never pulled; cascade sandbox build makes it")


def _knock(address: str) -> None:
    """Raises `OSError` where nobody listens: the SDK would leave a socket open, and say less."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(address.removeprefix("unix://"))


def _reason(error: BaseException) -> str:
    """One line of what the SDK says, with what can be done about it."""
    text = " ".join(str(error).split())
    if "Permission denied" in text or "PermissionError" in text:
        return (
            f"permission denied; become a member of the group that owns its socket, or start a rootless engine ({text})"
        )
    if "Connection refused" in text or "FileNotFoundError" in text or "No such file" in text:
        return f"nothing answers; is it running? ({text})"
    return text or type(error).__name__
