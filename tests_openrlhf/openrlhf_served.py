"""The service of a stage as a process at an address that stays: killed once in mid-step and started again; and the grader that says when."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any

import psutil
from openrlhf_stopped import EXTENSION, SLOTS, Grader
from serving import Program

from cascade_core.errors import UsageError
from cascade_core.serve.listen import bound

TOKEN = "that of this test"


class Counting(Grader):
    """Counts what it is asked; one answer of a step is held back until the service that waits for it is gone.

    Args:
        step: the step of which one answer is held back, so that it cannot end.
        nth: the question of that step whose answer it is.
    """

    def __init__(self, step: int, nth: int) -> None:
        super().__init__()
        self.is_mended = True
        self.asked: Counter[tuple[int, str]] = Counter()
        self.held, self.gone = Event(), Event()
        self._step, self._left, self._lock = step, nth, Lock()

    def hear(self, number: int, text: str) -> None:
        with self._lock:
            self.asked[number, text] += 1
            self._left -= number // SLOTS == self._step
            is_it = self._left == 0 and not self.held.is_set()
            if is_it:
                self.held.set()
        if is_it:
            self.gone.wait(300)


class Served:
    """A running `python -m cascade_core.serve.staged`.

    Args:
        settings: its file; the port in it is not 0.
    """

    def __init__(self, settings: Path) -> None:
        self._settings = settings
        self._program = self._started()
        self.url = self._program.served.url

    def _started(self) -> Program:
        path = os.pathsep.join(filter(None, [str(EXTENSION), os.environ.get("PYTHONPATH", "")]))
        words = ("-m", "cascade_core.serve.staged", str(self._settings))
        return Program(*words, CASCADE_SERVE_TOKEN=TOKEN, PYTHONPATH=path)

    def kill(self) -> None:
        """Kills it as the kernel would; nothing of it is left then."""
        workers = psutil.Process(self._program.process.pid).children(recursive=True)
        self._program.process.kill()
        assert self._program.end() == -signal.SIGKILL
        assert workers and psutil.wait_procs(workers, timeout=120)[1] == []

    def again(self) -> None:
        """Starts it again, with the same command."""
        self._program = self._started()
        assert self._program.served.url == self.url

    def stage(self) -> dict[str, Any]:
        """What it says of the stage."""
        status, told = self._program.served.get("/stage", Authorization=f"Bearer {TOKEN}")
        assert status == 200
        return dict(told)

    def end(self) -> None:
        """Ends it as its starter does."""
        self._program.process.terminate()
        assert self._program.end() == 0


def calm_port() -> int:
    """A free port below those that the kernel gives to whoever connects, so that nobody gets it by chance while the service is gone."""
    for port in range(20_000 + os.getpid() % 5_000, 32_768):
        with suppress(UsageError), bound("127.0.0.1", port):
            return port
    raise AssertionError("no port is free")
