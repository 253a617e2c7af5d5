"""What a run folder says, read leniently: `Record` is the run, `StageRecord` one of its stages.

A report is wanted most when something went wrong, so nothing here refuses: a file that is absent, cut short or damaged is
left out and named in `Record.notes`. The stages are those of `lock.json` (the spec, checked) and those on the disk.
This module knows the files and their fields; it counts and draws nothing, and it reads no evaluation rows.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cascade_core.errors import RunError
from cascade_core.folder import START, StageFolder

Event = Mapping[str, Any]
State = Literal["finished", "under way", "not started"]

_STAGE = re.compile(r"(\d{2,})-(.+)")


@dataclass(frozen=True)
class StageRecord:
    """One stage: what it was to do, how far it came, what it measured.

    `kind` is `start`, `sft`, `rl` or a trainer's own word. `steps` is the number planned, 0 where unknown. `metrics` is empty
    until the stage is finished. `control` says that its rewards were permuted.
    """

    id: str
    index: int
    name: str
    kind: str
    domains: tuple[str, ...]
    steps: int
    control: bool
    state: State
    metrics: Mapping[str, Any]
    events: tuple[Event, ...]
    folder: StageFolder

    def steps_seen(self) -> list[Event]:
        """The `step` events in order of step; of two with the same step the later one counts."""
        seen = {
            event["step"]: event for event in self.events if event["kind"] == "step" and type(event.get("step")) is int
        }
        return [seen[step] for step in sorted(seen)]


@dataclass(frozen=True)
class Record:
    """One run. `started` and `last_event` are seconds since the epoch; `notes` says what could not be read."""

    path: Path
    name: str
    spec: Mapping[str, Any]
    spec_text: str
    lock: Mapping[str, Any]
    stages: tuple[StageRecord, ...]
    started: float | None
    last_event: float | None
    is_finished: bool
    notes: tuple[str, ...]


def read(run: Path) -> Record:
    """Reads a run folder.

    Raises:
        RunError: the path is no run folder at all.
    """
    if not any((run / name).exists() for name in ("lock.json", "spec.yaml", "events.jsonl", "stages")):
        raise RunError(f"{run} is no run folder: found neither lock.json, spec.yaml, events.jsonl nor stages/")
    notes: list[str] = []
    lock = _object(run / "lock.json", notes)
    spec = mapping(lock.get("spec"))
    events = list(_events(run / "events.jsonl", notes))
    by_stage: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_stage[event["stage"]].append(event)
    stages = tuple(_stage(run, index, name, spec, by_stage, notes) for index, name in _names(run, spec, by_stage))
    times = [time for event in events if (time := number(event.get("time"))) is not None]
    return Record(
        path=run,
        name=str(
            spec.get("name")
            or next((e["name"] for e in events if e["kind"] == "run_start" and "name" in e), run.resolve().name)
        ),
        spec=spec,
        spec_text=_text(run / "spec.yaml", notes),
        lock=lock,
        stages=stages,
        started=min(times, default=None),
        last_event=max(times, default=None),
        is_finished=bool(stages) and all(stage.state == "finished" for stage in stages),
        notes=tuple(notes),
    )


def number(value: object) -> float | None:
    """A finite number, or `None` for anything else; a truth value is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count(value: object) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return max(0, round(number(value) or 0.0))


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _names(run: Path, spec: Mapping[str, Any], by_stage: Iterable[str]) -> list[tuple[int, str]]:
    """Index and name of every stage that is planned, on the disk or in the events."""
    planned = spec.get("stages")
    found = [
        (i, str(mapping(stage).get("name", "")))
        for i, stage in enumerate(planned if isinstance(planned, list) else (), 1)
    ]
    on_disk = [path.name for path in (run / "stages").iterdir() if path.is_dir()] if (run / "stages").is_dir() else []
    matches = [match for name in [*on_disk, *by_stage] if (match := _STAGE.fullmatch(name)) and "/" not in name]
    found += [(int(match[1]), match[2]) for match in matches]
    return sorted({(0, START), *((i, name) for i, name in found if name)})


def _stage(
    run: Path, index: int, name: str, spec: Mapping[str, Any], by_stage: Mapping[str, list[Event]], notes: list[str]
) -> StageRecord:
    folder = StageFolder(run, index, name)
    metrics = _object(folder.metrics, notes)
    events = tuple(by_stage.get(folder.id, ()))
    stages = spec.get("stages")
    setting = mapping(stages[index - 1]) if isinstance(stages, list) and 0 < index <= len(stages) else {}
    started: Event = next((event for event in events if event["kind"] == "stage_start"), {})
    state: State = "finished" if metrics else "under way" if events or folder.path.is_dir() else "not started"
    return StageRecord(
        id=folder.id,
        index=index,
        name=name,
        kind=str(
            setting.get("kind") or metrics.get("kind") or started.get("stage_kind") or (START if index == 0 else "rl")
        ),
        domains=tuple(str(domain) for domain in mapping(setting.get("domains")) or mapping(metrics.get("domains"))),
        steps=count(setting.get("steps") or metrics.get("steps")),
        control=setting.get("control") == "permuted-rewards",
        state=state,
        metrics=metrics,
        events=events,
        folder=folder,
    )


def _events(path: Path, notes: list[str]) -> Iterator[Event]:
    """The events that can be read; one note for all lines that cannot."""
    if not path.is_file():
        return
    damaged, place = [], 0
    with path.open("rb") as lines:
        for place, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict) and isinstance(event.get("kind"), str) and isinstance(event.get("stage"), str):
                yield event
            elif line.strip():
                damaged.append(place)
    if damaged == [place]:
        notes.append(f"{path.name}: the last line is cut short, as a kill leaves it")
    elif damaged:
        notes.append(f"{path.name}: {len(damaged)} line(s) that are no event left out, the first is line {damaged[0]}")


def _object(path: Path, notes: list[str]) -> Mapping[str, Any]:
    """A file's JSON object; empty, with a note, where there is a file and it holds none."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        notes.append(f"{path.parent.name}/{path.name} is no JSON object and was left out")
    return mapping(value)


def _text(path: Path, notes: list[str]) -> str:
    if not path.is_file():
        notes.append(f"{path.name} is missing")
        return ""
    return path.read_text(encoding="utf-8", errors="replace")
