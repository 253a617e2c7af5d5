"""The sandbox that a scorer holds: `connect` to one that runs, or `docker_sandbox`, which starts one.

A session leases a container from the keeper (`lease.py`) and talks to it directly (`slot.py`). If the container, its supervisor
or the connection fails, the program is opened once more in another container and the input is run there again (`seat.py`); if that
fails too, it is a `SandboxError`. A result is never made up.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from cascade_sandbox.contract import Dialogue, Limits, Program, Sandbox, Session
from cascade_sandbox.conversation import converse
from cascade_sandbox.errors import SandboxError, UnknownLanguage
from cascade_sandbox.languages import LANGUAGES, Language
from cascade_sandbox.lease import Lines, ask
from cascade_sandbox.seat import DockerSession, Seat, twice

# fmt: off
GUARANTEES = frozenset(
    (
        "cpu", "wall", "memory", "memory-of-all", "output", "pipes",
        "orphans", "forks", "disk", "files", "folders", "program",
        "supervisor", "network", "privileges", "kernel", "ipc", "private",
    )
)
# fmt: on
"""What a program in a container cannot do; `check.PROPERTIES` says what each means."""

_START_SECONDS = 180.0
_END_SECONDS = 30.0


class DockerSandbox(Sandbox):
    """A pool of containers behind the keeper at `address`.

    Args:
        keeper: the keeper's process, if this object is to end it.
        check: whether languages must have passed their self-test; the self-test itself has no choice.
    """

    name: ClassVar[str] = "docker"
    guarantees: ClassVar[frozenset[str]] = GUARANTEES

    def __init__(self, address: str, keeper: subprocess.Popen[bytes] | None = None, *, check: bool = True) -> None:
        self.address = address
        self._lines = Lines(address)
        self._keeper = keeper
        self._check = check
        self._lock = threading.Lock()
        self._offered: set[str] = set()

    def languages(self) -> Sequence[str]:
        """The languages whose self-test passed here."""
        offered = ask(self.address, {"op": "languages"})["offered"]
        return [name for name, trouble in offered.items() if not trouble]

    def status(self) -> dict[str, Any]:
        """What the keeper counts: containers, waiting clients, sessions, runs, and why containers were made anew.

        Raises:
            SandboxError: the keeper is gone.
        """
        answer = ask(self.address, {"op": "status"})
        return {key: value for key, value in answer.items() if key != "op"}

    def open(self, program: Program, limits: Limits = Limits(), *, private: bool = False) -> Session:
        """See `Sandbox.open`."""
        language = self._language(program.language)
        role = "private" if private else "judged"
        again = itertools.chain([False], itertools.repeat(True))
        return DockerSession(lambda: Seat(self._lines, role, program, language, limits, checked=next(again)))

    def converse(self, judged: Program, private: Program, limits: Limits = Limits()) -> Dialogue:
        """See `Sandbox.converse`."""
        languages = self._language(judged.language), self._language(private.language)
        again = itertools.chain([False], itertools.repeat(True))

        def once() -> Dialogue:
            checked = next(again)
            with (
                Seat(self._lines, "judged", judged, languages[0], limits, checked=checked) as left,
                Seat(self._lines, "private", private, languages[1], limits, checked=checked) as right,
            ):
                return converse(left, right)

        return twice(once)

    def _language(self, name: str) -> Language:
        """The language of that name, which passed its self-test here.

        Raises:
            UnknownLanguage: there is none, or it did not.
        """
        if name not in LANGUAGES:
            raise UnknownLanguage(f"there is no language {name!r}, only {', '.join(LANGUAGES)}")
        if self._check and name not in self._offered:
            trouble = ask(self.address, {"op": "languages", "names": [name]})["offered"][name]
            if trouble:
                raise UnknownLanguage(f"language {name!r} is not offered here: {trouble}")
            self._offered.add(name)
        return LANGUAGES[name]

    def close(self) -> None:
        """Ends the keeper if it was started with this object; closing twice is fine."""
        self._lines.close()
        with self._lock:
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            _end(keeper)


def docker_sandbox(
    *,
    slots: int | None = None,
    memory_mb: int = 2048,
    work_mb: int = 512,
    recycle_after: int = 2000,
    image: str = "",
    engine: str = "",
    patience: float = 120.0,
) -> DockerSandbox:
    """Starts a pool of warm containers and a keeper for it; close it, and both are gone.

    Args:
        slots: containers for judged programs, and as many for private ones once those are needed; one for each core by default.
        memory_mb: MiB of memory that all processes of one container have together, 256 or more; it gets no swap.
        work_mb: MiB that the files of all its runs may take at a time, 16 or more; they count as memory too.
        recycle_after: runs after which a container is replaced by a new one.
        image: by default the one with g++ if `cascade sandbox build` made it, else the one with Python alone.
        engine: the engine's address, such as `unix:///var/run/docker.sock`; by default DOCKER_HOST, else the usual sockets.
        patience: seconds that a session waits for a place while no container is alive.

    Raises:
        ValueError: a number is out of range.
        SandboxError: there is no engine, no image, or no container could be started.
    """
    settings = {
        "memory_mb": _at_least("memory_mb", memory_mb, 256),
        "work_mb": _at_least("work_mb", work_mb, 16),
        "recycle_after": _at_least("recycle_after", recycle_after, 1),
        "image": image,
        "engine": engine,
        "patience": patience,
    }
    if slots is not None:
        settings["slots"] = _at_least("slots", slots, 1)
    keeper = _start()
    try:
        told = _first_words(keeper, settings)
        if "address" not in told:
            raise SandboxError(str(told.get("error", "the keeper of the sandbox ended without a word")))
    except BaseException:
        _end(keeper)
        raise
    return DockerSandbox(str(told["address"]), keeper)


def connect(address: str) -> Sandbox:
    """A sandbox that runs already: `unix:/...` is the address of a pool, `process:` is this machine without any container.

    Raises:
        SandboxError: this is no address of a sandbox.
    """
    if address.startswith("unix:/"):
        return DockerSandbox(address)
    if address == "process:":
        from cascade_sandbox.process import ProcessSandbox

        return ProcessSandbox()
    raise SandboxError(f"{address!r} is no address of a sandbox, which is unix:/... or process:")


def _at_least(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, found {value!r}")
    return value


def _start() -> subprocess.Popen[bytes]:
    """The keeper's process, in a session of its own: an interrupt at the terminal is for its parent to handle."""
    home = str(Path(__file__).resolve().parent.parent)
    paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cascade_sandbox.keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )


def _first_words(keeper: subprocess.Popen[bytes], settings: dict[str, Any]) -> dict[str, Any]:
    """What the keeper says once it has started, or has failed to; empty if it ended or said nothing in time."""
    assert keeper.stdin is not None and keeper.stdout is not None  # both are pipes
    with contextlib.suppress(BrokenPipeError):
        keeper.stdin.write(json.dumps(settings).encode() + b"\n")
        keeper.stdin.flush()
    ready, _, _ = select.select([keeper.stdout], [], [], _START_SECONDS)
    if not ready:
        return {"error": f"the keeper of the sandbox did not start within {_START_SECONDS:.0f} seconds"}
    line = keeper.stdout.readline()
    found = json.loads(line) if line.endswith(b"\n") else {}
    return found if isinstance(found, dict) else {}


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Tells the keeper to end and waits for it."""
    if keeper.stdin is not None:
        with contextlib.suppress(OSError):
            keeper.stdin.close()
    try:
        keeper.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
    if keeper.stdout is not None:
        keeper.stdout.close()
