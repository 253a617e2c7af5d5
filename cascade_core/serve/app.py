"""The endpoints, as a Starlette application: what is asked, of whom, and how a refusal looks.

    POST /score        {"rows": [row, …]} → {"scores": [{value, reward?, note?, metrics?, error?}, …]}
    POST /rewards      {"rows": [row, …], "group"?, "batch"?: {"id", "groups"}, "settings"?} → rewards and advantages
    POST /get_reward   OpenRLHF's shape
    POST /slot, /reply, /sample, GET /stage    the steps of a stage, where one is served
    GET  /domains /health /metrics /openapi.json

Every answer but that of `/metrics` is one JSON object; a refusal has `error` (one sentence), and `field`, `found` and `allowed` where a field
is wrong. Nothing that a request holds ends the service: what was not foreseen is told as status 500, and on standard error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cascade_core.domain import Score
from cascade_core.rows import score_json
from cascade_core.scoring import Scorer
from cascade_core.serve import reward
from cascade_core.serve.access import Access
from cascade_core.serve.answering import Answering, answered, numbers, outside
from cascade_core.serve.desk import Desk
from cascade_core.serve.groups import Batch, Groups
from cascade_core.serve.index import Index
from cascade_core.serve.inflight import Entry, Inflight, Key
from cascade_core.serve.kept import Kept
from cascade_core.serve.metrics import Metrics
from cascade_core.serve.rollout import Rollouts
from cascade_core.serve.schema import openapi
from cascade_core.serve.watch import Watch
from cascade_core.serve.wire import Refused, a_list, a_row, an_object

Handler = Callable[["Service", Any], Awaitable[dict[str, Any]]]

_KNOWN = (
    "POST /score /rewards /get_reward /slot /reply /sample, GET /stage /slow /domains /health /metrics /openapi.json"
)


def say(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"cascade: {line}\n".encode("utf-8", "backslashreplace").decode())
    sys.stderr.flush()


@dataclass(frozen=True)
class Limits:
    """What one service may hold.

    Times are in seconds. `unjudged` is the number that `/get_reward` gives for a sample that could not be judged; `None` is JSON's null.
    """

    most_rows: int = 16_384
    body_mib: int = 16
    kept: int = 100_000
    kept_seconds: float = 3600.0
    slow_seconds: float = 60.0
    batch_seconds: float = 600.0
    unjudged: float | None = None


@dataclass
class Service:
    """What the endpoints share; made inside the event loop that serves."""

    scorer: Scorer
    index: Index = field(default_factory=Index)
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    needs_batch: frozenset[str] = frozenset()
    rollouts: Callable[[], Rollouts] | None = None
    say: Callable[[str], None] = say
    is_up: Callable[[], bool] = lambda: True
    """Whether somebody still listens, where that is a thread of this process."""

    def begin(self) -> None:
        """Makes what belongs to the event loop."""
        self.metrics, limits = Metrics(), self.limits
        most_bytes = 64 * limits.body_mib * 2**20
        self.kept: Kept[Key, Entry] = Kept(limits.kept, limits.kept_seconds, most_bytes // 4)
        batches: Kept[str, Batch] = Kept(limits.kept, limits.kept_seconds, most_bytes // 4)
        self.inflight = Inflight(self.kept)
        self.desk = Desk(self.scorer, self.inflight, self.metrics, most_rows=limits.most_rows, most_bytes=most_bytes)
        self.watch = Watch(self.inflight, self.metrics, limits.slow_seconds, self.say)
        self.groups = Groups(self.desk, self.needs_batch, limits.batch_seconds, batches)
        self.stage = self.rollouts() if self.rollouts else None
        if self.stage is not None:
            self.stage.begin(self.desk)
        room = self.desk.room
        self.metrics.watch(lambda: len(self.inflight), lambda: len(self.kept) + len(batches), lambda: room.bytes)

    def drain(self) -> None:
        """The service ends: whoever waits for others that will not come any more is told so."""
        self.groups.drain()
        if self.stage is not None:
            self.stage.drain()


async def _score(service: Service, data: Any) -> dict[str, Any]:
    given = a_list(an_object(data, ("rows",)).get("rows"), "body.rows")
    domains = service.scorer.domains
    rows = [a_row(row, f"body.rows[{number}]", domains, service.index) for number, row in enumerate(given)]
    return {"scores": [score_json(score) for score in await service.desk.scores(rows)]}


async def _rewards(service: Service, data: Any) -> dict[str, Any]:
    return await service.groups.rewards(data, service.index)


async def _get_reward(service: Service, data: Any) -> dict[str, Any]:
    read = reward.read(data, service.scorer.domains, service.index)
    rows = [row for sample in read if not isinstance(sample, Score) for row in sample]
    found = iter(await service.desk.scores(rows))
    samples = [one if isinstance(one, Score) else reward.best([next(found) for _ in one]) for one in read]
    return reward.answer(samples, service.limits.unjudged)


async def _slot(service: Service, data: Any) -> dict[str, Any]:
    return await _stage(service).slot(data)


async def _reply(service: Service, data: Any) -> dict[str, Any]:
    return await _stage(service).reply(data)


async def _sample(service: Service, data: Any) -> dict[str, Any]:
    return await _stage(service).sample(data)


async def _stage_status(service: Service, data: Any) -> dict[str, Any]:
    after = data.get("after", "-1")
    if not after.removeprefix("-").isdecimal():
        raise Refused("after must be a step", field="after", found=after, allowed="a whole number")
    return _stage(service).status(int(after[:12]))


async def _domains(service: Service, data: Any) -> dict[str, Any]:
    return {
        "domains": {
            name: {"plugin": ref.name, "distribution": ref.distribution, "version": ref.version, "lane": ref.lane}
            | {"needs_batch": name in service.needs_batch, "tasks": service.index.count(name)}
            for name, ref in service.scorer.domains.items()
        }
    }


async def _health(service: Service, data: Any) -> dict[str, Any]:
    stopped = service.stage.stopped if service.stage else ""
    return {
        "status": "stopped" if stopped else "ok",
        "version": version("cascade-rl"),
        "waiting": len(service.inflight),
        "slow": len(service.watch.slow()),
    }


async def _openapi(service: Service, data: Any) -> dict[str, Any]:
    return openapi(
        service.scorer.domains,
        has_tasks=bool(service.index.tasks),
        has_stage=service.stage is not None,
        body_mib=service.limits.body_mib,
    )


async def _slow(service: Service, data: Any) -> dict[str, Any]:
    return {"slow": service.watch.slow()}


def _stage(service: Service) -> Rollouts:
    if service.stage is None:
        raise Refused("no stage is served here", status=404)
    return service.stage


def _endpoint(service: Service, handler: Handler) -> Answering:
    """The handler as an endpoint; what it needs of the service is there once its event loop runs.

    A sample waits for all others of its step, so it must not keep them away by the bytes that it holds; the stage bounds how many there are.
    """

    async def answer(request: Request) -> Response:
        return await answered(
            request,
            partial(handler, service),
            access=service.access,
            room=service.desk.room,
            body_mib=service.limits.body_mib,
            keeps=handler is not _sample,
            requests=service.metrics.requests,
            say=service.say,
        )

    return answer


def build(service: Service) -> Starlette:
    """The application; its lifespan begins the service and runs its watchdogs."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.begin()
        tasks = [asyncio.create_task(service.watch.run())]
        if service.stage is not None:
            tasks.append(asyncio.create_task(service.stage.watch()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            if service.stage is not None:
                service.stage.close()

    posts: dict[str, Handler] = {
        "/score": _score, "/rewards": _rewards, "/get_reward": _get_reward, "/slot": _slot, "/reply": _reply, "/sample": _sample,
    }  # fmt: skip
    gets: dict[str, Handler] = {"/stage": _stage_status, "/slow": _slow, "/domains": _domains, "/health": _health}
    gets["/openapi.json"] = _openapi
    routes = [Route(path, _endpoint(service, handler), methods=["POST"]) for path, handler in posts.items()]
    routes += [Route(path, _endpoint(service, handler), methods=["GET"]) for path, handler in gets.items()]
    routes.append(Route("/metrics", numbers(lambda: service.metrics.text(), service.access), methods=["GET"]))
    made = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: outside(_KNOWN)})
    made.router.redirect_slashes = False  # a redirected POST loses its body with many clients
    return made
