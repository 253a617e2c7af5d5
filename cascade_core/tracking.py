"""The trackers of a run, seen from the run: starts a process for each, hears how it goes, never waits for it but at the end.

A tracker that fails, hangs, dies or cannot be started costs a line of the run's output, and nothing else: no method here raises
because of one. At the end all of them have their `finish_seconds` at the same time; who is not done then is killed, and
what it was not told is counted. What runs in the processes is `follower.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from cascade_core.errors import SpecError
from cascade_core.events import Events
from cascade_core.follower import State
from cascade_core.secret import secrets
from cascade_core.settings import Spec
from cascade_core.tracker import Tracker

_BOOT = """
import json, os, sys
told = json.load(os.fdopen(int(sys.argv[1])))
sys.path[:] = told["path"]
from cascade_core.follower import main
main(told)
"""
LONGEST_FINISH = 600.0  # seconds, whatever a tracker asks for
_TOLERANCE = 2.0  # seconds for a process that ends by itself at its limit to be gone

Say = Callable[[str], None]


def check_secrets(trackers: Mapping[str, Tracker]) -> None:
    """Refuses a run whose trackers' secrets are not where the spec says; afterwards a tracker only looks them up itself.

    Raises:
        SpecError: names the tracker and the variable or file.
    """
    for name, tracker in trackers.items():
        for secret in secrets(tracker):
            try:
                secret.reveal()
            except SpecError as cause:
                raise SpecError(f"tracker {name!r}: {cause}") from None


def run_id(folder: Path, begun: float) -> str:
    """What tells this run from all others, the same after a kill: of its lock and of when it was begun."""
    lock = (folder / "lock.json").read_bytes()
    return hashlib.sha256(lock + json.dumps(begun).encode()).hexdigest()[:16]


class Tracking:
    """Trackers beside a run: `told` is the whole of it.

    Args:
        trackers: as built from the spec; `spec` holds their options.
        folder: the run's folder; `say` takes a line for the run's output.
    """

    def __init__(self, trackers: Mapping[str, Tracker], spec: Spec, folder: Path, say: Say) -> None:
        self._trackers, self._spec, self._folder, self._say = trackers, spec, folder, say
        self._processes: list[_Process] = []

    def start(self, begun: float) -> None:
        """Starts a process for every tracker; `begun` is the `time` of the run's first event."""
        for name, tracker in self._trackers.items():
            try:
                self._processes.append(_Process(name, tracker, self._told(name, begun)))
            except OSError as cause:
                self._say(
                    f"tracker {name!r} could not be started: {cause.strerror or cause}; the run goes on without it"
                )

    def _told(self, name: str, begun: float) -> dict[str, Any]:
        folder = (self._folder / "trackers" / name).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        run = {
            "id": run_id(self._folder, begun),
            "name": self._spec.name,
            "folder": str(folder),
            "stages": {stage.name: stage.steps for stage in self._spec.stages},
            "spec": self._spec.model_dump(mode="json", exclude={"trackers"}),
        }
        events = str((self._folder / "events.jsonl").absolute())
        return {"tracker": name, "options": self._spec.trackers[name], "run": run, "events": events, "path": sys.path}

    @contextlib.contextmanager
    def told(self, events: Events) -> Iterator[None]:
        """The trackers are told of what happens inside, and how it ended."""
        if not self._trackers:
            yield
            return
        self.start(events.read()[0]["time"])
        status = "failed"
        try:
            yield
            status = "finished"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            self.finish(status, len(events.read()))

    def tell(self) -> None:
        """Says what went wrong since, each tracker's first trouble once; waits for nothing."""
        for process in self._processes:
            for line in process.news():
                self._say(line)

    def finish(self, status: str, total: int) -> None:
        """Lets every tracker come to its end, within its time; says what was not delivered of `total` events."""
        for process in self._processes:
            process.end(status)
        for process in self._processes:
            process.wait()
        self.tell()
        for process in self._processes:
            for line in process.summary(total):
                self._say(line)
        self._processes.clear()


class _Process:
    """One tracker's process."""

    def __init__(self, name: str, tracker: Tracker, told: Mapping[str, Any]) -> None:
        self.name = name
        seconds = max(0.0, min(tracker.finish_seconds, LONGEST_FINISH))
        self._seconds = seconds + _TOLERANCE
        self._state, self._rest, self._is_said = State(), b"", False
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:  # a pipe would make the run wait for its reader
            json.dump({**told, "finish_seconds": seconds}, file)
            file.seek(0)
            self._popen = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(file.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(file.fileno(),),
                start_new_session=True,  # a Ctrl-C is the run's, which then ends the tracker in good order
            )
        self._in, self._out = cast("IO[bytes]", self._popen.stdin), cast("IO[bytes]", self._popen.stdout)
        os.set_blocking(self._out.fileno(), False)
        self._deadline = 0.0

    def end(self, status: str) -> None:
        """Tells the process that the run has ended."""
        self._deadline = time.monotonic() + self._seconds
        with contextlib.suppress(OSError):  # it is gone
            os.write(self._in.fileno(), f"{status}\n".encode())

    def wait(self) -> None:
        """Until the process is gone, at the latest until its time is up."""
        while self._popen.poll() is None and time.monotonic() < self._deadline:
            self._hear()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(0.05)
        self._hear()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()

    def _hear(self) -> None:
        """The newest of the states that have come."""
        with contextlib.suppress(OSError):
            while part := os.read(self._out.fileno(), 65_536):
                *lines, self._rest = (self._rest + part).split(b"\n")
                if lines:
                    self._state = State(**json.loads(lines[-1]))

    def news(self) -> Iterable[str]:
        """A line when the first trouble has come."""
        if not self._out.closed:
            self._hear()
        problem = self._state.problem
        if not problem and self._popen.poll() is not None and not self._state.is_done and not self._deadline:
            problem = f"its process ended with status {self._popen.returncode}"
        if problem and not self._is_said:
            self._is_said = True
            yield f"tracker {self.name!r} {problem}; the run goes on without waiting for it"

    def summary(self, total: int) -> Iterable[str]:
        """A line when something was not delivered."""
        missing = total - self._state.told + self._state.lost
        if missing > 0:
            yield f"tracker {self.name!r}: {missing} of {total} events were not delivered"
        elif not self._state.is_done:
            yield f"tracker {self.name!r} was not done {self._seconds - _TOLERANCE:g} s after the end of the run"
