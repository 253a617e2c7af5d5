"""`events.jsonl`: what happened in a run, one JSON object a line, in order.

Every line has `kind`, `stage` and `time` (seconds since the epoch); most have `step`. Fields whose name is `time`, ends in
`_seconds` or has `_seconds/` in it are clocks and durations: all others are the same when a run is killed and given again. For that, `rewind`
drops the lines of work that is about to be redone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cascade_core.rows import dump, write_text


class Events:
    """The log of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def emit(self, kind: str, stage: str, step: int | None = None, **fields: Any) -> None:
        """Appends one event; fields that are `None` are left out."""
        event = {"kind": kind, "stage": stage, "step": step, "time": round(time.time(), 3), **fields}
        event = {key: value for key, value in event.items() if value is not None}
        with self.path.open("a", encoding="utf-8") as out:
            out.write(dump(event) + "\n")

    def emit_once(self, kind: str, stage: str, **fields: Any) -> None:
        """Appends one event, unless the stage has one of this kind already."""
        if not any(event["kind"] == kind and event["stage"] == stage for event in self.read()):
            self.emit(kind, stage, **fields)

    def read(self) -> list[dict[str, Any]]:
        """All events; a last line that a kill cut short is left out."""
        if not self.path.exists():
            return []
        events = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                break
        return events

    def steps(self, stage: str) -> list[dict[str, Any]]:
        """The events of the stage's steps."""
        return [event for event in self.read() if event["kind"] == "step" and event["stage"] == stage]

    def rewind(self, keep: Callable[[Mapping[str, Any]], bool]) -> None:
        """Keeps the events for which `keep` is true: those of work that will not be redone."""
        if self.path.exists():
            write_text(self.path, "".join(dump(event) + "\n" for event in self.read() if keep(event)))
