"""Whose a container or a folder is: `Owner`, the process that made it, told apart from any later process of the same number.

A process is its number, the time it started, the boot and the namespace of process numbers. What this machine cannot judge, such
as an owner of another user, in another namespace or on another machine that uses the same engine, counts as alive: it is never cleaned up.

Linux only: it reads /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

POOL_LABEL = "io.cascade-rl.sandbox"
"""The label of every container: the pool that it belongs to."""

OWNER_LABEL = "io.cascade-rl.sandbox.owner"
"""The label that says whose it is: `Owner.text`."""

IMAGE_LABEL = "io.cascade-rl.sandbox.image"
"""The label of every image: `python` or `cpp`."""

FOLDER_PREFIX = "cascade-sandbox-"
"""How the names of our temporary folders begin."""

OWNER_FILE = "owner"
"""The file in each of them that has `Owner.text`."""


@dataclass(frozen=True)
class Owner:
    """A process, as told by its user, number, start time in clock ticks, boot, namespace of process numbers, and host name."""

    uid: int
    pid: int
    start: int
    boot: str
    namespace: str
    host: str

    @property
    def text(self) -> str:
        """JSON, for a label."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def is_gone(self) -> bool:
        """Whether this process has certainly ended."""
        here = owner()
        if here.uid not in (0, self.uid):
            return False  # /proc may hide the processes of others
        if self.boot != here.boot:
            return self.host == here.host  # this machine has been started anew since then
        return self.namespace == here.namespace and _start(self.pid) != self.start


def owner() -> Owner:
    """This process."""
    pid = os.getpid()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink().name
    return Owner(os.geteuid(), pid, _start(pid) or 0, boot, namespace, socket.gethostname())


def new_folder() -> Path:
    """A folder of this process for this user alone; in /tmp where the usual place has too long a path for sockets."""
    base = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=base if len(base) < 40 else "/tmp"))
    (folder / OWNER_FILE).write_text(owner().text)
    return folder


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, removed in the end."""
    folder = new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def labels(pool: str) -> dict[str, str]:
    """The labels of a container of this process."""
    return {POOL_LABEL: pool, OWNER_LABEL: owner().text}


def read_owner(text: str) -> Owner | None:
    """The owner that `Owner.text` tells of; None for anything else."""
    try:
        fields = json.loads(text)
        found = Owner(**fields)
    except (ValueError, TypeError):
        return None
    kinds = {"uid": int, "pid": int, "start": int, "boot": str, "namespace": str, "host": str}
    return found if all(type(getattr(found, name)) is kind for name, kind in kinds.items()) else None


def _start(pid: int) -> int | None:
    """When that process started, in clock ticks since the boot; None where there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
