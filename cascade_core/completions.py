"""Sampled responses on disk, as they arrive: an append-only JSONL file that a killed command goes on with.

One file per benchmark. Beside it a small `*.lock.json` says what it was begun with (model, sampling, tasks); going on
with something else is refused. A last line that was cut short is dropped. Only responses are kept: a request that
failed leaves no line, and so is made again by the next command. Verdicts are not here.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cascade_core.errors import RunChanged, RunLocked
from cascade_core.rows import Row, dump, write_json

Key = tuple[str, int]
"""A task's id and the number of the sample."""


class Completions:
    """The responses of one benchmark; made by `opened`.

    Attributes:
        found: what is there, by task and sample.
    """

    def __init__(self, path: Path, file: BinaryIO, found: dict[Key, Row]) -> None:
        self.path = path
        self.found = found
        self._file = file

    def missing(self, tasks: Iterable[Mapping[str, Any]], samples: int) -> list[Key]:
        """What is still to be sampled, in the order of the tasks."""
        wanted = ((row["id"], sample) for row in tasks for sample in range(samples))
        return [key for key in wanted if key not in self.found]

    def add(self, key: Key, row: Row) -> None:
        """Keeps one response; on disk when this returns, as far as a killed process is concerned."""
        kept = {"id": key[0], "sample": key[1], **row}
        self._file.write((dump(kept) + "\n").encode("ascii"))
        self._file.flush()
        self.found[key] = kept


@contextmanager
def opened(path: Path, pins: Mapping[str, Any]) -> Iterator[Completions]:
    """The file at `path`, held by this process alone; `pins` is what its responses depend on.

    Raises:
        RunChanged: the file was begun with other pins, or holds lines that are not its own.
        RunLocked: another process is writing it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            raise RunLocked(f"another process is writing {path}") from cause
        found = _read(path, file)
        _check(path, json.loads(json.dumps(pins)), bool(found))
        yield Completions(path, file, found)


def _read(path: Path, file: BinaryIO) -> dict[Key, Row]:
    """The whole lines; what follows the last of them is cut off."""
    found: dict[Key, Row] = {}
    end = number = 0
    file.seek(0)
    while (line := file.readline()).endswith(b"\n"):
        number += 1
        try:
            row = json.loads(line)
            key, text = (row["id"], row["sample"]), row["response"]
            if not (isinstance(key[0], str) and isinstance(key[1], int) and isinstance(text, str)):
                raise TypeError("a field of a wrong type")
        except (ValueError, KeyError, TypeError) as cause:
            raise RunChanged(f"{path}:{number} is no completion; remove {path} or name another output") from cause
        found[key] = row
        end = file.tell()
    file.truncate(end)
    file.seek(end)
    return found


def _check(path: Path, pins: dict[str, Any], begun: bool) -> None:
    """Compares the pins with those that the file was begun with; writes them where there is nothing yet."""
    sidecar = path.with_suffix(".lock.json")
    if not begun:
        write_json(sidecar, pins)
        return
    try:
        before = json.loads(sidecar.read_text(encoding="utf-8"))
        changed = [name for name in {**before, **pins} if before.get(name) != pins.get(name)]
    except (OSError, ValueError, TypeError, AttributeError) as cause:
        raise RunChanged(f"{sidecar} is missing or damaged; remove {path} to begin again") from cause
    if changed:
        told = "; ".join(f"{name} {_short(before.get(name))}, now {_short(pins.get(name))}" for name in changed)
        raise RunChanged(f"{path} was begun with {told}; use the same again, or name another output")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
