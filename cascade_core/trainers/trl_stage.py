"""What both TRL trainers of a stage share: schedule, checkpoints and the step's numbers.

A mixin over `transformers.Trainer`, whose loop does the work. It writes one `step` event per update, and checkpoints
through `checkpoints.py`. Only the two trainers import this module: it loads torch.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback

from cascade_core.errors import TrainerError
from cascade_core.trainers import Job, checkpoints
from cascade_core.trainers.callbacks import Bar, Board
from cascade_core.trainers.schedule import factor

if TYPE_CHECKING:
    from transformers import Trainer as _Base
else:
    _Base = object


class Rhythm(TrainerCallback):
    """Asks for a checkpoint every so many steps, never after the last: what follows it is the stage's output."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._began = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called by the loop before every update."""
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Since the update began."""
        return time.monotonic() - self._began

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Called by the loop after every update."""
        step = state.global_step
        control.should_save = self._every > 0 and step % self._every == 0 and step < state.max_steps
        return control


class StageTrainer(_Base):
    """One stage in transformers' loop."""

    job: Job
    _board: Board
    _bar: Bar
    _rhythm: Rhythm
    _writing: Path | None = None

    def begin(self, job: Job) -> None:
        """Binds the job; called once, before `train_stage`."""
        self.job = job
        self.remove_callback(PrinterCallback)
        self._rhythm = Rhythm(job.stage.save_every)
        self.add_callback(self._rhythm)

    def train_stage(self) -> None:
        """Trains to the end, from the newest complete checkpoint if there is one.

        Raises:
            CheckpointError: that checkpoint is damaged.
            TrainerError: the gradient of a step is no number.
        """
        found = checkpoints.newest(self.job.folder / "trainer")
        done = found[0] if found else 0
        self._board = Board(self.job.folder / "tensorboard", done)
        self._bar = Bar(self.job.folder.name, self.job.stage.steps, done)
        try:
            self.train(resume_from_checkpoint=str(found[1]) if found else None)
        finally:
            self._bar.close()
            self._board.close()
        if self.state.global_step != self.job.stage.steps:
            raise TrainerError(f"TRL stopped after {self.state.global_step} of {self.job.stage.steps} steps")

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The learning rate of `schedule.py`."""
        if self.lr_scheduler is None:
            stage = self.job.stage
            moved: Any = optimizer or self.optimizer
            self.lr_scheduler = LambdaLR(
                moved, lambda step: factor(min(step, stage.steps - 1), stage.steps, stage.optim)
            )
        return self.lr_scheduler

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)  # type: ignore[no-untyped-call]
        if not math.isfinite(float(norm)):
            raise TrainerError(
                f"the gradient of step {self.state.global_step} is not finite; lower optim.lr or optim.max_grad_norm"
            )
        return norm

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Called by the loop after every update (and once at its end, which says nothing new)."""
        super().log(logs, start_time)
        self.state.log_history.clear()
        if "grad_norm" in logs:
            numbers = {"loss": logs["loss"], "grad_norm": logs["grad_norm"], "lr": logs["learning_rate"]}
            self._report(self.state.global_step - 1, {**numbers, **self._numbers(logs)})

    def _numbers(self, logs: dict[str, float]) -> dict[str, Any]:
        """What a kind of stage adds to a step's numbers; `logs` holds TRL's own."""
        return {"update_seconds": round(self._rhythm.seconds(), 4)}

    def _report(self, step: int, numbers: dict[str, Any]) -> None:
        self.job.events.emit("step", stage=self.job.folder.name, step=step, **numbers)
        self._board.write(step, numbers)
        self._bar.advance(numbers)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        folder = self.job.folder / "trainer"
        self._writing = checkpoints.staging(folder)
        try:
            super()._save_checkpoint(model, trial)
            (written,) = self._writing.iterdir()
            checkpoints.seal(written)
            # Before the rename: a kill between the two drops the event with the checkpoint, never one alone.
            self.job.events.emit("checkpoint", stage=self.job.folder.name, step=self.state.global_step)
            checkpoints.publish(written, folder)
        finally:
            self._writing = None

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._writing or self.args.output_dir)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """No card: a stage's model is not for publishing."""

    def _send_telemetry(self) -> None:
        """Nothing is sent anywhere."""
