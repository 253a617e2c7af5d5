"""Runs of `cascade run` with a real OpenRLHF, and what is read of their folders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_TOLD = re.compile(r"ppo_trainer(?:_async)?\.py:\d+\] .{0,3}Global step (\d+): \{(.*)\}")
_NUMBER = re.compile(r"'([^']+)': ([^,]+)")


class Cascade:
    """A run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stage(self, name: str) -> Path:
        """The folder of a stage."""
        return next(self.folder.glob(f"stages/??-{name}"))

    def rollouts(self, name: str) -> list[dict[str, Any]]:
        """Every sample of a stage."""
        files = sorted((self.stage(name) / "rollouts").glob("step-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]

    def steps(self, name: str) -> list[dict[str, Any]]:
        """The metrics of each step, as the events tell them."""
        lines = (self.folder / "events.jsonl").read_text("utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        label = self.stage(name).name
        return [event for event in events if event["kind"] == "step" and event["stage"] == label]

    def jobs(self, name: str) -> list[str]:
        """The settings of each job of OpenRLHF's that the stage had, as it prints them at its start."""
        log = (self.stage(name) / "train.log").read_text("utf-8", "replace")
        return [line for line in log.splitlines() if line.startswith("namespace(")]

    def told(self, name: str) -> dict[int, dict[str, float]]:
        """All numbers that OpenRLHF itself told of each step (from 0), by its own names."""
        found = {}
        for line in (self.stage(name) / "train.log").read_text("utf-8", "replace").splitlines():
            if said := _TOLD.search(line):
                found[int(said[1]) - 1] = {key: float(value) for key, value in _NUMBER.findall(said[2])}
        return found


def command(spec: Path, folder: Path) -> list[str]:
    program = "from cascade_core.cli import main; main()"
    return [sys.executable, "-c", program, "run", str(spec), "--folder", str(folder)]


def finished(spec: Path, folder: Path, **variables: str) -> Cascade:
    """Runs it to its end, with these environment variables; an extension's place on PYTHONPATH comes before what is there."""
    path = os.pathsep.join(filter(None, [variables.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, **variables, "PYTHONPATH": path}
    done = subprocess.run(command(spec, folder), env=env, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return Cascade(folder)
