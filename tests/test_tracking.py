"""Trackers beside a run: told everything in order, whatever they do; and nothing that they do reaches the run."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strangers import environment, publish

from cascade_core import Tracker
from cascade_core.errors import PluginNotFound, SpecError
from cascade_core.events import Events
from cascade_core.follower import State
from cascade_core.lock import pinned_spec
from cascade_core.plan import plan
from cascade_core.plugins import Registry
from cascade_core.settings import Spec
from cascade_core.spec import check, dump, load, schema
from cascade_core.tracking import Tracking, check_secrets, run_id

__all__ = ["publish"]

NOTES = """
    import json, os, sys, time
    from dataclasses import dataclass, field
    from typing import Literal
    from cascade_core import Domain, Score, Secret, Tracker, hookimpl
    from cascade_core.trainers import Trainer

    @dataclass
    class Notes(Tracker):
        name = "notes"
        finish_seconds = 60.0  # a slow machine starts its process late
        path: str
        fault: Literal["", "start", "events", "exit", "hang", "finish", "die", "print"] = ""
        token: Secret | None = None

        def __post_init__(self):
            if self.fault in ("hang", "finish"): self.finish_seconds = 3.0
            if self.path.endswith(".exe"): raise ValueError("path must not end in .exe")

        def note(self, *what):
            with open(self.path, "a") as out: out.write(json.dumps(what) + "\\n")

        def start(self, run):
            if self.fault == "start": raise RuntimeError("no dashboard here\\nsecond line")
            self.note("start", run.id, run.name, dict(run.stages), run.spec["seed"], run.folder.is_dir())

        def events(self, events):
            if self.fault == "exit": sys.exit(3)
            if self.fault == "hang": time.sleep(60)
            if self.fault == "die": os._exit(7)
            if self.fault == "events" and events[0]["kind"] == "run_start": raise RuntimeError("full of " + self.token.reveal())
            if self.fault == "print":
                print("the token is", self.token.reveal()); print(repr(self.token.reveal()), file=sys.stderr)
            for event in events: self.note("event", event)

        def finish(self, status):
            self.note("finish", status)
            if self.fault == "finish": time.sleep(60)

    class Toy(Domain):
        name = "toy"
        def tasks(self, split, seed): return []
        def score(self, task, response): return Score(1.0)

    class Plain(Trainer):
        name = "plain"
        kinds = ("sft", "rl")
        def settings(self, stage): return {}
        def train(self, job): raise AssertionError("nothing is trained here")

    @hookimpl
    def cascade_trackers(): return [Notes]
    @hookimpl
    def cascade_domains(): return [Toy]
    @hookimpl
    def cascade_trainers(): return [Plain]
"""
SPEC = """\
name: told
seed: 5
trainer: plain
model: owner/model
domains: {toy: }
stages:
  - {name: one, domains: toy, steps: 3}
  - {name: two, domains: toy, steps: 4}
trackers:
  notes: {path: ./notes.jsonl}
"""
Begin = Callable[..., tuple[Tracking, Events, list[str], Path]]


@pytest.fixture
def begin(publish: Any, tmp_path: Path) -> Begin:
    """A run's folder with a run begun in it, and its one tracker, not yet started."""
    publish("cascade-plugin-notes", NOTES)

    def make(**options: Any) -> tuple[Tracking, Events, list[str], Path]:
        notes = tmp_path / "notes.jsonl"
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC)
        spec = load(path)
        spec = spec.model_copy(update={"trackers": {"notes": {"path": str(notes), **options}}})
        trackers = {"notes": Registry().build_tracker("notes", spec.trackers["notes"])}
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "lock.json").write_text("{}")
        events = Events(folder / "events.jsonl")
        events.emit("run_start", "", name="told")
        said: list[str] = []
        return Tracking(trackers, spec, folder, said.append), events, said, notes

    return make


def notes_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path, count: int) -> None:
    """Until so many notes were made; the tracker's process has to start first."""
    end = time.monotonic() + 60
    while len(notes_of(path)) < count and time.monotonic() < end:
        time.sleep(0.05)


def test_a_tracker_is_told_everything_once_in_order_and_how_it_ended(begin: Begin, tmp_path: Path) -> None:
    tracking, events, said, notes = begin()
    with tracking.told(events):
        for step in range(250):  # more than a batch
            events.emit("step", "01-one", step, reward=step / 7)
    first, *told, last = notes_of(notes)
    assert first == ["start", run_id(tmp_path / "run", events.read()[0]["time"]), "told", {"one": 3, "two": 4}, 5, True]
    assert [event for _, event in told] == events.read() and len(told) == 251
    assert last == ["finish", "finished"]
    assert said == []


