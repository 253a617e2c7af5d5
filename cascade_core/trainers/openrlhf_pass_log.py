"""What `train_sft` and `train_rm` tell of their updates, and why they ended.

They print no line per update, but write their numbers into TensorBoard's files at once, `loss_mean` or (`train_rm`) `acc_mean` as the
last of an update. Every attempt has files of its own, so that what an earlier one did after its last checkpoint is not taken for
progress of this one. The rate that is told is that of the *next* update; here every update gets the one that it used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cascade_core.settings import Optim
from cascade_core.trainers import openrlhf_log

_NAMES = {"loss_mean": "loss", "acc_mean": "accuracy", "grad_norm": "grad_norm", "lr": "next_lr"}
_RANK = re.compile(r"^\[rank\d+\]:\s?")
_LAUNCHER = "torch.distributed.elastic"
_MEMORY = re.compile(
    r"OutOfMemoryError: CUDA|CUDA out of memory|torch\.OutOfMemoryError|CUDA error: out of memory", re.IGNORECASE
)


class Told:
    """The updates that the newest attempt has told of, read on from where the last look ended.

    Args:
        folder: of TensorBoard's files, which need not be there yet.
        last: what the program tells last of an update.
    """

    def __init__(self, folder: Path, last: str) -> None:
        self._folder, self._last = folder, last
        self._events: Any = None
        self._seen: dict[str, int] = {}
        self._open: dict[int, dict[str, float]] = {}

    def updates(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Step (from 0) and numbers of every update that is told of completely, once."""
        if self._events is None:
            if not (files := sorted(self._folder.rglob("events.out.tfevents.*"))):
                return
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

            self._events = EventAccumulator(str(files[0].parent), size_guidance={"scalars": 0})
        self._events.Reload()
        whole: list[int] = []
        for tag in self._events.Tags()["scalars"]:
            events = self._events.Scalars(tag)[self._seen.get(tag, 0) :]
            self._seen[tag] = self._seen.get(tag, 0) + len(events)
            name = tag.removeprefix("train/")
            for event in events:
                numbers = self._open.setdefault(event.step - 1, {})
                if name in _NAMES:
                    numbers[_NAMES[name]] = float(event.value)
                if name == self._last:
                    numbers["time"] = event.wall_time
                    whole.append(event.step - 1)
        yield from ((step, self._open.pop(step)) for step in sorted(whole))


def earlier(folders: Iterable[Path], last: str) -> dict[int, dict[str, float]]:
    """All updates that earlier attempts told of, the later of a step done twice."""
    return {step: numbers for folder in folders for step, numbers in Told(folder, last).updates()}


def event(numbers: dict[str, float], before: dict[str, float] | None, optim: Optim | None) -> dict[str, float]:
    """The numbers of an update as an event has them.

    Args:
        before: those of the update before, where they are known.
        optim: of the stage, for its first update: OpenRLHF's begins with a rate of 0 where there is a warm-up.
    """
    found: dict[str, float] = {name: numbers[name] for name in ("loss", "accuracy", "grad_norm") if name in numbers}
    if optim is not None:
        found["lr"] = 0.0 if optim.warmup_steps else optim.lr
    elif before is not None and "next_lr" in before:
        found["lr"] = before["next_lr"]
    if before is not None and numbers.get("time", 0.0) > before["time"]:
        found["update_seconds"] = round(numbers["time"] - before["time"], 4)
    return found


def reason(lines: Iterable[str], python: str, status: int = 0) -> str:
    """Why a job ended or stands still, with the setting to change; `""` where nothing in its output says so."""
    told = [_RANK.sub("", line) for line in lines if _LAUNCHER not in line]
    if any(_MEMORY.search(line) for line in told):
        return "a GPU ran out of memory; lower micro_batch, or set trainer_args.ds.adam_offload or ds.zero_stage 3"
    return openrlhf_log.reason(told, python, status)
