"""What a person sees of a stage while it trains: `train.log`, TensorBoard, one progress line on a terminal.

Libraries that talk (transformers, TRL, datasets, Python warnings) write to `train.log` while a stage runs, and nowhere
else. TensorBoard's files lie in `tensorboard/`, one scalar per number of a step. This module decides nothing.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cascade_core.pretrained import quiet_bars

# Between two looks of TensorBoard's thread at the clock. A Ctrl-C in the middle of waking that thread (in `Condition.notify`, after
# the release and before the waiter is forgotten) takes the next wake-up with it, which is the one that ends it: so long it then lasts.
_FLUSH_SECONDS = 2
_TALKERS = ("transformers", "trl", "accelerate", "datasets", "torch", "py.warnings")


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Sends what libraries say during the block, warnings included, to the file at `path`."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    before = {name: _state(logging.getLogger(name)) for name in _TALKERS}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        logging.captureWarnings(True)
        try:
            for name in _TALKERS:
                _redirect(logging.getLogger(name), handler)
            with quiet_bars():
                yield
        finally:
            logging.captureWarnings(False)
            for name, state in before.items():
                _restore(logging.getLogger(name), state)
            handler.close()


def _state(logger: logging.Logger) -> tuple[list[logging.Handler], bool]:
    return list(logger.handlers), logger.propagate


def _redirect(logger: logging.Logger, handler: logging.Handler) -> None:
    logger.handlers, logger.propagate = [handler], False


def _restore(logger: logging.Logger, state: tuple[list[logging.Handler], bool]) -> None:
    logger.handlers, logger.propagate = list(state[0]), state[1]


class Board:
    """TensorBoard files of a stage; going on after a kill, points of steps that are done again are dropped."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder), purge_step=step, flush_secs=_FLUSH_SECONDS)

    def write(self, step: int, numbers: Mapping[str, Any]) -> None:
        """One scalar per number."""
        for name, value in numbers.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(f"train/{name}", value, step)

    def close(self) -> None:
        """Writes what is left."""
        self._writer.close()


class Bar:
    """One line on a terminal's stderr: steps done, the time left, and the number to watch; silent elsewhere."""

    def __init__(self, stage: str, steps: int, done: int) -> None:
        self._progress: Any = None
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[watched]}"),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(stage, total=steps, completed=done, watched="")
        self._progress.start()

    def advance(self, numbers: Mapping[str, Any]) -> None:
        """One more step."""
        if self._progress is not None:
            name = "reward_mean" if "reward_mean" in numbers else "loss"
            self._progress.update(self._task, advance=1, watched=f"{name.split('_')[0]} {numbers.get(name, 0.0):.3f}")

    def close(self) -> None:
        """Leaves the finished line standing."""
        if self._progress is not None:
            self._progress.stop()