def test_an_event_arrives_while_the_run_goes_on_and_half_a_line_does_not(begin: Begin) -> None:
    tracking, events, _, notes = begin()
    with tracking.told(events):
        wait_for(notes, 2)
        with events.path.open("a") as out:
            out.write('{"kind": "step", "stage": "01-one", "st')
            out.flush()
            time.sleep(0.6)
            assert len(notes_of(notes)) == 2
            out.write('ep": 0}\n')
            out.flush()
            wait_for(notes, 3)
            assert notes_of(notes)[-1] == ["event", {"kind": "step", "stage": "01-one", "step": 0}]


def test_a_run_that_is_gone_on_with_is_told_again_under_the_same_id(begin: Begin) -> None:
    tracking, events, _, notes = begin()
    with tracking.told(events):
        events.emit("step", "01-one", 0)
    with tracking.told(events):
        events.emit("step", "01-one", 1)
    starts = [note for note in notes_of(notes) if note[0] == "start"]
    assert starts[0] == starts[1]
    assert [note[1].get("step") for note in notes_of(notes) if note[0] == "event"] == [None, 0, None, 0, 1]


@pytest.mark.parametrize(
    ("fault", "problem", "lost"),
    [
        ("start", "cannot be started: RuntimeError: no dashboard here", 2),
        ("exit", "could not take an event: SystemExit: 3", 2),
        ("die", "process ended with status 7", 2),
    ],
)
def test_a_tracker_that_fails_is_said_once_and_nothing_is_raised(
    fault: str, problem: str, lost: int, begin: Begin
) -> None:
    tracking, events, said, _ = begin(fault=fault)
    with tracking.told(events):
        events.emit("step", "01-one", 0)
        end = time.monotonic() + 60
        while not said and time.monotonic() < end:
            tracking.tell()
            time.sleep(0.05)
        tracking.tell()
    assert len(said) == 2 and problem in said[0] and "second line" not in said[0]
    assert said[1] == f"tracker 'notes': {lost} of 2 events were not delivered"


def test_after_events_that_it_could_not_take_a_tracker_gets_the_next_ones(begin: Begin, monkeypatch: Any) -> None:
    monkeypatch.setenv("NOTES_TOKEN", "s3cr3t/+token")
    tracking, events, said, notes = begin(fault="events", token={"env": "NOTES_TOKEN"})
    with tracking.told(events):
        end = time.monotonic() + 60
        while not said and time.monotonic() < end:
            tracking.tell()
            time.sleep(0.05)
        events.emit("step", "01-one", 0)
    assert [note[0] for note in notes_of(notes)] == ["start", "event", "finish"]
    assert said[0].startswith("tracker 'notes' could not take an event: RuntimeError: full of ***;")
    assert said[1:] == ["tracker 'notes': 1 of 2 events were not delivered"]


@pytest.mark.parametrize(
    ("fault", "told"), [("hang", "2 of 2 events were not delivered"), ("finish", "was not done 3 s")]
)
def test_a_tracker_that_hangs_holds_up_no_event_and_is_killed_in_the_end(fault: str, told: str, begin: Begin) -> None:
    tracking, events, said, notes = begin(fault=fault)
    with tracking.told(events):
        wait_for(notes, 1)
        before = time.monotonic()
        events.emit("step", "01-one", 0)
        tracking.tell()
        assert time.monotonic() - before < 30  # it would hang for a minute
        before = time.monotonic()
    assert time.monotonic() - before < 40
    assert len(said) == 1 and told in said[0]


def test_what_a_tracker_prints_is_in_its_log_without_its_secrets(
    begin: Begin, tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    monkeypatch.setenv("NOTES_TOKEN", 'a "quoted"\\token')
    tracking, events, _, _ = begin(fault="print", token={"env": "NOTES_TOKEN"})
    with tracking.told(events):
        pass
    log = (tmp_path / "run/trackers/notes/tracker.log").read_text()
    assert "the token is ***" in log and "quoted" not in log
    assert capfd.readouterr() == ("", "")


def test_a_tracker_whose_process_cannot_be_started_is_done_without(begin: Begin, monkeypatch: Any) -> None:
    tracking, events, said, notes = begin()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with tracking.told(events):
        pass
    assert said == [
        "tracker 'notes' could not be started: Resource temporarily unavailable; the run goes on without it"
    ]
    assert notes_of(notes) == []


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "interrupted"), (RuntimeError, "failed")])
def test_a_run_that_does_not_end_well_is_told_so(error: type[BaseException], status: str, begin: Begin) -> None:
    tracking, events, _, notes = begin()
    with pytest.raises(error), tracking.told(events):
        raise error
    assert notes_of(notes)[-1] == ["finish", status]


