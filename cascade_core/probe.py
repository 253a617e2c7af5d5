"""What a domain does on the side: a fresh process imports it, then scores with it, and notes what else it touches.

The process watches Python's audit events. While the module is imported, these are side effects: files that are written, removed
or moved, processes, connections, changed environment variables; and so are a changed working directory, search path,
signal handler or shared random state, threads that stay, printed text, and libraries that take seconds to load. While it
scores, any connection that would leave the machine's own sockets is refused and noted. What C code or a started program
does by itself raises no event and is not seen: this finds mistakes, and is no fence.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cascade_core.domain import Domain, DomainRef
from cascade_core.plugins import registry
from cascade_core.process import ENVIRONMENT
from cascade_core.rows import Row, row_response, row_task
from cascade_core.worker import told

HEAVY = ("datasets", "jax", "tensorflow", "torch", "transformers", "trl", "vllm")
"""Libraries that take seconds to import: not at the import of a plugin's module, which every `cascade` command loads."""

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from cascade_core.probe import main; main()"
_NETWORK = {
    "socket.connect": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyaddr": 0,
    "socket.gethostbyname": 0,
    "socket.sendto": 1,
}  # event to the argument that tells the address
_CHANGES = {
    "os.chmod": "changes the mode of {}",
    "os.link": "links {}",
    "os.mkdir": "makes the folder {}",
    "os.remove": "removes {}",
    "os.rename": "moves {}",
    "os.rmdir": "removes the folder {}",
    "os.symlink": "links {}",
    "os.truncate": "cuts {}",
}
_STARTS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Traces:
    """What was noted: while the module was imported, and what scores wanted of the network."""

    imported: tuple[str, ...]
    scored: tuple[str, ...]


def traces(module: str, ref: DomainRef, resources: dict[str, str], rows: Sequence[Row], seconds: float) -> Traces:
    """Imports `module` and scores the rows in a fresh process.

    Raises:
        ProbeLost: the process ended without an answer, or took longer than `seconds`.
    """
    request = {"module": module, "ref": asdict(ref), "resources": resources, "rows": list(rows)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BOOT, json.dumps(sys.path)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as cause:
        raise ProbeLost(f"importing it and scoring {len(rows)} answers took more than {seconds:g} s") from cause
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProbeLost(f"a fresh process that imports it and scores ended with status {done.returncode}: {last:.200}")
    answer = json.loads(lines[-1])
    return Traces(tuple(answer["imported"]), tuple(answer["scored"]))


class ProbeLost(Exception):
    """The process that was to tell has not."""


def main() -> None:
    """The process's entry: a request on standard input, the answer as the last line of standard output."""
    request, out = json.load(sys.stdin), os.dup(1)
    os.dup2(2, 1)  # what C code prints is no answer
    watch = Watch()
    sys.addaudithook(watch.hear)
    imported = _imported(request["module"], watch)
    domain = registry().build(DomainRef(**request["ref"]))
    domain.open(request["resources"])
    scored = _scored(domain, request["rows"], watch)
    domain.close()
    with os.fdopen(out, "w", encoding="utf-8") as answer:
        answer.write(json.dumps({"imported": imported, "scored": scored}) + "\n")
    os._exit(0)  # a thread that the domain left must not hold the answer back


def _imported(module: str, watch: Watch) -> list[str]:
    before, variables, said = _state(), dict(os.environ), io.StringIO()  # numpy sets a variable and takes it back
    with watch.during("import"), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        importlib.import_module(module)
    after = _state()
    effects = [what for what, value in before.items() if after[what] != value]
    effects += [f"changes the environment variable {name}" for name in sorted(_changed(variables, dict(os.environ)))]
    effects += [f"loads {name}, which takes seconds" for name in HEAVY if name in sys.modules]
    if said.getvalue():
        effects.append(f"prints {said.getvalue().strip()[:80]!r}")
    return [*watch.heard, *effects]


def _changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _state() -> dict[str, Any]:
    """What an import leaves alone, by the sentence that says it did not."""
    return {
        "changes the working directory": Path.cwd(),
        "changes the search path of modules": list(sys.path),
        "changes the shared random numbers": hash(random.getstate()),
        "changes a signal's handler": [signal.getsignal(number) for number in signal.valid_signals()],
        "leaves threads running": {thread.name for thread in threading.enumerate()},
    }


def _scored(domain: Domain, rows: Sequence[Row], watch: Watch) -> list[str]:
    with watch.during("score"), contextlib.redirect_stdout(sys.stderr):
        for row in rows:
            try:
                domain.score(row_task(row), row_response(row))
            except Exception as cause:  # noqa: BLE001 - whether it raises is another check's
                print(told(cause), file=sys.stderr)
    return watch.heard


class Watch:
    """Hears audit events in one of two phases, `import` and `score`."""

    def __init__(self) -> None:
        self._phase = ""
        self._heard: list[str] = []

    @property
    def heard(self) -> list[str]:
        """What the last phase noted, each once."""
        return list(dict.fromkeys(self._heard))

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Notes what happens in the body."""
        self._heard = []
        self._phase = phase
        try:
            yield
        finally:
            self._phase = ""

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook.

        Raises:
            PermissionError: a score wants the network; it is noted even if the domain swallows the error.
        """
        if not self._phase:
            return
        if event in _NETWORK:
            self._network(arguments, _NETWORK[event])
        elif self._phase == "import" and (effect := _effect(event, arguments)):
            self._heard.append(effect)

    def _network(self, arguments: tuple[Any, ...], place: int) -> None:
        if isinstance(arguments[0], socket.socket) and arguments[0].family == socket.AF_UNIX:
            return
        self._heard.append(f"wants the network: {arguments[place]!r:.80}")
        if self._phase == "score":
            raise PermissionError("a score must not need the network")


def _effect(event: str, arguments: tuple[Any, ...]) -> str:
    """What an event of an import says about it, if anything."""
    if event in _CHANGES:
        return _CHANGES[event].format(_path(arguments[0]))
    if event in _STARTS:
        return "starts a process"
    if event != "open" or isinstance(arguments[0], int) or os.fsdecode(arguments[0]) == os.devnull:
        return ""
    return f"writes {_path(arguments[0])}" if arguments[2] & _WRITING else ""


def _path(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else repr(value)
