"""One process with vLLM, from its start to its end: requests out, answers in, nothing left of it afterwards.

    with Session(vllm, arguments, folder, log) as session:
        session.ask({"key": …, "tokens": …, "sampling": …})
        session.finish()
        for answer in session.answers(): ...

They talk by files in `folder` (`program.py` says how), so that whatever vLLM has answered is on disk, whoever is killed: `kept` reads
what an earlier session left. The process runs under the guard that OpenRLHF's jobs have, which ends its engines with it, on this machine or
on a cluster (`launch.py`).
"""

from __future__ import annotations

import json
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cascade_core.errors import TrainerError
from cascade_core.rows import write_json
from cascade_core.trainers.openrlhf_cluster import unbegun
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.vllm_sampling import Vllm
from cascade_core.vllm_sampling.launch import launched
from cascade_core.vllm_sampling.reasons import reason

_LOOK_SECONDS = 0.05
_KEPT_LINES = 4000
_IDLE_SECONDS = 86_400.0  # far more than judging one benchmark takes before the next is asked


class Session:
    """A vLLM process that runs while the body does, and has ended when the body has.

    Args:
        arguments: vLLM's own, for its engine.
        folder: where they talk; `launch.end_earlier` was called for it, and the answers that it holds stay.
        log: where vLLM's output is appended.

    Raises:
        TrainerError: there is no such interpreter.
    """

    def __init__(self, vllm: Vllm, arguments: Mapping[str, Any], folder: Path, log: Path) -> None:
        self._vllm, self._arguments, self._folder, self._log = vllm, dict(arguments), folder, log
        self._recent: deque[str] = deque(maxlen=_KEPT_LINES)
        self._came: deque[dict[str, Any]] = deque()
        self._open = ExitStack()
        self._running: Running | None = None
        self._asked: IO[bytes] | None = None
        self._answers: IO[bytes] | None = None

    def __enter__(self) -> Session:
        if shutil.which(self._vllm.python) is None:
            raise TrainerError(
                f"{self._vllm.python} is no program that can be run; set engine.python to an interpreter"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        asked, answers, job = (self._folder / name for name in ("asked.jsonl", "answers.jsonl", "job.json"))
        told = {"asked": asked, "answers": answers, "beat": self._folder / "beat"}
        files = {name: str(path.absolute()) for name, path in told.items()}
        write_json(job, {"arguments": self._arguments, "idle_seconds": _IDLE_SECONDS, **files})
        self._asked = asked.open("wb")
        self._answers = answers.open("a+b")
        self._answers.truncate(_whole(self._answers))
        self._running = self._open.enter_context(launched(self._vllm, job, self._folder, self._log))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._open.__exit__(kind, cause, trace)
        for file in (self._asked, self._answers):
            if file is not None:
                file.close()

    def ask(self, request: Mapping[str, Any]) -> None:
        """Hands a request over; `answers` waits for nothing that was not handed over."""
        assert self._asked is not None
        self._asked.write(json.dumps(request).encode("ascii") + b"\n")

    def finish(self) -> None:
        """Says that no more requests come: the process ends when it has answered."""
        self.ask({"end": True})
        self.flush()

    def flush(self) -> None:
        """Makes what was asked visible to the process."""
        assert self._asked is not None
        self._asked.flush()

    def answers(self) -> Iterator[dict[str, Any]]:
        """The answers as they come, without end: the caller knows how many it waits for, and another call goes on from there.

        Raises:
            TrainerError: the process ended, or nothing comes of it for `stall_seconds`; says why.
        """
        assert self._running is not None
        self.flush()
        moved, beat = time.monotonic(), self._beat()
        while True:
            status = self._running.poll()
            self._recent.extend(self._running.lines())
            found = bool(self._came) or self._read()
            if found or beat != (now := self._beat()):
                moved = time.monotonic()
                beat = beat if found else now
            if found:
                while self._came:
                    yield self._came.popleft()
                continue
            if status is not None:
                raise TrainerError(self._failed(f"ended with status {status}"))
            if time.monotonic() - moved > self._vllm.stall_seconds:
                self._running.end()
                self._recent.extend(self._running.lines())
                limit = f"{self._vllm.stall_seconds:g} s (engine.stall_seconds)"
                raise TrainerError(self._failed(f"made no progress for {limit} and was ended"))
            time.sleep(_LOOK_SECONDS)

    def _read(self) -> bool:
        """Whether anything came."""
        assert self._answers is not None
        while True:
            before = self._answers.tell()
            line = self._answers.readline()
            if not line.endswith(b"\n"):
                self._answers.seek(before)
                return bool(self._came)
            self._came.append(json.loads(line))

    def _beat(self) -> int:
        try:
            return (self._folder / "beat").stat().st_mtime_ns
        except OSError:
            return 0

    def _failed(self, how: str) -> str:
        why = reason(self._recent, self._vllm.python) or unbegun(self._recent)
        return f"sampling with vLLM {how}" + (f": {why}" if why else "") + f"; see {self._log}"


def kept(folder: Path) -> Iterator[dict[str, Any]]:
    """The answers that an earlier session in `folder` got; a last line that was cut short is none."""
    try:
        with (folder / "answers.jsonl").open("rb") as file:
            yield from (json.loads(line) for line in file if line.endswith(b"\n"))
    except FileNotFoundError:
        return


def _whole(file: IO[bytes]) -> int:
    """Where the last whole line ends; leaves the file there."""
    file.seek(0)
    end = 0
    for line in file:
        end += len(line) if line.endswith(b"\n") else 0
    file.seek(end)
    return end
