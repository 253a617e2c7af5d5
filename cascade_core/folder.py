"""The run folder: where everything lies, who may write, and whether a checkpoint is what it was.

    runs/<name>/ spec.yaml  lock.json  events.jsonl  report.html
      stages/01-if/ stage.json prompts.jsonl train.log rollouts/ checkpoint/ eval/<domain>/<benchmark>.jsonl metrics.json

`metrics.json` is written last: a stage is finished when it exists. Files are written under another name and renamed, so
that a kill leaves a file whole or absent.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade_core.errors import CheckpointError, RunError, RunLocked

START = "start"


class StageFolder:
    """One stage's folder, `stages/<index>-<name>`."""

    def __init__(self, run: Path, index: int, name: str) -> None:
        self.path = run / "stages" / f"{index:02d}-{name}"
        self.id, self.name = self.path.name, name
        self.prompts = self.path / "prompts.jsonl"
        self.record = self.path / "stage.json"
        self.checkpoint = self.path / "checkpoint"
        self.metrics = self.path / "metrics.json"

    @property
    def is_finished(self) -> bool:
        """Whether the stage needs no more work."""
        return self.metrics.exists()

    def eval_file(self, benchmark: str) -> Path:
        """Where the rows of `domain/benchmark` lie."""
        return self.path / "eval" / f"{benchmark}.jsonl"

    def read_metrics(self) -> dict[str, Any]:
        """The finished stage's `metrics.json`."""
        return load_json(self.metrics)


def load_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        RunError: the file is no JSON object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as cause:
        raise RunError(f"{path} is damaged: {cause}; remove it to have it made again") from cause
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: expected a JSON object, found {type(value).__name__}")
    return value


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the run folder for this process; the lock goes with the process, however that ends.

    Raises:
        RunLocked: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked(
                f"{folder} is being worked on by another cascade run; wait for it, or name another --folder"
            ) from None
        yield


# How libraries that write weights tell of a full disk: safetensors and torch raise no OSError.
FULL = ("os error 28", "os error 122", "os error 27", "No space left on device", "file write failed")


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turns "no space left" into a refusal that says what to do; what was written stays whole."""
    try:
        yield
    except Exception as cause:
        if not _is_full(cause):
            raise
        raise RunError(
            f"no space left to write in {folder}; free some and give the same command again: finished work is kept"
        ) from cause


def _is_full(error: BaseException | None) -> bool:
    """Whether the error, or one that it came from, is a write that the disk had no room for."""
    if error is None:
        return False
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    return any(sign in str(error) for sign in FULL) or _is_full(error.__cause__ or error.__context__)


def need_space(folder: Path, checkpoint: Path) -> None:
    """Refuses to start a stage that the disk cannot hold: a checkpoint, two inside the stage with optimizer state.

    Raises:
        RunError: names what is free and what is needed.
    """
    weights = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    needed = 8 * weights + (
        32 << 20
    )  # AdamW keeps two moments: a checkpoint inside the stage is three times the weights
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RunError(
            f"{folder}: {free >> 20} MiB are free and the next stage may need {needed >> 20} MiB; free some disk and give the same command again"
        )


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(folder)}\0{file_hash(file)}\n".encode())
    return digest.hexdigest()


def model_fingerprint(folder: Path) -> str:
    """SHA-256 over the files of a model that somebody else made: those right in the folder, hidden ones left out."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")):
        digest.update(f"{file.name}\0{file_hash(file)}\n".encode())
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def check_checkpoint(stage: StageFolder) -> Path:
    """The checkpoint of a finished stage, after making sure that it is the one that was evaluated.

    Raises:
        CheckpointError: it is missing, or its contents changed.
    """
    if not stage.checkpoint.is_dir():
        raise CheckpointError(
            f"{stage.checkpoint} is missing, and the next stage starts from it; restore it, or remove {stage.path} to train the stage again"
        )
    found, recorded = fingerprint(stage.checkpoint), stage.read_metrics().get("checkpoint")
    if found != recorded:
        raise CheckpointError(
            f"{stage.checkpoint} is damaged: its fingerprint is {found[:12]}, and {stage.metrics.name} recorded {str(recorded)[:12]}; "
            f"restore it, or remove {stage.path} to train the stage again"
        )
    return stage.checkpoint
