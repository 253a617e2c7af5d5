"""A stage of one pass over rows that lie there, as a job of OpenRLHF's, from its first update to its last.

No Ray and no vLLM: torch's own launcher starts a process for every GPU of one machine. The rows and their order are the core's, a step
is one update on the next `batch_size` of them. What a row is and what is handed on, a kind of stage says (`openrlhf_sft.py`,
`openrlhf_rm.py`). The job ends like an rl stage's: all updates are done and the model lies there, or it fails or stalls, and the
reason is told (`openrlhf_pass_log.py`).

In `trainer/` of the stage's folder: `data.jsonl` and `data.json` the rows as OpenRLHF reads them and their hash, `model/` the model that
is lent, `checkpoints/` OpenRLHF's own, `board/` what it tells, `boards/` what earlier attempts told.
"""

from __future__ import annotations

import math
import shutil
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace
from typing import Any, ClassVar, Self

from cascade_core.errors import CheckpointError, TrainerError
from cascade_core.folder import file_hash, load_json
from cascade_core.rows import Row, write_json
from cascade_core.settings import Engine
from cascade_core.trainers import Job, checkpoints
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers import openrlhf_pass_log as told
from cascade_core.trainers.callbacks import Bar, Board
from cascade_core.trainers.demonstration import taken
from cascade_core.trainers.openrlhf import saved_steps
from cascade_core.trainers.openrlhf_args import command
from cascade_core.trainers.openrlhf_cluster import unbegun
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_launch import launched, places

_LOOK_SECONDS = 0.5
_KEPT_LINES = 4000
_MODEL = ("config.json", "generation_config.json", ".safetensors", ".safetensors.index.json")


