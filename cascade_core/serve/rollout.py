"""The steps of one stage whose samples come one by one from an engine: who gets which task, and what a sample is worth.

An engine that orders its data itself is given slots in place of tasks, 0 … n − 1, and asks here what stands in one. Visit k of a slot is step
`start + k`, whose task is row `step · n + slot` of `prompts.jsonl`: order, mixing and repetition are the core's, as for every trainer.
Samples are judged as they come; when all of a step are there, `judge.Judge` makes advantages of them, writes
`rollouts/step-*.jsonl`, and every sample is answered. A whole step and not a group, since batch statistics and the error rate are of steps.

Nothing waits for ever: a sample that its engine gives up is reported and counts as not judged, and so does one that has not come when
nothing of its step has come for `patience` seconds. A stage in which too much could not be judged is stopped, and says why to whoever asks.

What must outlive this process is in `service.jsonl` in the stage's folder: which attempt (a name that the starter gives; a job
that starts anew has another), who visited what, the metrics of finished steps. A service that is started again for the same attempt goes on: a
sample of a finished step gets the answer that the step's file holds, others are sent again by those who wait for them. Another
attempt begins at its own step, and later steps of the one before are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cascade_core.domain import Score
from cascade_core.errors import ScoringError, TooManyFailures
from cascade_core.judge import Judge
from cascade_core.rows import Row
from cascade_core.serve.conversation import Continue, Talk, has_turns
from cascade_core.serve.desk import Desk, closing
from cascade_core.serve.handing import answers
from cascade_core.serve.inflight import Entry, Key
from cascade_core.serve.journal import Journal
from cascade_core.serve.wire import Refused, a_name, a_number, an_object, wrong
from cascade_core.settings import Stage
from cascade_core.template import Prompt
from cascade_core.verdict import Verdict

Render = Callable[[Row], Prompt]

_SAMPLE = ("group", "index", "response", "truncated", "tokens", "turns", "gave_up")


@dataclass
class _Step:
    """One step: its samples so far by (slot, index), and their answers to come."""

    done: asyncio.Future[dict[tuple[int, int], dict[str, Any]]]
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    verdicts: dict[tuple[int, int], list[Future[Verdict]]] = field(default_factory=dict)  # its own, those beside it
    own: dict[Key, Entry] = field(default_factory=dict)
    turns: dict[tuple[int, int], int] = field(default_factory=dict)  # of conversations under way
    last: float = 0.0  # when something of it came, on the loop's clock
    begun: bool = False  # being judged


class Rollouts:
    """The steps of a stage; for one event loop.

    Args:
        rows: `prompts.jsonl` of the stage.
        render: a row to what the model reads.
        patience: seconds for which nothing of a begun step may come.
        say: where one line goes.
        continued: a row and what the environment says to what the model reads next; without it, no conversations
            are held.
    """

    def __init__(
        self,
        stage: Stage,
        rows: Sequence[Row],
        judge: Judge,
        journal: Journal,
        render: Render,
        patience: float,
        say: Callable[[str], None],
        continued: Continue | None = None,
    ) -> None:
        self._stage, self._rows, self._judge, self._journal = stage, rows, judge, journal
        self._patience, self._say = patience, say
        self._talk = Talk(judge.scorer, sorted({str(row["domain"]) for row in rows}), continued)
        self._slots, self._samples = stage.rollout.prompts_per_step, stage.rollout.samples_per_prompt
        self._read = lru_cache(4 * self._slots)(
            lambda step, slot: render(self._row(step, slot))
        )  # its samples need it too
        self._steps: dict[int, _Step] = {}
        self.heard = 0
        """Samples and turns of conversations that came, each counted once, however often it is sent again."""
        self._ending = False
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, desk: Desk) -> None:
        """Where samples are handed in; called once, before anything is asked."""
        self._desk = desk

    @property
    def stopped(self) -> str:
        """Why no step is judged any more; `""` while the stage goes on."""
        return self._journal.stopped

    async def slot(self, data: Any) -> dict[str, Any]:
        """The task of a slot for a group that is about to be sampled; the same group always gets the same.

        Raises:
            Refused: no such slot, or the stage has no more steps.
        """
        request = an_object(data, ("slot", "group"))
        await self._talk.begin()
        slot = a_number(request.get("slot"), "body.slot", 0, self._slots - 1)
        group = a_name(request.get("group"), "body.group")
        place = self._journal.groups.get(group)
        if place is not None and place[1] != slot:
            raise self._conflict(group, f"slot {place[1]}, as before")
        if place is None:
            if self.stopped:
                raise Refused(self.stopped, status=409)
            step = self._journal.next_step(slot)
            if step >= self._stage.steps:
                raise Refused(
                    f"slot {slot} has been visited for all {self._stage.steps} steps of the stage", status=409
                )
            if step not in self._journal.finished:  # without this slot's samples, for want of which it was given up
                self._open(step)
            try:
                place = self._journal.visit(group, step, slot)
            except OSError as cause:
                raise self._unwritten(f"the visit of slot {slot}", cause) from cause
        step, slot = place
        row = self._row(step, slot)
        read = self._read(step, slot)
        rollout = self._stage.rollout
        sampling = {
            "temperature": rollout.temperature,
            "top_p": rollout.top_p,
            "top_k": rollout.top_k,
            "max_tokens": rollout.max_response_tokens,
        }
        task = {
            "domain": row["domain"],
            "id": row["id"],
            "mode": row.get("mode") or "",
            "prompt": read.text,
            "prefill": read.prefill,
            "ids": read.ids,
        }
        found = {"step": step, "slot": slot, "samples": self._samples, **task, "sampling": sampling}
        most = self._talk.most_turns(row)
        return {**found, "turns": most} if most else found

    async def reply(self, data: Any) -> dict[str, Any]:
        """What the environment says in the conversation of a sample (`conversation.py`).

        Raises:
            Refused: it is no conversation of a group that was given a slot, or the stage has stopped.
        """
        request = an_object(data, ("group", "index", "turns"))
        _, step, slot = self._place(request)
        index = a_number(request.get("index"), "body.index", 0, self._samples - 1)
        if self.stopped:
            raise Refused(self.stopped, status=409)
        await self._talk.check(self._row(step, slot), request.get("turns"))
        if step in self._journal.finished:  # it was given up meanwhile, and is told so when it is handed in
            return {"said": None}
        state, turns = self._open(step), len(request["turns"])
        if turns > state.turns.get((slot, index), 0):
            state.turns[slot, index], self.heard = turns, self.heard + 1
        return await self._talk.reply(self._row(step, slot), request.get("turns"))

    def _place(self, request: Mapping[str, Any]) -> tuple[str, int, int]:
        """Name, step and slot of a request's group."""
        group = a_name(request.get("group"), "body.group")
        place = self._journal.groups.get(group)
        if place is None:
            raise wrong("body.group", group, "that of a group that asked for a slot")
        return group, *place

    async def sample(self, data: Any) -> dict[str, Any]:
        """What a sample is worth, once its whole step has been judged.

        Raises:
            Refused: it is no sample of a group that was given a slot, another one came in its place, or the stage has stopped.
        """
        request = an_object(data, _SAMPLE)
        if has_turns(request):
            await self._talk.begin()
        group, step, slot = self._place(request)
        index = a_number(request.get("index"), "body.index", 0, self._samples - 1)
        row = self._sampled(request, step, slot, index)
        if self.stopped:
            raise Refused(self.stopped, status=409)
        if step in self._journal.finished:
            return self._stored(step)[slot, index]
        state = self._open(step)
        self._take(state, (slot, index), row, group)
        if len(state.rows) == self._slots * self._samples:
            self._begin(step, state)
        return (await asyncio.shield(state.done))[slot, index]

    def status(self, after: int) -> dict[str, Any]:
        """Where the stage is: metrics of the finished steps after that one, what is waited for, why it stopped."""
        done = [
            {"step": step, "metrics": found} for step, found in sorted(self._journal.finished.items()) if step > after
        ]
        waiting = {
            str(step): {"samples": len(state.rows), "of": self._slots * self._samples}
            for step, state in sorted(self._steps.items())
        }
        about = {"stage": self._stage.name, "attempt": self._journal.attempt, "start_step": self._journal.start}
        return {**about, "steps": self._stage.steps, "done": done, "waiting": waiting, "stopped": self.stopped}

    def _row(self, step: int, slot: int) -> Row:
        return self._rows[step * self._slots + slot]

    def _sampled(self, request: Mapping[str, Any], step: int, slot: int, index: int) -> Row:
        """The sample as a row of the step, the same as every trainer makes it."""
        gave_up = request.get("gave_up")
        if gave_up is not None:
            return self._missing(step, slot, index, a_name(gave_up, "body.gave_up"))
        if not isinstance(request.get("response"), str):
            raise wrong("body.response", request.get("response"), "a text, or gave_up must say why there is none")
        if not isinstance(request.get("truncated"), bool):
            raise wrong("body.truncated", request.get("truncated"), "true or false")
        tokens = a_number(request.get("tokens"), "body.tokens", 0, 2**31)
        row = self._row(step, slot)
        more = {"prefill": self._read(step, slot).prefill, "truncated": request["truncated"], "tokens": tokens}
        if has_turns(request):
            more |= self._talk.earlier(row, request["turns"])
        return {**row, "response": request["response"], **more, "sample": index, "group": f"{step}-{slot}"}

    def _missing(self, step: int, slot: int, index: int, why: str) -> Row:
        """A sample that does not exist: its verdict is that it could not be judged."""
        row = {**self._row(step, slot), "response": None, "prefill": "", "truncated": False, "tokens": 0}
        return {**row, "sample": index, "group": f"{step}-{slot}", "gave_up": why}

    def _open(self, step: int) -> _Step:
        if self._ending:
            raise closing(ScoringError("send it again"))
        loop = asyncio.get_running_loop()
        state = self._steps.get(step)
        if state is None:
            state = self._steps[step] = _Step(loop.create_future())
            state.done.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )  # perhaps nobody waits any more
        state.last = loop.time()
        return state

    def _take(self, state: _Step, place: tuple[int, int], row: Row, group: str) -> None:
        known = state.rows.get(place)
        if known is None:
            self._put(state, place, row)
            self.heard += 1
        elif known != row and "gave_up" not in known and "gave_up" not in row:  # the first word counts
            raise self._conflict(f"{group}, sample {place[1]}", "the response that came first")

    def _put(self, state: _Step, place: tuple[int, int], row: Row) -> None:
        """A new sample, whose verdicts begin; that of one that does not exist is known."""
        asked = self._judge.asked([row])
        if "gave_up" in row:
            failed: Future[Verdict] = Future()
            failed.set_result(Verdict.of(Score.failed(f"its engine gave it up: {row['gave_up']}")))
            state.verdicts[place] = [failed] * len(asked)
        else:
            state.verdicts[place] = [entry.verdict for entry in self._desk.begin(asked, state.own)]
        state.rows[place] = row

    def _begin(self, step: int, state: _Step) -> None:
        if not state.begun:
            state.begun = True
            task = asyncio.get_running_loop().create_task(self._finish(step, state))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, step: int, state: _Step) -> None:
        """Judges a complete step and answers its samples; steps in turn, as their error rate is counted over the last ones."""
        rows = [state.rows[place] for place in sorted(state.rows)]
        found = [state.verdicts[place] for place in sorted(state.rows)]
        verdicts = [own for own, *_ in found] + [one for _, *beside in found for one in beside]
        async with self._turn:
            try:
                judged = await asyncio.to_thread(self._judge.judge, step, rows, verdicts)
                self._journal.finish(step, judged.metrics)
                state.done.set_result(answers(judged.rows))
            except TooManyFailures as cause:
                state.done.set_exception(self._stop(str(cause)))
            except ScoringError as cause:
                state.done.set_exception(closing(cause))
            except OSError as cause:  # a full disk: the step is not stored, so it is not done
                state.done.set_exception(self._unwritten(f"step {step}", cause))
            except Exception as cause:  # noqa: BLE001 - whoever waits must be told, whatever it was
                why = f"step {step} could not be judged: {type(cause).__name__}: {cause}"
                state.done.set_exception(self._stop(why))
        self._steps.pop(step, None)

    def _unwritten(self, what: str, cause: OSError) -> Refused:
        return self._stop(f"{what} could not be written: {cause.strerror or cause}: {cause.filename or ''}")

    def _stop(self, why: str) -> Refused:
        """Ends the stage; what is told to whoever asks."""
        self._journal.stop(why)
        self._say(f"stopped: {why}")
        refusal = Refused(why, status=409)
        self._dismiss(refusal)
        return refusal

    def _dismiss(self, refusal: Refused) -> None:
        """Tells it to the samples of all steps that are not being judged."""
        for step, state in list(self._steps.items()):
            if not state.begun:
                del self._steps[step]
                state.done.set_exception(refusal)

    def _stored(self, step: int) -> dict[tuple[int, int], dict[str, Any]]:
        return answers(self._journal.rows(step))

    def drain(self) -> None:
        """The service ends: samples of incomplete steps are to be sent again to the next one."""
        self._ending = True
        self._dismiss(closing(ScoringError("send the sample again")))

    def close(self) -> None:
        """The service has ended."""
        self._journal.close()

    async def watch(self) -> None:
        """Completes steps of which nothing has come for too long; runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(5.0, self._patience / 4))
            for step, state in list(self._steps.items()):
                if not state.begun and loop.time() - state.last > self._patience:
                    self._complete(step, state)

    def _complete(self, step: int, state: _Step) -> None:
        why = f"no sample of the step came for {self._patience:g} s"
        wanted = [(slot, index) for slot in range(self._slots) for index in range(self._samples)]
        absent = [place for place in wanted if place not in state.rows]
        self._say(f"step {step}: {len(absent)} of {len(wanted)} samples have not come: {why}")
        for slot, index in absent:
            self._put(state, (slot, index), self._missing(step, slot, index, why))
        self._begin(step, state)

    def _conflict(self, what: str, allowed: str) -> Refused:
        message = f"group {what[:120]} came again with something else"
        return Refused(message, status=409, field="body", found="something else", allowed=allowed)
