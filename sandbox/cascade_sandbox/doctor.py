"""What the Docker sandbox needs of a machine, and what is missing: `examine`, a list of findings with their remedies.

Each finding is looked at by itself, as far as the ones before it allow; the last one runs a program in a pool of its own, which
shows more than any setting. Nothing is installed, changed or pulled.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade_sandbox import debian, images, rubbish
from cascade_sandbox.contract import Input, Limits, Program
from cascade_sandbox.engine import Engine
from cascade_sandbox.errors import SandboxError

BUILD_BYTES = 2 << 30
"""Room that building both images takes, the archives that are made on the way included."""

_GET_ENGINE = (
    "on Debian and Ubuntu: apt-get install docker.io; elsewhere see docs.docker.com/engine/install; "
    "podman: systemctl --user start podman.socket"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `remedy` is what to do about it; `needed` whether the sandbox cannot work without it."""

    what: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True


def examine(engine: Engine) -> list[Finding]:
    """Everything, in the order in which it should be mended."""
    findings = [_sdk(), _socket(engine)]
    try:
        version, info = engine.version(), engine.info()
    except SandboxError as error:
        return [*findings, Finding("engine", False, str(error), _remedy(engine))]
    findings.append(_engine(engine, version))
    findings += _limits(info)
    findings += [_seccomp(info), _disk(info), *_images(engine), _left(engine)]
    if all(finding.ok for finding in findings if finding.needed):
        findings.append(_trial(engine))
    return findings


def _remedy(engine: Engine) -> str:
    """How to get an engine; where one is named, how to name another."""
    named = os.environ.get("DOCKER_HOST")
    if named == engine.address:
        return f"DOCKER_HOST names {named}: unset it, or name an engine that answers; {_GET_ENGINE}"
    return _GET_ENGINE


def _sdk() -> Finding:
    there = importlib.util.find_spec("docker") is not None
    return Finding("docker SDK", there, "installed" if there else "missing", "pip install 'cascade-rl[sandbox]'")


def _socket(engine: Engine) -> Finding:
    address = engine.address
    if not address.startswith("unix://"):
        told = f"{address}, which is not on this machine" if address else "no DOCKER_HOST and none of the usual sockets"
        return Finding("socket", False, told, "the sockets of containers must be on this machine; " + _GET_ENGINE)
    path = Path(address.removeprefix("unix://"))
    if not path.exists():
        return Finding("socket", False, f"{path} is not there", _GET_ENGINE)
    if os.access(path, os.R_OK | os.W_OK):
        return Finding("socket", True, str(path))
    group = _group(path)
    return Finding("socket", False, f"no right to use {path}", f"sudo usermod -aG {group} $USER, and log in again")


def _group(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError):
        return "docker"


def _engine(engine: Engine, version: dict[str, Any]) -> Finding:
    names = [part.get("Name", "") for part in version.get("Components") or []]
    kind = "podman" if any("podman" in name.lower() for name in names) else "Docker"
    return Finding(
        "engine", True, f"{kind} {version.get('Version')}, API {version.get('ApiVersion')}, at {engine.address}"
    )


def _limits(info: dict[str, Any]) -> Iterator[Finding]:
    """What of the limits of a container this engine can enforce."""
    cgroup = f"version {info.get('CgroupVersion') or 1}, driver {info.get('CgroupDriver')}"
    yield Finding(
        "cgroup", info.get("CgroupDriver") != "none", cgroup, "a rootless engine needs cgroup version 2 and systemd"
    )
    for key, what, needed in (
        ("MemoryLimit", "memory limit", True),
        ("PidsLimit", "limit of processes", True),
        ("SwapLimit", "swap limit", False),
        ("CpuCfsQuota", "CPU limit", True),
    ):
        if not info.get(key):
            remedy = (
                "see docs.docker.com/engine/install/linux-postinstall; the kernel's cgroup controllers are switched off"
            )
            yield Finding(what, False, "the engine cannot enforce it", remedy, needed)


def _seccomp(info: dict[str, Any]) -> Finding:
    options = [str(option) for option in info.get("SecurityOptions") or []]
    there = any("seccomp" in option for option in options) and not any("unconfined" in option for option in options)
    told = "the engine's filter is on; each run has one of its own besides" if there else "the engine applies no filter"
    remedy = "start the engine with its default profile, and a kernel with CONFIG_SECCOMP_FILTER"
    return Finding("seccomp", there, told, remedy, needed=False)


def _disk(info: dict[str, Any]) -> Finding:
    root = Path(str(info.get("DockerRootDir") or "/"))
    place = next((path for path in (root, *root.parents) if os.access(path, os.R_OK)), Path("/"))
    free = shutil.disk_usage(place).free
    told = f"{free / 1e9:.1f} GB free where images lie ({place}), storage driver {info.get('Driver')}"
    return Finding("disk", free > BUILD_BYTES, told, f"building needs {BUILD_BYTES / 1e9:.1f} GB", needed=False)


def _images(engine: Engine) -> Iterator[Finding]:
    there = {kind: engine.image(images.name(kind)) is not None for kind in images.KINDS}
    for kind, found in there.items():
        told = f"{images.name(kind)}{'' if found else ' is not built, or was built by another version'}"
        remedy = f"cascade sandbox build {kind}"
        if kind == "cpp" and not debian.is_available():
            remedy += " --dockerfile (this is neither Debian nor Ubuntu)"
        yield Finding(f"image {kind}", found, told, remedy, needed=not any(there.values()))


def _left(engine: Engine) -> Finding:
    count = len(rubbish.find(engine))
    return Finding("leftovers", not count, f"{count or 'nothing'} left by crashes", "cascade sandbox gc", needed=False)


def _trial(engine: Engine) -> Finding:
    """A program in a pool of one container."""
    from cascade_sandbox.client import docker_sandbox

    try:
        with docker_sandbox(slots=1, engine=engine.address, patience=30) as sandbox:
            result = sandbox.run(Program("print(6 * int(input()))"), [Input(b"7\n")], Limits(cpu_seconds=5))[0]
    except SandboxError as error:
        return Finding("trial run", False, str(error), "see the findings above")
    right = (result.verdict, result.stdout) == ("ok", b"42\n")
    told = (
        "a program ran in a container"
        if right
        else f"a program printed {result.stdout!r} and ended with {result.verdict}"
    )
    return Finding("trial run", right, told, result.stderr)
