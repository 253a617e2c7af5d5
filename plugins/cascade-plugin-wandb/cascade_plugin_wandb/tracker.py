"""A run in Weights & Biases: a curve for every number of every stage, the evaluations as curves, summary and a table.

The step is counted through the whole run (`timeline.py`), so a run that was killed and gone on with fills the same
W&B run, and what W&B has already is not sent to it again. wandb is imported when the tracker starts, in the tracker's
process: the run itself never loads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from cascade_core import RunInfo, Secret, Tracker
from cascade_plugin_wandb.timeline import EVALUATION, Timeline, evaluation_row, numbers


@dataclass
class WandbTracker(Tracker):
    """Logs to one W&B run, whose id is the run's.

    Attributes:
        project: W&B's project.
        entity: its user or team; by default the account's own.
        mode: `online`, or `offline` for `wandb sync trackers/wandb/wandb/offline-run-*` later.
        api_key: by default what `wandb login` stored.
        base_url: a W&B server other than the public one.
        group, tags: for finding runs.
    """

    name: ClassVar[str] = "wandb"
    finish_seconds: ClassVar[float] = 60.0
    project: str = "cascade-rl"
    entity: str | None = None
    mode: Literal["online", "offline"] = "online"
    api_key: Secret | None = None
    base_url: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.project or set(self.project) & set("/\\#?%:") or len(self.project) > 128:
            raise ValueError(f"project must be 1 to 128 characters without / \\ # ? % :, found {self.project[:60]!r}")
        self._run: Any = None

    def start(self, run: RunInfo) -> None:
        if self.api_key:
            os.environ["WANDB_API_KEY"] = self.api_key.reveal()
        if self.base_url:
            os.environ["WANDB_BASE_URL"] = self.base_url
        import wandb

        self._wandb, self._timeline = wandb, Timeline(run.stages)
        self._evaluations: dict[tuple[str, str], list[Any]] = {}
        self._run = wandb.init(
            project=self.project,
            entity=self.entity,
            mode=self.mode,
            group=self.group,
            tags=self.tags,
            id=run.id,
            name=run.name,
            resume="allow",
            dir=str(run.folder),
            config=dict(run.spec),
            settings=wandb.Settings(
                # Nothing of the machine or the working directory that nobody asked for: no console, code, diff or remote.
                console="off",
                silent=True,
                disable_git=True,
                disable_code=True,
                disable_job_creation=True,
                save_code=False,
                x_disable_stats=True,
            ),
        )
        self._known = int(self._run.step or 0)  # W&B takes no step again: those below it has

    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        for event in events:
            step = self._timeline.step(event)
            if event["kind"] == "eval":
                self._evaluations[event["stage"], event["benchmark"]] = evaluation_row(event)
            if step is not None and step >= self._known:
                self._run.log(numbers(event), step=step)

    def finish(self, status: str) -> None:
        if self._run is None:
            return
        for event_key, row in self._evaluations.items():
            self._run.summary["/".join(("final", *event_key))] = row[EVALUATION.index("value")]
        if self._evaluations:
            table = self._wandb.Table(columns=list(EVALUATION), data=list(self._evaluations.values()))
            self._run.log({"evaluation": table})
        self._run.summary["status"] = status
        self._run.finish(exit_code=0 if status == "finished" else 1)
