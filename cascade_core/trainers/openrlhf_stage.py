"""One stage as a job of OpenRLHF's, from its first step to its last.

The tasks, their order and the advantages come from the service of the stage (`cascade_core.serve`), which runs in a thread of this
process and holds the stage's judge: rewards are the same code as for every trainer. A job ends in one of three ways: all steps are done,
and the service, OpenRLHF and the model that it wrote agree on it; it fails, and the reason is told; nothing comes of it for
`engine.stall_seconds`, and it is ended.

In `trainer/` of the stage's folder: `data.jsonl` the slots, `checkpoints/` and `board/` OpenRLHF's own, `job.json` which job runs,
`attempt.json` which attempt the service's journal is of, `data.json` which tasks the checkpoints were trained on.
"""

from __future__ import annotations

import math
import re
import secrets
import shutil
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from uuid import uuid4

from cascade_core import rows as rowfile
from cascade_core.errors import CheckpointError, TooManyFailures, TrainerError, UsageError
from cascade_core.folder import file_hash, load_json
from cascade_core.judge import Judge
from cascade_core.pretrained import load_tokenizer
from cascade_core.serve.access import Access
from cascade_core.serve.app import Service
from cascade_core.serve.journal import Journal
from cascade_core.serve.listen import background, bound
from cascade_core.serve.rollout import Rollouts
from cascade_core.settings import Engine
from cascade_core.template import Prompt, continuation, read
from cascade_core.trainers import Job, checkpoints
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers import openrlhf_log as told
from cascade_core.trainers.callbacks import Bar, Board
from cascade_core.trainers.openrlhf import saved_steps
from cascade_core.trainers.openrlhf_args import command
from cascade_core.trainers.openrlhf_cluster import host, unbegun
from cascade_core.trainers.openrlhf_job import Running
from cascade_core.trainers.openrlhf_launch import launched, places

_LOOK_SECONDS = 0.5
_KEPT_LINES = 4000
_LAST_WORDS_SECONDS = 10.0  # of a job that cannot go on
_UNWRITTEN = re.compile(r"step \d+ could not be (written|judged): ")


