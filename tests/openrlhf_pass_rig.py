"""A stage of one pass over its rows (sft, reward_model), trained with what stands in for OpenRLHF's programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tiny_stage as tiny

from cascade_core.settings import Engine
from cascade_core.trainers import Job
from cascade_core.trainers.openrlhf import OpenRlhfTrainer

HERE = Path(__file__).parent


def engine_in(folder: Path) -> Engine:
    """An engine whose interpreter runs the stand-in."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "openrlhf_pass_engine.py"} "$@"\n')
    path.chmod(0o755)
    return Engine(python=str(path), stall_seconds=60.0)


def train(
    kind: str, folder: Path, engine: Engine, rows: list[dict[str, Any]], start: Path | None = None, **changes: Any
) -> Job:
    """Trains it on as many of the rows as it takes, four a step."""
    settings = tiny.stage(kind, **{"batch_size": 4, **changes})
    made = tiny.job(folder, settings, start=start, rows=rows[: settings.steps * settings.batch_size])
    trainer = OpenRlhfTrainer()
    trainer.engine = engine
    trainer.train(made)
    return made


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The stage's events of a kind."""
    told = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return [event for event in told if event["kind"] == kind]