KILLED = """
import os, signal, sys
from pathlib import Path
from cascade_core.events import Events
from cascade_core.plugins import registry
from cascade_core.spec import load
from cascade_core.tracking import Tracking
spec, folder = load(Path(sys.argv[1])), Path(sys.argv[2])
events = Events(folder / "events.jsonl")
events.emit("run_start", "", name="told")
trackers = {"notes": registry().build_tracker("notes", spec.trackers["notes"])}
Tracking(trackers, spec, folder, print).start(1.0)
events.emit("step", "01-one", 0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_tracker_of_a_killed_run_ends_by_itself_after_the_last_event(publish: Any, tmp_path: Path) -> None:
    site = publish("cascade-plugin-notes", NOTES)
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "lock.json").write_text("{}")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "spec.yaml"), str(tmp_path)]
    done = subprocess.run(command, env=environment(site), timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_for(tmp_path / "notes.jsonl", 4)
    notes = notes_of(tmp_path / "notes.jsonl")
    assert [note[1].get("kind") for note in notes[1:3]] == ["run_start", "step"] and notes[3] == ["finish", "killed"]


def refused(publish: Any, tmp_path: Path, trackers: str) -> str:
    publish("cascade-plugin-notes", NOTES)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.partition("trackers:")[0] + f"trackers:\n{trackers}\n")
    with pytest.raises(SpecError) as error:
        check(load(path), path, found=Registry())
    return str(error.value)


@pytest.mark.parametrize(
    ("trackers", "told"),
    [
        ("  note: {path: a}", ":10:3: trackers.note: no tracker is called 'note', did you mean 'notes'"),
        ("  notes: {path: a, tokn: b}", ":10:20: trackers.notes.tokn: unknown option 'tokn', did you mean 'token'"),
        ("  notes: {path: 3}", ":10:17: trackers.notes.path: option 'path' must be text, found 3"),
        ("  notes: ", "option 'path' must be given: the tracker has no default for it"),
        ("  notes: {path: a.exe}", ":10:11: trackers.notes.path: tracker 'notes' refuses its options: path must not"),
        ("  notes: [a]", ":10:10: trackers.notes: must be a mapping, found a list of 1"),
    ],
)
def test_a_tracker_is_refused_with_its_line(trackers: str, told: str, publish: Any, tmp_path: Path) -> None:
    assert told in refused(publish, tmp_path, trackers)


@pytest.mark.parametrize(
    "token", ["hunter2", "{env: hunter2, file: b}", "{evn: hunter2}", "[hunter2]", "{env: 3}", "{env: ''}"]
)
def test_a_secret_in_the_open_is_refused_and_not_repeated(token: str, publish: Any, tmp_path: Path) -> None:
    message = refused(publish, tmp_path, f"  notes: {{path: a, token: {token}}}")
    assert "must be {env: NAME} or {file: PATH}" in message and "hunter2" not in message


def test_a_secret_that_is_not_there_stops_the_run_before_it_begins(begin: Begin, monkeypatch: Any) -> None:
    monkeypatch.delenv("NOTES_TOKEN", raising=False)
    options = {"path": "a", "token": {"env": "NOTES_TOKEN"}}
    trackers: dict[str, Tracker] = {}
    begin()
    trackers["notes"] = Registry().build_tracker("notes", options)
    with pytest.raises(
        SpecError, match="tracker 'notes': environment variable 'NOTES_TOKEN', which is to hold a secret"
    ):
        check_secrets(trackers)


def test_trackers_are_planned_and_in_the_schema_and_in_no_lock(publish: Any, tmp_path: Path) -> None:
    publish("cascade-plugin-notes", NOTES)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    spec, found = load(path), Registry()
    (one,) = plan(spec, check(spec, path, found=found), found).trackers
    assert (one.name, one.distribution) == ("notes", "cascade-plugin-notes")
    assert one.options == {"path": str(tmp_path / "notes.jsonl")}
    options = schema(found)["properties"]["trackers"]["properties"]["notes"]["properties"]
    assert options["fault"]["enum"][1] == "start" and "env" in json.dumps(options["token"])
    bare = Spec.model_validate(spec.model_dump(mode="json", exclude={"trackers"}, exclude_unset=True))
    assert pinned_spec(spec) == pinned_spec(bare)
    assert dump(spec, without=("trackers",)) == dump(bare)
    assert load_again(dump(spec), tmp_path) == spec


def load_again(text: str, folder: Path) -> Spec:
    (folder / "again.yaml").write_text(text)
    return load(folder / "again.yaml")


def test_a_tracker_that_is_not_installed_is_not_found(publish: Any) -> None:
    with pytest.raises(PluginNotFound, match="no tracker is called 'nowhere'"):
        Registry([]).tracker("nowhere")


def test_a_state_fits_into_a_pipe_as_a_whole() -> None:
    assert len(State(10**12, 10**12, "\U0001f600" * 1000, True).line()) <= 4096  # PIPE_BUF of Linux