class PassStage(ABC):
    """One stage under way."""

    last: ClassVar[str]
    """What the program tells last of an update."""

    def __init__(self, job: Job, engine: Engine) -> None:
        self.job, self.engine = job, engine
        self.folder, self.part = job.folder / "trainer", job.output.with_name(job.output.name + ".part")
        self.places = places(engine, job.folder, job.model, self.part)
        self.start = self.told = self._saved = saved_steps(self.places.checkpoints)
        self.before: dict[str, float] | None = None
        self.recent: deque[str] = deque(maxlen=_KEPT_LINES)
        self.tokenizer = self._tokenizer()
        self._prepare()
        self._catch_up()
        self.updates = told.Told(self.places.board, self.last)
        self.bar = Bar(job.folder.name, job.stage.steps, self.start)
        self.board = Board(job.folder / "tensorboard", self.start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()
        self.board.close()

    def _prepare(self) -> None:
        """The files of the job; what an attempt left that is no part of a checkpoint is removed or put aside."""
        if self.start == 0:
            shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.part, ignore_errors=True)
        for unfinished in self.places.checkpoints.glob("global_step*"):
            if unfinished.is_dir() and unfinished.name not in {f"global_step{step}" for step in range(self.start + 1)}:
                shutil.rmtree(unfinished)  # OpenRLHF would count it as the newest, and delete the one to go on from
        if self.places.board.exists():
            aside = self.folder / "boards"
            aside.mkdir(exist_ok=True)
            self.places.board.rename(aside / f"{len(list(aside.iterdir())):04d}")
        self._write(taken(self.job.rows, self.job.stage.steps, self.job.stage.batch_size))
        mark, now = self.folder / "data.json", {"data": file_hash(self.places.data)}
        if self.start and mark.exists() and load_json(mark) != now:
            raise CheckpointError(
                f"{self.places.checkpoints} was trained on other rows than {self.job.rows} holds; remove"
                f" {self.folder} to train the stage from its beginning"
            )
        write_json(mark, now)

    @abstractmethod
    def _tokenizer(self) -> Any:
        """The tokenizer that makes tokens of rows."""

    @abstractmethod
    def _write(self, rows: list[Row]) -> None:
        """Lends the model, and writes what it is trained on."""

    @abstractmethod
    def _settle(self) -> Any:
        """Puts the settings of the written model right; gives the tokenizer that goes with it."""

    def _catch_up(self) -> None:
        """The events of updates that an earlier attempt did and did not come to tell."""
        if self.start == 0:
            return
        mine = [event for event in self.job.events.read() if event["stage"] == self.job.folder.name]
        have = {event["step"] for event in mine if event["kind"] == "step"}
        numbers = told.earlier(sorted((self.folder / "boards").glob("*")), self.last)
        for step in range(self.start):
            if step not in have:
                self._emit(step, numbers.get(step, {}), numbers.get(step - 1))
        self.before = numbers.get(self.start - 1)
        if self.before:
            self.before = {**self.before, "time": math.inf}  # the pause between is no part of the next update
        if not any(event["kind"] == "checkpoint" and event["step"] == self.start for event in mine):
            self._emit_checkpoint(self.start)

    def run(self) -> None:
        """Runs the job to its end and hands its model on.

        Raises:
            TrainerError: it failed, stalled, or did something else than all its steps.
        """
        gpus = 0 if self.engine.cpu else self.engine.gpus
        with launched(self.engine, self._command(), self.job.folder, gpus=gpus) as running:
            status = self._watched(running)
            self._look(running)
        if status:
            raise TrainerError(self._failed(f"ended with status {status}", status))
        if self.told != self.job.stage.steps:
            raise TrainerError(self._failed("ended"))
        self._hand_on()

    def _command(self) -> list[str]:
        return command(
            self.job.stage,
            self.job.seed,
            engines.cluster(self.engine),
            replace(self.places, model=self.places.data.with_name("model")),
            resume=self.start > 0,
            known=engines.known(self.engine, self.job.stage.kind),
            python=engines.interpreter(self.engine),
            adapt=lambda flags: engines.adapted(self.engine, flags),
        )

    def _watched(self, running: Running) -> int:
        """Follows the job; its status.

        Raises:
            TrainerError: it stalled, or its numbers are none.
        """
        moved, last = time.monotonic(), (self.told, self._saved)
        while (status := running.poll()) is None:
            time.sleep(_LOOK_SECONDS)
            self._look(running)
            if (self.told, self._saved) != last:
                moved, last = time.monotonic(), (self.told, self._saved)
            elif time.monotonic() - moved > self.engine.stall_seconds:
                running.end()
                raise TrainerError(
                    self._failed(
                        f"made no progress for {self.engine.stall_seconds:g} s (engine.stall_seconds) and was ended"
                    )
                )
        return status

    def _look(self, running: Running) -> None:
        """Takes in what is new of the job."""
        self.recent.extend(running.lines())
        for step, numbers in self.updates.updates():
            self._check(step, numbers)
            self._emit(step, numbers, self.before)
            self.before, self.told = numbers, step + 1
        saved = saved_steps(self.places.checkpoints)
        if self._saved < saved <= self.told:
            self._saved = saved
            self._emit_checkpoint(saved)

    def _check(self, step: int, numbers: dict[str, float]) -> None:
        if step != self.told:
            raise TrainerError(self._failed(f"told of update {step}, and update {self.told} was to be the next,"))
        if not all(math.isfinite(numbers[name]) for name in ("loss", "grad_norm")):
            raise TrainerError(
                f"stage {self.job.stage.name!r}: the gradient of step {step} is not finite; lower optim.lr or"
                " optim.max_grad_norm"
            )

    def _emit(self, step: int, numbers: dict[str, float], before: dict[str, float] | None) -> None:
        found = told.event(numbers, before, self.job.stage.optim if step == 0 else None)
        self.job.events.emit("step", self.job.folder.name, step, **found)
        if step >= self.start:
            self.board.write(step, found)
            self.bar.advance(found)

    def _emit_checkpoint(self, step: int) -> None:
        self.job.events.emit("checkpoint", stage=self.job.folder.name, step=step)

    def _hand_on(self) -> None:
        """The model that OpenRLHF wrote, with its own tokenizer again, complete or absent."""
        if not (self.part / "config.json").is_file() or not any(self.part.glob("*.safetensors")):
            raise TrainerError(f"OpenRLHF ended without writing a model to {self.part}")
        for path in self.part.iterdir():
            if not path.name.endswith(_MODEL):  # the tokenizer of words for tokens
                path.unlink()
        tokenizer = self._settle()
        for trace in ("is_local", "local_files_only"):  # of how it was loaded
            tokenizer.init_kwargs.pop(trace, None)
        tokenizer.save_pretrained(self.part)
        checkpoints.flush(self.part)
        self.part.rename(self.job.output)

    def _failed(self, how: str, status: int = 0) -> str:
        why = told.reason(self.recent, engines.interpreter(self.engine), status) or unbegun(self.recent)
        return (
            f"stage {self.job.stage.name!r}: OpenRLHF {how} at step {self.told} of {self.job.stage.steps}"
            + (f": {why}" if why else "")
            + f"; see {self.job.folder / 'train.log'}"
        )
