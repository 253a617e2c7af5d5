"""A real supervisor for a test, and a client that speaks its frames by hand.

`here` is the one of the process sandbox. `users` is the one of containers, root with a user for every run, started on this
machine; only root can have it, so that tests of it are made only for root.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade_sandbox.inside import wire

INSIDE = Path(wire.__file__).parent
KINDS = ["here", "users"] if os.geteuid() == 0 else ["here"]
LIMITS = {"cpu_seconds": 2, "wall_seconds": 20, "memory_bytes": 1 << 30, "output_bytes": 1 << 20, "processes": 24}
SHELL = {"file": "main.sh", "compile": None, "run": ["sh", "{source}"]}
PYTHON = {"file": "main.py", "compile": None, "run": [sys.executable, "{source}"]}
COMPILED = {
    "file": "main.txt",
    "compile": ["sh", "-c", 'cp "$0" "$1" && chmod +x "$1" && . "$0" >/dev/null', "{source}", "{program}"],
    "run": ["{program}"],
}
"""A language whose compiler copies the source, and runs it with COMPILING set: quick, and as much in the source's power as g++."""

_FEWER_SECONDS = """
import importlib, sys, types
package = types.ModuleType("inside"); package.__path__ = [sys.argv.pop(1)]; sys.modules["inside"] = package
door = importlib.import_module("inside.door"); door.ABANDONED_SECONDS = 3.0; door.WAIT_SECONDS = 2.0
sys.exit(importlib.import_module("inside.server").main(sys.argv[1:]))
"""


class Supervisor:
    """A running one."""

    def __init__(
        self, kind: str, folder: Path, *, impatient: bool = False, prefix: Sequence[str] = (), left_over: str = ""
    ) -> None:
        self.kind = kind
        self.folder = folder
        self.work = folder / "w"
        self.work.mkdir(mode=0o711)
        self.work.chmod(0o711)
        if left_over:
            (self.work / left_over).parent.mkdir(parents=True)
            (self.work / left_over).touch()
        start = ["-c", _FEWER_SECONDS, str(INSIDE)] if impatient else [str(INSIDE / "supervisor.py")]
        command = [*prefix, sys.executable, "-I", "-S", "-E", *start, f"{folder}/s", str(self.work)]
        self.process = subprocess.Popen(command + ["--here"] * (kind == "here"), stdin=subprocess.PIPE)
        until(lambda: (folder / "s").exists())
        self.keeper = self.connect("k") if kind == "users" else None

    def connect(self, name: str = "s") -> socket.socket:
        """A connection, which the caller closes."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        until(lambda: client.connect_ex(f"{self.folder}/{name}") == 0)
        return client

    def leftovers(self) -> list[str]:
        """What lives of its runs."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [*children, *(str(path) for path in self.work.iterdir())]

    def end(self) -> None:
        """Ends it as its owner would."""
        if self.keeper is not None:
            self.keeper.close()
            self.process.terminate()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@contextmanager
def supervisor(kind: str, **options: Any) -> Iterator[Supervisor]:
    """One for a test. Its folder is under /tmp, where the path of a socket is short enough."""
    with tempfile.TemporaryDirectory(prefix="cascade-test-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # programs must reach their folders below; in a container they lie elsewhere
        running = Supervisor(kind, Path(folder), **options)
        try:
            yield running
        finally:
            running.end()


def until(what: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits for something to become true."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.01)


def ask(client: socket.socket, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> wire.Frame:
    """One request and its answer."""
    wire.send(client, header, blobs)
    return wire.receive(client)


def open_program(
    client: socket.socket,
    source: bytes,
    language: dict[str, Any] = SHELL,
    files: dict[str, bytes] | None = None,
    **limits: Any,
) -> dict[str, Any]:
    """Opens a program; the header of the answer."""
    files = files or {}
    header = {"op": "open", "language": language, "limits": {**LIMITS, **limits}, "files": list(files)}
    return ask(client, header, [source, *files.values()])[0]


def run(
    client: socket.socket, stdin: bytes = b"", args: Sequence[str] = (), files: dict[str, bytes] | None = None
) -> Any:
    """One run: the header of the answer with `stdout` and `stderr` in it."""
    files = files or {}
    header, blobs = ask(client, {"op": "run", "args": list(args), "files": list(files)}, [stdin, *files.values()])
    return {**header, **dict(zip(("stdout", "stderr"), blobs, strict=False))}
