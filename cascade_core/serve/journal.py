"""`service.jsonl` of a stage: what the service of the stage must know when it is started again.

Lines are appended and handed to the kernel at once, so that a killed process loses none; a line that was cut short is dropped. It
does not survive a machine that loses power: then the trainer goes on from a checkpoint, which is a new attempt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from cascade_core.errors import RunError
from cascade_core.rows import Row, dump, read


class Journal:
    """The visits and finished steps of one attempt at a stage.

    Args:
        folder: the stage's.
        attempt: a name for the job that samples; the same when only the service is started again.
        start: the first step that the job does.

    Raises:
        RunError: the same attempt began at another step, or the file is damaged.
    """

    def __init__(self, folder: Path, attempt: str, start: int) -> None:
        self.attempt, self.start = attempt, start
        self.groups: dict[str, tuple[int, int]] = {}
        """Step and slot of each group that asked."""
        self.finished: dict[int, Mapping[str, float]] = {}
        """Steps whose file is written, with their metrics."""
        self.stopped = ""
        """Why the attempt was stopped; a service that is started again does not go on then."""
        self._visits: dict[int, int] = {}
        self._folder, self._path = folder, folder / "service.jsonl"
        self._file = self._opened()

    def _opened(self) -> FileIO:
        self._folder.mkdir(parents=True, exist_ok=True)
        whole = self._path.read_bytes() if self._path.exists() else b""
        end = whole.rfind(b"\n") + 1
        lines = [self._parsed(line) for line in whole[:end].splitlines()]
        if lines and lines[0].get("attempt") == self.attempt:
            if lines[0].get("start") != self.start:
                raise RunError(
                    f"{self._path}: attempt {self.attempt!r} began at step {lines[0].get('start')}, not at {self.start}"
                )
            for line in lines[1:]:
                self._replay(line)
            self._adopt()
            os.truncate(self._path, end)
            return self._path.open("ab", buffering=0)
        for path in (self._folder / "rollouts").glob("step-*.jsonl"):
            if int(path.stem.partition("-")[2]) >= self.start:
                path.unlink()
        self._path.write_bytes(b"")
        file = self._path.open("ab", buffering=0)
        self._write(file, {"attempt": self.attempt, "start": self.start})
        return file

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RunError(f"{self._path} is damaged; remove it, and start the stage's job anew")
        return found

    def _replay(self, line: Mapping[str, Any]) -> None:
        if "group" in line:
            self._count(line["group"], line["step"], line["slot"])
        elif "stopped" in line:
            self.stopped = line["stopped"]
        elif "metrics" in line:
            self.finished[line["step"]] = line["metrics"]

    def _adopt(self) -> None:
        """A step whose file was written just before a kill is finished too; its metrics are lost."""
        for path in (self._folder / "rollouts").glob("step-*.jsonl"):
            step = int(path.stem.partition("-")[2])
            if step >= self.start:
                self.finished.setdefault(step, {})

    def _count(self, group: str, step: int, slot: int) -> None:
        self.groups[group] = (step, slot)
        self._visits[slot] = self._visits.get(slot, 0) + 1

    def _write(self, file: FileIO, line: Mapping[str, Any]) -> None:
        """Appends the whole line or nothing, so that the file never says more than the memory."""
        end = file.seek(0, os.SEEK_END)
        rest = dump(line).encode("ascii") + b"\n"
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(end)
            raise

    def next_step(self, slot: int) -> int:
        """The step of the slot's next visit."""
        return self.start + self._visits.get(slot, 0)

    def visit(self, group: str, step: int, slot: int) -> tuple[int, int]:
        """A group visits a slot."""
        self._write(self._file, {"group": group, "step": step, "slot": slot})
        self._count(group, step, slot)
        return step, slot

    def finish(self, step: int, metrics: Mapping[str, float]) -> None:
        """A step's file is written."""
        self.finished[step] = dict(metrics)
        self._write(self._file, {"step": step, "metrics": dict(metrics)})

    def stop(self, why: str) -> None:
        """The attempt is over."""
        self.stopped = why
        with suppress(OSError, ValueError):  # a full disk may be the reason; closed: the service is ending
            self._write(self._file, {"stopped": why})

    def rows(self, step: int) -> list[Row]:
        """The judged rows of a finished step."""
        return list(read(self._folder / "rollouts" / f"step-{step:05d}.jsonl"))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
