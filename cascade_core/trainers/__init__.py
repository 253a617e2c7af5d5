"""What a trainer is: the thing that updates weights for one stage.

A trainer is a class found by the hook `cascade_trainers`, built-in ones no differently from a stranger's. It gets a
`Job` and writes a Hugging Face folder to `job.output`. It samples and updates; it never judges: `job.judge` turns
sampled rows into finished advantages, the same for every trainer. This module imports no torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from cascade_core.events import Events
    from cascade_core.judge import Judge
    from cascade_core.settings import Engine, Stage


@dataclass(frozen=True)
class Job:
    """One stage, ready to train.

    `folder` is the stage's folder: the trainer keeps its checkpoints under `folder/trainer/` (deleted by the core when
    the stage is finished), its log in `folder/train.log`. `model` is the Hugging Face folder to start from, `output` the
    one to leave behind, complete or absent. `rows` is `prompts.jsonl`, in training order: step s (from 0) takes rows
    s·n … (s+1)·n − 1, with n `stage.rollout.prompts_per_step` (rl) or `stage.batch_size` (sft, where each row also
    has the `response` to imitate). `modes` is how a row's mode is said to the model: `model.modes` of the spec, for `template.py`.
    """

    stage: Stage
    seed: int
    folder: Path
    model: Path
    output: Path
    rows: Path
    events: Events
    judge: Judge | None = None
    modes: str = "switch"


class Trainer(ABC):
    """Updates weights. One instance trains one stage."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    converses: ClassVar[bool] = False
    """Whether rl stages of domains that hold conversations (`Domain.reply`) can be trained."""
    engine: Engine | None = None
    """The `engine` of the spec, for a trainer that is a program of its own; `None` outside of a run."""

    @abstractmethod
    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """The trainer's own flags for that stage, as `cascade plan` shows them; imports nothing heavy.

        Raises:
            SpecError: a setting or a `trainer_args` flag that this trainer cannot honour; names it and what is allowed.
        """

    def command(
        self, stage: Stage, seed: int, folder: Path, model: Path, output: Path, longest: int | None = None
    ) -> Sequence[str]:
        """The command that `train` is going to start for that stage, where it starts one; for `cascade plan`.

        `folder`, `model` and `output` are what `Job` is going to hold and need not be there yet; `longest` is the model's
        context in tokens, where that is known. Imports nothing heavy.

        Raises:
            SpecError: as `settings`.
        """
        return ()

    def lacks(self) -> str:
        """What it cannot train without and does not find, with the remedy; `""` where everything is there."""
        return ""

    def packages(self) -> Mapping[str, str]:
        """Versions of what it drives in an environment of its own, by package; a run goes on with no others."""
        return {}

    @abstractmethod
    def train(self, job: Job) -> None:
        """Trains the stage, going on from its own newest complete checkpoint under `job.folder/trainer` if there is one.

        Raises:
            TrainerError: it could not; one line with the setting to change where that is known.
        """

    def resume_step(self, folder: Path) -> int:
        """Steps that the newest complete checkpoint under `folder/trainer` holds; 0 if there is none."""
        return 0


def trainer_of(cls: type[Trainer], engine: Engine) -> Trainer:
    """A trainer for one stage of a spec with that `engine`."""
    trainer = cls()
    trainer.engine = engine
    return trainer
