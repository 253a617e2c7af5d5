"""What a tracker is: something that is told what happens in a run, while it happens; a dashboard, a chat, a log service.

A tracker is a class found by the hook `cascade_trackers`; a spec names it under `trackers` with its options. It gets the
events of `events.jsonl`, in order, and never decides anything: it runs in a process of its own, beside the run, so that no
tracker can stop, slow or change what is trained. How events reach it is `tracking.py`'s and `follower.py`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True)
class RunInfo:
    """The run that a tracker is told of.

    Attributes:
        id: 16 hexadecimal digits; the same whenever the run is gone on with, another for every run that is started.
        name: the spec's `name`.
        folder: where the tracker may write, `trackers/<name of the tracker>` in the run's folder; it exists.
        stages: name to steps, in order. The events call the first of them `01-<name>`, and the model before it `00-start`.
        spec: the spec as JSON, defaults included, without `trackers`.
    """

    id: str
    name: str
    folder: Path
    stages: Mapping[str, int]
    spec: Mapping[str, Any]


class Tracker(ABC):
    """Is told what happens in a run. A subclass that is a dataclass gets one option per field, as a `Domain` does.

    The methods are called one after the other, by one thread, in a process that does nothing else; none of them is in a
    hurry. What a method raises is said once in the output of `cascade run` and written to `trackers/<name>/tracker.log`
    with whatever the process prints; the run goes on. The constructor checks options and does nothing else: `cascade plan`
    calls it.
    """

    name: ClassVar[str]
    # Seconds that a run which has ended waits for this tracker, at most; then the tracker is killed. At most 600.
    finish_seconds: ClassVar[float] = 10.0

    def start(self, run: RunInfo) -> None:
        """Called once, before any event. A tracker whose `start` raises gets no events."""
        return None

    @abstractmethod
    def events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Called with what happened since the last call: 1 to 100 events, in order, as they stand in `events.jsonl`.

        Every event has `kind`, `stage` and `time`. A tracker is told everything at least once: of a run that is gone on with,
        it is told from the beginning, and steps that are done again are told again, with the same numbers. Two events
        with the same `kind`, `stage`, `step` and `benchmark` in the run `RunInfo.id` are the same event.

        If it raises, these events count as lost, and the next call brings the next ones.
        """

    def finish(self, status: str) -> None:
        """Called once, after the last event, with "finished", "failed", "interrupted" or "killed"."""
        return None
