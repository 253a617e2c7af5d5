"""Whole groups to finished rewards and advantages: alone, or once all groups of their batch are there.

A request is one group: the responses to one task. A batch is named by its clients, who also say how many groups it has; its groups wait for
each other, and are judged as one step by `judge.Judge`, the same code as in training, so that `Domain.rewards` sees the final
statistics of the batch. Verdicts begin when a group arrives, whatever it waits for. A batch that stays incomplete is given up after a
time: its groups are told how many were there. A group that is sent again joins itself; finished batches are kept for that.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from cascade_core.errors import ScoringError
from cascade_core.judge import Judge
from cascade_core.refusals import refusals
from cascade_core.rows import Row
from cascade_core.scoring import Scorer
from cascade_core.serve.desk import closing
from cascade_core.serve.index import Index
from cascade_core.serve.wire import Refused, a_list, a_name, a_number, a_row, an_object, wrong
from cascade_core.settings import Stage

_KEYS = ("rows", "group", "batch", "settings")
SETTINGS = ("advantage", "overlong", "max_response_tokens")
LARGEST_BATCH = 65_536
"""Groups in a batch."""


@dataclass
class _Batch:
    """Groups that wait for each other; `done` has the judged rows of each group by its name."""

    stage: Stage
    size: int
    done: asyncio.Future[Mapping[str, list[Row]]]
    judge: Judge
    groups: dict[str, list[Row]] = field(default_factory=dict)


class Groups:
    """The barrier of groups and batches; for one event loop.

    Args:
        needs_batch: domains whose rewards use the statistics of a batch.
        seconds: how long a batch may stay incomplete.
        most: batches that are open or kept at once.
    """

    def __init__(self, scorer: Scorer, needs_batch: frozenset[str], seconds: float, most: int = 256) -> None:
        self._scorer, self._needs_batch, self._seconds, self._most = scorer, needs_batch, seconds, most
        self._batches: OrderedDict[str, _Batch] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    @property
    def waiting(self) -> int:
        """Groups that wait for others of their batch."""
        return sum(len(batch.groups) for batch in self._batches.values() if not batch.done.done())

    async def rewards(self, data: Any, index: Index) -> dict[str, Any]:
        """The answer to one group.

        Raises:
            Refused: it is no group, contradicts its batch, or the batch stayed incomplete.
        """
        request = an_object(data, _KEYS)
        stage, group = _stage(request.get("settings")), a_name(request.get("group", "group"), "body.group")
        rows = _rows(request, group, tuple(self._scorer.domains), index)
        if request.get("batch") is None:
            if self._needs_batch & {row["domain"] for row in rows}:
                allowed = "given for a domain whose rewards use the statistics of the whole batch"
                raise wrong("body.batch", None, allowed)
            batch = self._open(stage, 1)
        else:
            batch = self._batch(request["batch"], stage)
        self._add(batch, group, rows)
        judged = (await asyncio.shield(batch.done))[group]
        return {"rows": [{name: row[name] for name in ("score", "reward", "advantage", "masked")} for row in judged]}

    def drain(self) -> None:
        """The service ends: groups of incomplete batches are to be sent again to the next one."""
        self._ending = True
        for batch in self._batches.values():
            if len(batch.groups) < batch.size and not batch.done.done():
                batch.done.set_exception(closing(ScoringError("send the group again")))

    def _open(self, stage: Stage, size: int) -> _Batch:
        done: asyncio.Future[Mapping[str, list[Row]]] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda future: future.cancelled() or future.exception())  # perhaps nobody waits any more
        return _Batch(stage, size, done, Judge(self._scorer, stage, 0, None, 1.0))

    def _batch(self, given: Any, stage: Stage) -> _Batch:
        said = an_object(given, ("id", "groups"), "body.batch")
        name = a_name(said.get("id"), "body.batch.id")
        size = a_number(said.get("groups"), "body.batch.groups", 1, LARGEST_BATCH)
        batch = self._batches.get(name)
        if batch is None:
            self._make_room()
            batch = self._batches[name] = self._open(stage, size)
            loop = asyncio.get_running_loop()
            loop.call_later(self._seconds, self._give_up, name, batch)
        if (batch.size, batch.stage) != (size, stage):
            raise Refused(
                f"batch {name[:80]!r} was opened with {batch.size} groups and other settings; they must be the same for all",
                status=409,
                field="body.batch",
                found=size,
                allowed=f"{batch.size} groups, and the settings of the first",
            )
        return batch

    def _make_room(self) -> None:
        for name in [name for name, batch in self._batches.items() if batch.done.done()]:
            if len(self._batches) < self._most:
                return
            del self._batches[name]
        if len(self._batches) >= self._most:
            raise Refused(f"{self._most} batches are incomplete; ask again later", status=503, again=5)

    def _add(self, batch: _Batch, group: str, rows: list[Row]) -> None:
        if group in batch.groups:
            if batch.groups[group] != rows:
                raise Refused(
                    f"group {group[:80]!r} of this batch had other rows",
                    status=409,
                    field="body.group",
                    found=group,
                    allowed="a name that no other group of the batch has",
                )
            return
        if self._ending:
            raise closing(ScoringError("send the group again"))
        if len(batch.groups) == batch.size:
            raise wrong("body.group", group, f"one of the {batch.size} groups that the batch has already")
        batch.groups[group] = rows
        try:
            for row in rows:
                batch.judge.hand_over(row)
        except ScoringError as cause:
            raise closing(cause) from cause
        if len(batch.groups) == batch.size:
            task = asyncio.get_running_loop().create_task(self._judge(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _judge(self, batch: _Batch) -> None:
        rows = [row for group in batch.groups.values() for row in group]
        try:
            judged = await asyncio.to_thread(batch.judge.judge, 0, rows)
        except ScoringError as cause:
            batch.done.set_exception(closing(cause))
            return
        except Exception as cause:  # noqa: BLE001 - whoever waits must be told, whatever it was
            batch.done.set_exception(cause)
            return
        found: dict[str, list[Row]] = {}
        for row in judged.rows:
            found.setdefault(row["group"], []).append(row)
        if not batch.done.done():
            batch.done.set_result(found)

    def _give_up(self, name: str, batch: _Batch) -> None:
        if len(batch.groups) < batch.size and not batch.done.done():
            what = f"{len(batch.groups)} of {batch.size} groups of batch {name[:80]!r} came within {self._seconds:g} s"
            batch.done.set_exception(Refused(what, status=504))
            self._batches.pop(name, None)


def _rows(request: Mapping[str, Any], group: str, domains: Sequence[str], index: Index) -> list[Row]:
    given = a_list(request.get("rows"), "body.rows")
    rows = [a_row(row, f"body.rows[{number}]", domains, index) for number, row in enumerate(given)]
    for number, row in enumerate(rows):
        if (row["domain"], row["id"]) != (rows[0]["domain"], rows[0]["id"]):
            raise wrong(f"body.rows[{number}].id", row["id"], f"that of the group's one task, {rows[0]['id'][:80]!r}")
        row["tokens"] = a_number(row.get("tokens", 0), f"body.rows[{number}].tokens", 0, 2**31)
        row["group"] = group
    return rows


def _stage(given: Any) -> Stage:
    """Settings of a stage that what is asked for depends on; the defaults are a stage's."""
    said = an_object({} if given is None else given, SETTINGS, "body.settings")
    settings: dict[str, Any] = {"name": "rewards", "domains": ["any"], "steps": 1}
    settings |= {name: said[name] for name in ("advantage", "overlong") if name in said}
    if "max_response_tokens" in said:
        settings["rollout"] = {"max_response_tokens": said["max_response_tokens"]}
    try:
        stage = Stage.model_validate(json.loads(json.dumps(settings)))
    except ValidationError as cause:
        first, refusal = cause.errors(include_url=False)[0], next(refusals(cause, settings, Stage))
        where = ".".join(str(part) for part in refusal.where if part != "rollout")
        raise wrong(f"body.settings.{where}", first["input"], _allowed(refusal.what)) from None
    _check_length(stage)
    return stage


def _allowed(refusal: str) -> str:
    """What a refusal of a spec says that must be there, as a word of this interface."""
    if refusal.startswith("unknown key"):
        return f"absent (known: {refusal.partition('(allowed: ')[2]}"
    if refusal.endswith(" is missing"):
        return f"an object with {refusal.removesuffix(' is missing')}"
    return refusal.removeprefix("must be ").partition(", found")[0]


def _check_length(stage: Stage) -> None:
    soft = getattr(stage.overlong, "soft", None)
    if soft is not None and soft.buffer > stage.rollout.max_response_tokens:
        allowed = f"at most max_response_tokens, {stage.rollout.max_response_tokens}"
        raise wrong("body.settings.overlong.soft.buffer", soft.buffer, allowed)
