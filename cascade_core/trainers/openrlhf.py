"""The trainer `openrlhf`: stages with OpenRLHF's own program, on the GPUs of this machine or of a Ray cluster.

A stage is one job: OpenRLHF's command line (`openrlhf_args.py`) in its own environment (`openrlhf_engine.py`), with a Ray, vLLM engines
and DeepSpeed that are started for it and end with it (`openrlhf_job.py`), or on a Ray that runs already (`openrlhf_cluster.py`);
`openrlhf_stage.py` follows it from its first step to its last. An sft or reward_model stage needs neither Ray nor engines
(`openrlhf_pass.py`). This module loads no OpenRLHF, and no torch until `train` is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_core.errors import SpecError, TrainerError
from cascade_core.trainers import Job, Trainer

if TYPE_CHECKING:
    from cascade_core.settings import Stage

_LATEST = re.compile(r"global_step(\d+)\s*")


class OpenRlhfTrainer(Trainer):
    """Trains a stage as a job of OpenRLHF's."""

    name = "openrlhf"
    converses = True
    kinds = ("sft", "rl", "reward_model")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """OpenRLHF's flags as far as they follow from the spec; see the base class."""
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_args import native
        from cascade_core.trainers.openrlhf_engine import adapted, cluster, known

        engine = self.engine or Engine()
        if stage.kind == "rl" and stage.advantage.shaping != "none":
            raise SpecError(
                f"stage {stage.name!r}: advantage.shaping must be none for trainer 'openrlhf', found"
                f" {stage.advantage.shaping}: its advantages would not sum to 0, and OpenRLHF takes their mean away"
            )
        return adapted(engine, native(stage, cluster(engine), known(engine, stage.kind)))

    def command(
        self, stage: Stage, seed: int, folder: Path, model: Path, output: Path, longest: int | None = None
    ) -> Sequence[str]:
        """OpenRLHF's whole command; on a cluster, with the words that submit it. See the base class."""
        from cascade_core.settings import Engine
        from cascade_core.trainers import openrlhf_engine as engines
        from cascade_core.trainers.openrlhf_args import command
        from cascade_core.trainers.openrlhf_launch import places

        engine, part = self.engine or Engine(), output.with_name(output.name + ".part")
        there = places(engine, folder, model, part)
        if stage.kind != "rl":  # which reads a model that is lent to it
            there = replace(there, model=there.data.with_name("model"))
        return command(
            stage,
            seed,
            engines.cluster(engine),
            there,
            longest=longest,
            known=engines.known(engine, stage.kind),
            python=engines.interpreter(engine),
            adapt=lambda flags: engines.adapted(engine, flags),
        )

    def lacks(self) -> str:
        """That OpenRLHF is not where the spec says; see the base class."""
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_engine import lacks

        return lacks(self.engine or Engine())

    def packages(self) -> Mapping[str, str]:
        """OpenRLHF, vLLM, Ray, DeepSpeed, transformers, torch; see the base class."""
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_engine import packages

        return packages(self.engine or Engine())

    def train(self, job: Job) -> None:
        """Trains the stage; see the base class. Finished already, it does nothing."""
        if job.output.exists():
            return
        if job.stage.kind != "rl":
            self._pass(job)
            return
        if job.judge is None:
            raise TrainerError("an rl stage needs a judge")
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_launch import end_earlier

        try:
            from cascade_core.trainers.openrlhf_stage import OpenRlhfStage
        except ModuleNotFoundError as cause:
            raise TrainerError(
                f"trainer 'openrlhf' needs {cause.name}, which is not installed; try: pip install 'cascade-rl[trl,serve]'"
            ) from cause

        engine = self.engine or Engine()
        end_earlier(engine, job.folder)
        with OpenRlhfStage(job, job.judge, engine) as stage:
            stage.run()

    def _pass(self, job: Job) -> None:
        """A stage that needs no samples."""
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_launch import end_earlier

        try:
            from cascade_core.trainers.openrlhf_rm import RewardModelStage
            from cascade_core.trainers.openrlhf_sft import SftStage
        except ModuleNotFoundError as cause:
            raise TrainerError(
                f"trainer 'openrlhf' needs {cause.name}, which is not installed; try: pip install 'cascade-rl[trl,serve]'"
            ) from cause

        engine = self.engine or Engine()
        end_earlier(engine, job.folder)
        kind = SftStage if job.stage.kind == "sft" else RewardModelStage
        with kind(job, engine) as stage:
            stage.run()

    def resume_step(self, folder: Path) -> int:
        """Steps that the newest complete checkpoint under `folder/trainer` holds; 0 if there is none."""
        return saved_steps(folder / "trainer" / "checkpoints")


def saved_steps(folder: Path) -> int:
    """Steps of the newest complete checkpoint that OpenRLHF wrote into `folder`; DeepSpeed names it when it is whole."""
    return max(_saved(folder / "_actor"), _saved(folder))  # of rl, of other kinds


def _saved(folder: Path) -> int:
    try:
        found = _LATEST.fullmatch((folder / "latest").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return 0
    return int(found[1]) if found and (folder / found[0].strip()).is_dir() else 0
