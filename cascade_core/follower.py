"""The process of one tracker: follows `events.jsonl` as it grows, and hands what is new to the tracker.

The file is the queue. While a tracker is busy, or its service is away, events wait on the disk; the run never waits, and
what is held in memory is one batch. The process ends when the run tells it to (or is gone), after the last event; a
tracker that is not done by then has `finish_seconds`, whatever it is doing.

Standard input brings one line, at the end: the run's status. Standard output carries `State` lines and nothing else: what
the tracker prints goes to its log, with the secrets of its options blotted out. `tracking.py` is the other end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from cascade_core.errors import CascadeError
from cascade_core.secret import secrets
from cascade_core.tracker import RunInfo, Tracker

BATCH = 100
POLL_SECONDS = 0.25
_LOG = 1 << 20  # bytes of log that one process writes


@dataclass
class State:
    """How far the tracker is: events handed over, events that it raised at, the first thing that went wrong."""

    told: int = 0
    lost: int = 0
    problem: str = ""
    is_done: bool = False

    def line(self) -> bytes:
        """The state as one line of JSON, at most 4096 bytes: a pipe takes it whole or not at all."""
        whole = {**asdict(self), "problem": self.problem[:300]}
        return json.dumps(whole).encode() + b"\n"


class Log(io.TextIOBase):
    """What a tracker prints: appended to a file that is made when there is something to write."""

    def __init__(self, path: Path, hidden: Iterable[str]) -> None:
        self._path, self._left = path, _LOG
        # The longest first: one secret may be part of another.
        self._hidden = sorted({form for text in hidden for form in _forms(text)}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._hidden:
            text = text.replace(secret, "***")
        return text

    def write(self, text: str) -> int:
        part = self.clean(text)[: self._left]
        self._left -= len(part)
        with contextlib.suppress(OSError):
            if part:
                with self._path.open("a", encoding="utf-8", errors="backslashreplace") as out:
                    out.write(part)
        return len(text)

    def writable(self) -> bool:
        return True


def _forms(secret: str) -> set[str]:
    """A secret as it may be printed: as it is, quoted by `repr` or JSON, and as a part of a URL."""
    from urllib.parse import quote, quote_plus

    return {
        secret,
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
    }


def main(told: Mapping[str, Any]) -> None:
    """The whole life of the process; `told` is what `tracking.py` says."""
    with contextlib.suppress(OSError):
        os.nice(5)  # on a machine with few cores, training goes first
    status, out = os.fdopen(os.dup(0)), os.dup(1)
    os.set_blocking(out, False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what the tracker starts inherits neither end of the run's pipes
        os.dup2(nothing, standard)
    Follower(told, status, out).run()


class Follower:
    """Tells one tracker."""

    def __init__(self, told: Mapping[str, Any], status: TextIO, out: int) -> None:
        self._told, self._status_of_run, self._out = told, status, out
        self._folder = Path(told["run"]["folder"])
        self._state = State()
        self._status = ""
        self._end = threading.Event()
        self._seconds = float(told["finish_seconds"])
        self._log = self._open_log(())

    def run(self) -> None:
        """Builds the tracker, tells it everything, says how it went."""
        threading.Thread(target=self._watch, daemon=True).start()
        with self._noted("cannot be started"):
            tracker = self._build()
            tracker.start(RunInfo(**{**self._told["run"], "folder": self._folder}))
            self._follow(tracker)
        self._state.is_done = True
        self._tell()

    def _build(self) -> Tracker:
        from cascade_core.plugins import registry

        tracker = registry().build_tracker(self._told["tracker"], self._told["options"])
        self._log = self._open_log(secret.reveal() for secret in secrets(tracker))
        return tracker

    def _open_log(self, hidden: Iterable[str]) -> Log:
        log = Log(self._folder / "tracker.log", hidden)
        sys.stdout = sys.stderr = log
        return log

    def _watch(self) -> None:
        """Waits for the end of the run, then for the end of the tracker's time."""
        self._status = self._status_of_run.readline().strip() or "killed"
        self._end.set()
        time.sleep(self._seconds)
        self._tell()
        os._exit(1)

    def _follow(self, tracker: Tracker) -> None:
        with Path(self._told["events"]).open("rb") as file:
            is_last = False
            while True:
                batch = list(_lines(file))
                if batch:
                    with self._noted("could not take an event", lost=len(batch)):
                        tracker.events(batch)
                    self._state.told += len(batch)
                    self._tell()
                elif is_last:
                    break
                else:
                    is_last = self._end.wait(POLL_SECONDS)  # and once more: what was written before the end
        with self._noted("could not finish"):
            tracker.finish(self._status)

    @contextlib.contextmanager
    def _noted(self, what: str, lost: int = 0) -> Iterator[None]:
        """Whatever a stranger's code raises is written down, the first of it also for the run's output."""
        try:
            yield
        except BaseException as cause:  # noqa: BLE001 - SystemExit and worse: noted, as everything that a tracker does
            first = next(iter(str(cause).strip().splitlines()), "")
            name = "" if isinstance(cause, CascadeError) else f"{type(cause).__name__}: "
            self._state.problem = self._state.problem or self._log.clean(f"{what}: {name}{first}")
            self._state.lost += lost
            self._log.write("".join(traceback.format_exception(cause)))
            self._tell()

    def _tell(self) -> None:
        with contextlib.suppress(OSError):  # the pipe is full of older states, or the run is gone
            os.write(self._out, self._state.line())


def _lines(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """The next complete events, at most a batch; of a line that is being written, nothing yet."""
    for _ in range(BATCH):
        begin = file.tell()
        line = file.readline()
        if not line.endswith(b"\n"):
            file.seek(begin)
            return
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                yield event
