"""The trainer `openrlhf`: rl stages with OpenRLHF's own program, on the GPUs of this machine.

A stage is one job: OpenRLHF's command line (`openrlhf_args.py`) in its own environment (`openrlhf_engine.py`), with a Ray, vLLM engines
and DeepSpeed that are started for it and end with it (`openrlhf_job.py`); `openrlhf_stage.py` follows it from its first step to its last.
Ray clusters that run already and sft stages are not driven here. This module loads no OpenRLHF, and no torch until `train` is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    kinds = ("rl",)

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

    def train(self, job: Job) -> None:
        """Trains the stage; see the base class. Finished already, it does nothing."""
        if job.output.exists():
            return
        if job.judge is None:
            raise TrainerError("an rl stage needs a judge")
        from cascade_core.settings import Engine
        from cascade_core.trainers.openrlhf_engine import check
        from cascade_core.trainers.openrlhf_job import end_old

        try:
            from cascade_core.trainers.openrlhf_stage import OpenRlhfStage
        except ModuleNotFoundError as cause:
            raise TrainerError(
                f"trainer 'openrlhf' needs {cause.name}, which is not installed; try: pip install 'cascade-rl[trl,serve]'"
            ) from cause

        engine, record = self.engine or Engine(), job.folder / "trainer" / "job.json"
        end_old(record)
        check(engine)
        with OpenRlhfStage(job, job.judge, engine) as stage:
            stage.run(record)

    def resume_step(self, folder: Path) -> int:
        """Steps that the newest complete checkpoint under `folder/trainer` holds; 0 if there is none."""
        return saved_steps(folder / "trainer" / "checkpoints")


def saved_steps(folder: Path) -> int:
    """Steps of the newest complete checkpoint that OpenRLHF wrote into `folder`; DeepSpeed names it when it is whole."""
    actor = folder / "_actor"
    try:
        found = _LATEST.fullmatch((actor / "latest").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return 0
    return int(found[1]) if found and (actor / found[0].strip()).is_dir() else 0