class OpenRlhfStage:
    """One stage under way: its files, its journal, its numbers."""

    def __init__(self, job: Job, judge: Judge, engine: Engine) -> None:
        self.job, self.judge, self.engine = job, judge, engine
        self.folder, self.part = job.folder / "trainer", job.output.with_name(job.output.name + ".part")
        self.log = job.folder / "train.log"
        self.places = places(engine, job.folder, job.model, self.part)
        self.start = self.told = self._saved = saved_steps(self.places.checkpoints)
        self.numbers: dict[int, dict[str, float]] = {}
        self.recent: deque[str] = deque(maxlen=_KEPT_LINES)
        self._service: Service | None = None
        self._doomed = math.inf  # since when, on the monotonic clock
        self.bar = Bar(job.folder.name, job.stage.steps, self.start)
        self._prepare()
        self.board = Board(job.folder / "tensorboard", self.start)
        self.journal = self._begun()

    def __enter__(self) -> OpenRlhfStage:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()
        self.board.close()
        self.journal.close()

    def _prepare(self) -> None:
        """The files of the job; what an attempt without a checkpoint left is removed."""
        if self.start == 0:
            shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.part, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        slots = self.job.stage.rollout.prompts_per_step
        rowfile.write(self.places.data, ({"prompt": f"slot {slot}", "label": str(slot)} for slot in range(slots)))
        mark, data = self.folder / "data.json", {"data": file_hash(self.job.rows)}
        if self.start and mark.exists() and load_json(mark) != data:
            raise CheckpointError(
                f"{self.places.checkpoints} was trained on other tasks than {self.job.rows} holds; remove {self.folder}"
                " to train the stage from its beginning"
            )
        rowfile.write_json(mark, data)

    def _begun(self) -> Journal:
        """The journal of a new attempt, after events that the one before did not come to are written."""
        record = self.folder / "attempt.json"
        if self.start and record.exists():
            before = load_json(record)
            with closing(Journal(self.job.folder, before["attempt"], before["start_step"])) as old:
                self._catch_up(dict(old.finished))
        attempt = uuid4().hex
        rowfile.write_json(record, {"attempt": attempt, "start_step": self.start})
        return Journal(self.job.folder, attempt, self.start)

    def _catch_up(self, finished: Mapping[int, Mapping[str, float]]) -> None:
        mine = [event for event in self.job.events.read() if event["stage"] == self.job.folder.name]
        have = {event["step"] for event in mine if event["kind"] == "step"}
        missing = [step for step in range(self.start) if step not in have]
        numbers = told.board(self.places.board) if missing else {}
        for step in missing:
            self._emit(step, {**finished.get(step, {}), **numbers.get(step, {})})
        if not any(event["kind"] == "checkpoint" and event["step"] == self.start for event in mine):
            self._emit_checkpoint(self.start)

    def run(self) -> None:
        """Runs the job to its end and hands its model on.

        Raises:
            TrainerError: it failed, stalled, or did something else than all its steps.
            TooManyFailures: too many samples could not be judged.
        """
        token = secrets.token_hex(32)
        with (
            self._served(token) as address,
            launched(self.engine, self._command(), self.job.folder, (address, token)) as running,
        ):
            status = self._watched(running)
            self._look(running)
        if self.journal.stopped:
            raise _stop(self.journal.stopped)
        if status:
            raise TrainerError(self._failed(f"ended with status {status}", status))
        self._settle()
        self._hand_on()

    def _command(self) -> list[str]:
        return command(
            self.job.stage,
            self.job.seed,
            engines.cluster(self.engine),
            self.places,
            resume=self.start > 0,
            known=engines.known(self.engine, self.job.stage.kind),
            python=engines.interpreter(self.engine),
            adapt=lambda flags: engines.adapted(self.engine, flags),
        )

    @contextmanager
    def _served(self, token: str) -> Iterator[str]:
        """The service of the stage in a thread; yields its address."""
        tokenizer = load_tokenizer(self.job.model)
        stage, rows = self.job.stage, list(rowfile.read(self.job.rows))

        def rendered(row: rowfile.Row) -> Prompt:
            return read(tokenizer, row, self.job.modes)

        def continued(row: rowfile.Row, said: str) -> Prompt:
            return continuation(tokenizer, row, said, self.job.modes)

        def rollouts() -> Rollouts:  # the job is ended as stalled before its samples are given up
            patience = 2 * self.engine.stall_seconds
            return Rollouts(stage, rows, self.judge, self.journal, rendered, patience, self._say, continued)

        service = self._service = Service(self.judge.scorer, access=Access(token), rollouts=rollouts, say=self._say)
        with _listening(self.engine) as channel, background(service, channel) as address:
            yield address

    def _watched(self, running: Running) -> int:
        """Follows the job; its status. A stop of the service ends it.

        Raises:
            TrainerError: it stalled, or cannot go on.
        """
        moved, last = time.monotonic(), self._progress()
        while (status := running.poll()) is None:
            time.sleep(_LOOK_SECONDS)
            self._look(running)
            now = self._progress()
            if now != last:
                moved, last = time.monotonic(), now
            if self.journal.stopped:
                running.end()
                return 0
            if self._service is not None and not self._service.is_up():
                running.end()
                raise TrainerError(
                    self._failed("was ended, because the service of the stage has ended; see standard error")
                )
            if time.monotonic() - self._doomed > _LAST_WORDS_SECONDS:
                running.end()
                raise TrainerError(self._failed("could not start one of its actors"))
            if time.monotonic() - moved > self.engine.stall_seconds:
                running.end()
                self._look(running)
                raise TrainerError(
                    self._failed(
                        f"made no progress for {self.engine.stall_seconds:g} s (engine.stall_seconds) and was ended"
                    )
                )
        return status

    def _progress(self) -> tuple[int, ...]:
        """Numbers that grow while something comes of the job; its talk is none: it repeats itself while it waits."""
        rollouts = self._service.stage if self._service is not None else None
        heard = rollouts.heard if rollouts is not None else 0
        return len(self.journal.groups), heard, len(self.journal.finished), self.told, self._saved

    def _look(self, running: Running) -> None:
        """Takes in what is new of the job."""
        for line in running.lines():
            self.recent.append(line)
            if told.is_fatal(line):
                self._doomed = min(self._doomed, time.monotonic())
            if (found := told.step_numbers(line)) is not None:
                self.numbers[found[0]] = found[1]
        self._tell()

    def _tell(self) -> None:
        """The events of steps that both the service and the trainer have finished, in order, and of checkpoints."""
        while self.told in self.numbers and self.told in self.journal.finished:
            self._emit(self.told, {**self.journal.finished[self.told], **self.numbers[self.told]})
            self.told += 1
        saved = saved_steps(self.places.checkpoints)
        if self._saved < saved <= self.told:
            self._saved = saved
            self._emit_checkpoint(saved)

    def _emit(self, step: int, numbers: Mapping[str, float]) -> None:
        found = dict(numbers)
        if "generate_seconds" in found:  # OpenRLHF's own includes the wait for the judge, which has a name of its own
            found["generate_seconds"] = max(0.0, found["generate_seconds"] - found.get("verify_seconds", 0.0))
        found = {name: round(value, 4) if name.endswith("_seconds") else value for name, value in found.items()}
        self.job.events.emit("step", self.job.folder.name, step, **found)
        if step >= self.start:
            self.board.write(step, found)
            self.bar.advance(found)

    def _emit_checkpoint(self, step: int) -> None:
        self.job.events.emit("checkpoint", stage=self.job.folder.name, step=step)

    def _settle(self) -> None:
        """All steps, as the service and the trainer count them: what the output lost, the trainer's own files have.

        Raises:
            TrainerError: they are not exactly those of the stage.
        """
        steps = self.job.stage.steps
        if self.told < steps:
            for step, numbers in told.board(self.places.board).items():
                self.numbers.setdefault(step, numbers)
            self._tell()
        judged, trained = sorted(self.journal.finished), max(self.numbers, default=self.start - 1) + 1
        if self.told != steps or judged != list(range(self.start, steps)) or trained > steps:
            raise TrainerError(
                f"stage {self.job.stage.name!r}: OpenRLHF ended after {trained} updates, and {self.start + len(judged)} of"
                f" {steps} steps were judged; see {self.job.folder / 'train.log'}"
            )

    def _hand_on(self) -> None:
        """The model that OpenRLHF wrote, with the tokenizer that it began with, to `job.output`, complete or absent."""
        from transformers import AutoTokenizer

        if not (self.part / "config.json").is_file() or not any(self.part.glob("*.safetensors")):
            raise TrainerError(f"OpenRLHF ended without writing a model to {self.part}")
        tokenizer = AutoTokenizer.from_pretrained(str(self.job.model))
        for trace in ("is_local", "local_files_only"):  # of how it was loaded
            tokenizer.init_kwargs.pop(trace, None)
        tokenizer.save_pretrained(self.part)
        checkpoints.flush(self.part)
        self.part.rename(self.job.output)

    def _say(self, line: str) -> None:
        """What the service has to tell goes where the job's output goes, and comes back from there with it."""
        with suppress(OSError), self.log.open("a", encoding="utf-8", errors="backslashreplace") as out:
            out.write(f"cascade: {line}\n")

    def _failed(self, how: str, status: int = 0) -> str:
        why = told.reason(list(self.recent), engines.interpreter(self.engine), status) or unbegun(self.recent)
        return (
            f"stage {self.job.stage.name!r}: OpenRLHF {how} at step {self.told} of {self.job.stage.steps}"
            + (f": {why}" if why else "")
            + f"; see {self.job.folder / 'train.log'}"
        )


def _listening(engine: Engine) -> socket.socket:
    """A socket where the job reaches it.

    Raises:
        TrainerError: this machine has no such address.
    """
    place = host(engine)
    try:
        return bound(place, 0)
    except UsageError as cause:
        why = str(cause).partition(";")[0]
        raise TrainerError(f"engine.host must be a name or address of this machine: {why}") from cause


def _stop(why: str) -> TrainerError | TooManyFailures:
    return TrainerError(why) if _UNWRITTEN.match(why) else TooManyFailures(why)
