"""`Faulty` does what the response says; the others are wrong in one way each."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from cascade_core import BatchStats, Domain, Group, Response, Score, Task
from cascade_core.errors import TaskError


def _spin() -> None:
    while True:
        pass


def _deaf() -> None:
    """Spins, refusing every polite way to end it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        with contextlib.suppress(BaseException):
            _spin()


def _hoard() -> None:
    kept = []
    while True:
        kept.append(bytearray(16 * 2**20))


def _noise() -> Score:
    print("garbage " * 2000, "\x00\xff\ud800", flush=True)
    print("more of it\n" * 3000, file=sys.stderr, flush=True)
    os.write(1, b'\x6b{"value": 1.0}' * 5000)
    return Score(1.0)


def _orphan() -> None:
    """Leaves a child behind and dies."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "cascade-orphan"])
    os._exit(3)


def _thread() -> Score:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return Score(1.0)


def _speak() -> None:
    os.write(2, b"something before\nGNU MP: Cannot allocate memory\n")
    os.abort()


_LEAKED: list[bytearray] = []


def _leak() -> Score:
    _LEAKED.append(bytearray(24 * 2**20))
    return Score(1.0)


def _raise(error: BaseException) -> Callable[[], Score]:
    def action() -> Score:
        raise error

    return action


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


ACTIONS: dict[str, Callable[[], Any]] = {
    "abort": lambda: os.kill(os.getpid(), signal.SIGABRT),
    "bool": lambda: True,
    "close": lambda: os.closerange(3, 256) or time.sleep(600),
    "deaf": _deaf,
    "exit": lambda: os._exit(0),
    "float": lambda: 1.0,
    "hang": lambda: time.sleep(600),
    "huge": lambda: Score(1.0, reward=1e200),
    "interrupt": _raise(KeyboardInterrupt()),
    "leak": _leak,
    "memory": _hoard,
    "nan": lambda: Score(float("nan")),
    "noise": _noise,
    "none": lambda: None,
    "note": lambda: Score(1.0, note=7),  # type: ignore[arg-type]
    "orphan": _orphan,
    "power": lambda: Score(float(9 ** (9**9) > 0)),
    "raise": _raise(ValueError("no verdict\nsecond line")),
    "recursion": lambda: ACTIONS["recursion"](),
    "segfault": lambda: ctypes.string_at(0),
    "shown": lambda: Score(1.0, reward=2.5, note="good", metrics={"parts": 3}),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "speak": _speak,
    "spin": _spin,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "systemexit": _raise(SystemExit(0)),
    "task": _raise(TaskError("label '?' does not parse")),
    "thread": _thread,
    "unprintable": _raise(_Unprintable()),
}


@dataclass
class Faulty(Domain):
    """`right`, `wrong`, `sleep S`, `until FILE` (waits for it), `burn S`, `once ACTION` (only at the first try), or one of `ACTIONS`.

    Args:
        log: a file to which every call appends one line: process id, event, task id.
    """

    name: ClassVar[str] = "faulty"
    log: str = ""

    def open(self, resources):
        self._note(f"open {','.join(sorted(resources))}")

    def close(self):
        self._note("close")

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        return [Task(f"{split}-{i}", f"{split} question {i}", "right") for i in range(8)]

    def reference(self, task: Task) -> str:
        return "right"

    def score(self, task: Task, response: Response) -> Score:
        self._note(f"score {task.id}")
        word, _, rest = response.text.partition(" ")
        if word == "once":
            return self._act("right" if self._seen(task.id) else rest)
        return self._act(response.text)

    def _act(self, text: str) -> Any:
        word, _, rest = text.partition(" ")
        if word == "sleep":
            time.sleep(float(rest))
        elif word == "until":
            while not Path(rest).exists():
                time.sleep(0.01)
        elif word == "burn":
            end = time.process_time() + float(rest)
            while time.process_time() < end:
                pass
        elif word in ACTIONS:
            return ACTIONS[word]()
        return Score(float(word in ("right", "sleep", "until", "burn")))

    def _seen(self, key: str) -> bool:
        lines = Path(self.log).read_text().splitlines()
        return sum(line.endswith(f"score {key}") for line in lines) > 1

    def _note(self, event: str) -> None:
        if self.log:
            with Path(self.log).open("a") as out:
                out.write(f"{os.getpid()} {event}\n")


@dataclass
class Grouped(Faulty):
    """Rewards that need the group; what is wrong with them is the option `fault`."""

    name: ClassVar[str] = "grouped"
    fault: str = ""

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        self._note(f"rewards {group.task.id}")
        count = len(group.scores)
        faults = {
            "short": lambda: [0.0] * (count - 1),
            "nan": lambda: [float("nan")] * count,
            "bool": lambda: [True] * count,
            "scalar": lambda: 1.0,
            "none": lambda: [None] * count,
        }
        if self.fault in faults:
            return faults[self.fault]()
        if self.fault:
            ACTIONS[self.fault]()
        return [score.trained * count for score in group.scores]


@dataclass
class Batchwise(Faulty):
    """The batch minimum - 10 for a response that says `wrong`: the shape of the code-switch penalty of RLHF."""

    name: ClassVar[str] = "batchwise"
    needs_batch: ClassVar[bool] = True

    def rewards(self, group: Group, batch: BatchStats) -> Sequence[float]:
        pairs = zip(group.responses, group.scores, strict=True)
        return [batch.min - 10 if response.text == "wrong" else score.trained for response, score in pairs]


@dataclass
class Shut(Faulty):
    """Cannot be opened; `how` is one of `ACTIONS`."""

    name: ClassVar[str] = "shut"
    how: str = "raise"

    def open(self, resources):
        super().open(resources)
        ACTIONS[self.how]()


@dataclass
class Stillborn(Faulty):
    """Its constructor fails."""

    name: ClassVar[str] = "stillborn"

    def __post_init__(self):
        raise ValueError("needs a file that is not there")
