"""Checkpoints inside a stage: `trainer/checkpoint-<steps>`, written so that a kill at any moment does no harm.

A checkpoint is written under another name, sealed (`complete.json`: name, size and SHA-256 of every file, written last
and flushed) and then renamed. What lacks the seal was never finished and is passed over; what carries the seal and
differs from it was damaged afterwards, and is refused: going on from it silently would change the run. The newest two
are kept. This module loads no torch: what is inside a checkpoint is the trainer's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from cascade_core.errors import CheckpointError
from cascade_core.rows import write_json

SEAL = "complete.json"
KEPT = 2
_NAME = re.compile(r"checkpoint-(\d+)")


def staging(folder: Path) -> Path:
    """An empty folder to write the next checkpoint into, as `checkpoint-<steps>`; `publish` renames it."""
    path = folder / "writing"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def seal(checkpoint: Path) -> None:
    """Flushes every file of the checkpoint to disk and writes the seal, last."""
    files = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file():
            _flush(path)
            files[path.relative_to(checkpoint).as_posix()] = {"bytes": path.stat().st_size, "sha256": _digest(path)}
    write_json(checkpoint / SEAL, files)
    _flush(checkpoint)


def publish(checkpoint: Path, folder: Path) -> Path:
    """Moves a sealed checkpoint to its place under `folder`, and drops all but the newest two."""
    place = folder / checkpoint.name
    shutil.rmtree(place, ignore_errors=True)
    checkpoint.rename(place)
    _flush(folder)
    for _, old in _sealed(folder)[:-KEPT]:
        (old / SEAL).unlink()  # first, so that a kill in the middle leaves nothing that looks whole
        shutil.rmtree(old, ignore_errors=True)
    return place


def newest(folder: Path) -> tuple[int, Path] | None:
    """Steps and path of the newest sealed checkpoint under `folder`, its files looked at; `None` if there is none.

    Raises:
        CheckpointError: a file differs from what the seal says; names the file, and what to remove.
    """
    found = _sealed(folder)
    if not found:
        return None
    _verify(found[-1][1])
    return found[-1]


def steps(folder: Path) -> int:
    """Steps that the newest sealed checkpoint holds, 0 if there is none; its files are not looked at."""
    found = _sealed(folder)
    return found[-1][0] if found else 0


def _sealed(folder: Path) -> list[tuple[int, Path]]:
    """The sealed checkpoints, oldest first."""
    found = []
    for path in folder.glob("checkpoint-*"):
        match = _NAME.fullmatch(path.name)
        if match and (path / SEAL).is_file():
            found.append((int(match[1]), path))
    return sorted(found)


def _verify(checkpoint: Path) -> None:
    for name, told in _read_seal(checkpoint).items():
        path = checkpoint / name
        if not path.is_file() or path.stat().st_size != told["bytes"] or _digest(path) != told["sha256"]:
            state = "differs from what was written" if path.is_file() else "is missing"
            raise CheckpointError(f"{path} {state}; remove {checkpoint} to go on from an earlier point of the stage")


def _read_seal(checkpoint: Path) -> dict[str, Any]:
    try:
        told = json.loads((checkpoint / SEAL).read_text(encoding="utf-8"))
        is_whole = all({"bytes", "sha256"} <= set(entry) for entry in told.values())
    except (ValueError, AttributeError, TypeError) as cause:
        raise _unreadable(checkpoint) from cause
    if not is_whole:
        raise _unreadable(checkpoint)
    return dict(told)


def _unreadable(checkpoint: Path) -> CheckpointError:
    return CheckpointError(
        f"{checkpoint / SEAL} is damaged; remove {checkpoint} to go on from an earlier point of the stage"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(folder: Path) -> None:
    """Sees to it that all of the folder is on the disk."""
    for path in [*folder.rglob("*"), folder]:
        _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
