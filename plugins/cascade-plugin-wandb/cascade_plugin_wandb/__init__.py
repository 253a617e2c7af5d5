"""The tracker `wandb`: a run in Weights & Biases. The entry point; `tracker.py` is what it offers."""

from __future__ import annotations

from cascade_core import Tracker, hookimpl
from cascade_plugin_wandb.tracker import WandbTracker

__all__ = ["WandbTracker", "cascade_trackers"]


@hookimpl
def cascade_trackers() -> list[type[Tracker]]:
    return [WandbTracker]
