"""Which model each stage starts from: the checkpoint of the last policy before it, or one that the spec names.

Whatever a stage starts from must still be what the run recorded of it: a checkpoint, or somebody else's model, that has changed
since is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from cascade_core import rows, waiting
from cascade_core.errors import RunChanged
from cascade_core.folder import StageFolder, check_checkpoint, load_json, model_fingerprint
from cascade_core.prepare import local_model
from cascade_core.settings import Spec


class Lineage:
    """The models of a run. `stages` are its folders, the first that of the starting model."""

    def __init__(self, spec: Spec, stages: Sequence[StageFolder]) -> None:
        self._spec, self._stages = spec, stages

    def start(self) -> Path:
        """The model that the run starts from, made here for an `init:` spec."""
        model, stage = self._spec.model, self._stages[0]
        if model.init is None:
            return local_model(str(model.path))
        if not stage.checkpoint.exists():
            from cascade_core.initial import make

            part = stage.path / "checkpoint.part"
            shutil.rmtree(part, ignore_errors=True)
            make(model.init, self._spec.seed, part)
            part.replace(stage.checkpoint)
        return stage.checkpoint

    def before(self, index: int) -> Path:
        """The model that stage `index` starts from: that of the last policy before it, unless the stage names one of its own.

        Raises:
            RunChanged: it is not what the run, or the stage, began with.
        """
        own = self._spec.stages[index - 1].model
        return self.policy(index) if own is None else self._own(self._stages[index], local_model(own))

    def policy(self, index: int) -> Path:
        """The checkpoint of the last policy before stage `index`.

        Raises:
            RunChanged: it is not what the run made, or began with.
        """
        last = waiting.policy_before(self._spec, index)
        before = self._stages[last]
        if last or self._spec.model.init is not None:
            return check_checkpoint(before)
        model = local_model(str(self._spec.model.path))
        if model_fingerprint(model) != before.read_metrics()["checkpoint"]:
            raise RunChanged(
                f"the model in {model} is not the one that the run measured first; put it back, or start anew with another --folder"
            )
        return model

    def _own(self, stage: StageFolder, model: Path) -> Path:
        """A model that somebody else made, which the stage's record remembers."""
        record, found = load_json(stage.record), model_fingerprint(model)
        if record.setdefault("model", found) != found:
            raise RunChanged(
                f"the model in {model} is not the one that stage {stage.id} began with; put it back, or remove {stage.path}"
            )
        rows.write_json(stage.record, record)
        return model
