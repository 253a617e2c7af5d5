"""Whole groups to finished rewards and advantages: alone, or once all groups of their batch are there.

A request is one group: the responses to one task. A batch is named by its clients, who also say how many groups it has; its groups wait for
each other, and are judged as one step by `judge.Judge`, the same code as in training, so that `Domain.rewards` sees the final
statistics of the batch. Verdicts begin when a group arrives, whatever it waits for, and are those of the desk like all others. A batch that
stays incomplete is given up after a time: its groups are told how many were there. A group that is sent again joins itself; of
a finished batch, the answers and the digests of its groups are kept for that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from cascade_core.errors import ScoringError
from cascade_core.judge import Judge
from cascade_core.refusals import refusals
from cascade_core.rows import Row
from cascade_core.serve.desk import Desk, closing
from cascade_core.serve.index import Index
from cascade_core.serve.inflight import Entry, Key, digest
from cascade_core.serve.kept import Kept
from cascade_core.serve.wire import Refused, a_list, a_name, a_number, a_row, an_object, dump, wrong
from cascade_core.settings import Stage

_KEYS = ("rows", "group", "batch", "settings")
SETTINGS = ("advantage", "overlong", "max_response_tokens")
LARGEST_BATCH = 65_536
"""Groups in a batch."""
_GROUP_BYTES = 500  # of a group that is kept, beside its name and answer


@dataclass(eq=False)
class Batch:
    """Groups that wait for each other, by their names: digests, and in `done` the answers as JSON; `rows` until these are there."""

    stage: Stage
    size: int
    done: asyncio.Future[dict[str, bytes]]
    groups: dict[str, bytes] = field(default_factory=dict)
    rows: list[tuple[Row, Entry]] = field(default_factory=list)
    own: dict[Key, Entry] = field(default_factory=dict)


class Groups:
    """The barrier of groups and batches; for one event loop.

    Args:
        needs_batch: domains whose rewards use the statistics of a batch.
        seconds: how long a batch may stay incomplete.
        kept: where finished batches are kept.
        most: batches that are open at once.
    """

    def __init__(
        self, desk: Desk, needs_batch: frozenset[str], seconds: float, kept: Kept[str, Batch], most: int = 256
    ) -> None:
        self._desk, self._needs_batch, self._seconds = desk, needs_batch, seconds
        self._kept, self._most = kept, most
        self._open: dict[str, Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    @property
    def waiting(self) -> int:
        """Groups that wait for others of their batch, or for its rewards."""
        return sum(len(batch.groups) for batch in self._open.values())

    async def rewards(self, data: Any, index: Index) -> dict[str, Any]:
        """The answer to one group.

        Raises:
            Refused: it is no group, contradicts its batch, or the batch stayed incomplete.
        """
        request = an_object(data, _KEYS)
        stage, group = _stage(request.get("settings")), a_name(request.get("group", "group"), "body.group")
        rows = _rows(request, group, tuple(self._desk.scorer.domains), index)
        if request.get("batch") is not None:
            name, batch = self._batch(request["batch"], stage)
        elif self._needs_batch & {row["domain"] for row in rows}:
            raise wrong("body.batch", None, "given for a domain whose rewards use the statistics of the whole batch")
        else:
            name, batch = "", self._begun(stage, 1)
        self._add(name, batch, group, rows)
        told = await asyncio.shield(batch.done)
        return {"rows": json.loads(told[group])}

    def drain(self) -> None:
        """The service ends: groups of incomplete batches are to be sent again to the next one."""
        self._ending = True
        for name, batch in list(self._open.items()):
            self._give_up(name, batch, _ending())

    def _begun(self, stage: Stage, size: int) -> Batch:
        done: asyncio.Future[dict[str, bytes]] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda future: future.cancelled() or future.exception())  # perhaps nobody waits any more
        return Batch(stage, size, done)

    def _batch(self, given: Any, stage: Stage) -> tuple[str, Batch]:
        said = an_object(given, ("id", "groups"), "body.batch")
        name = a_name(said.get("id"), "body.batch.id")
        size = a_number(said.get("groups"), "body.batch.groups", 1, LARGEST_BATCH)
        batch = self._open.get(name) or self._kept.get(name) or self._opened(name, stage, size)
        if (batch.size, batch.stage) != (size, stage):
            raise Refused(
                f"batch {name[:80]!r} was opened with {batch.size} groups and other settings; they must be the same for all",
                status=409,
                field="body.batch",
                found=size,
                allowed=f"{batch.size} groups, and the settings of the first",
            )
        return name, batch

    def _opened(self, name: str, stage: Stage, size: int) -> Batch:
        if self._ending:
            raise _ending()
        if len(self._open) >= self._most:
            raise Refused(f"{self._most} batches are incomplete; ask again later", status=503, again=5)
        batch = self._open[name] = self._begun(stage, size)
        timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, name, batch)
        batch.done.add_done_callback(lambda _: timer.cancel())
        return batch

    def _add(self, name: str, batch: Batch, group: str, rows: list[Row]) -> None:
        content = digest(rows)
        if group in batch.groups:
            if batch.groups[group] != content:
                raise Refused(
                    f"group {group[:80]!r} of this batch had other rows",
                    status=409,
                    field="body.group",
                    found=group,
                    allowed="a name that no other group of the batch has",
                )
            return
        if len(batch.groups) == batch.size:
            raise wrong("body.group", group, f"one of the {batch.size} groups that the batch has already")
        batch.rows += zip(rows, self._desk.begin(rows, batch.own), strict=True)
        batch.groups[group] = content
        if len(batch.groups) == batch.size:
            task = asyncio.get_running_loop().create_task(self._judge(name, batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _judge(self, name: str, batch: Batch) -> None:
        """Answers a complete batch, and keeps the answers of one that has a name; one that failed may be sent again as a whole."""
        judge = Judge(self._desk.scorer, batch.stage, 0, None, 1.0)
        rows, verdicts = [row for row, _ in batch.rows], [entry.verdict for _, entry in batch.rows]
        await asyncio.wait({entry.future for _, entry in batch.rows})  # no thread waits for them
        batch.rows, batch.own = [], {}
        try:
            found = _answers((await asyncio.to_thread(judge.judge, 0, rows, verdicts)).rows)
        except ScoringError as cause:
            batch.done.set_exception(closing(cause))
        except Exception as cause:  # noqa: BLE001 - whoever waits must be told, whatever it was
            batch.done.set_exception(cause)
        else:
            batch.done.set_result(found)
            if name:
                size = sum(_GROUP_BYTES + len(group) + len(told) for group, told in found.items())
                self._kept.put(name, batch, size, len(found))
        self._open.pop(name, None)

    def _expire(self, name: str, batch: Batch) -> None:
        what = f"{len(batch.groups)} of {batch.size} groups of batch {name[:80]!r} came within {self._seconds:g} s"
        self._give_up(name, batch, Refused(what, status=504))

    def _give_up(self, name: str, batch: Batch, refusal: Refused) -> None:
        if len(batch.groups) < batch.size:
            del self._open[name]
            batch.done.set_exception(refusal)


def _ending() -> Refused:
    return closing(ScoringError("send the group again"))


def _answers(rows: Sequence[Row]) -> dict[str, bytes]:
    """What is told of each group, by its name."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        told = {name: row[name] for name in ("score", "reward", "advantage", "masked")}
        found.setdefault(row["group"], []).append(told)
    return {group: dump(told) for group, told in found.items()}


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
