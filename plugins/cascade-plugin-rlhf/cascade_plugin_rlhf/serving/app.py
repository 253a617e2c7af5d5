"""The endpoints, as a Starlette application.

    POST /score        {"items": [{"prompt", "response"}, …], "model"?} → {"model", "scores", "tokens", "truncated", "errors"?}
    POST /get_reward   OpenRLHF's shape: {"query", "prompts"?, "labels"?, "model"?} → {"rewards", "scores", "extra_logs", "errors"?}
    POST /v1/NAME/score, /v1/NAME/get_reward    the same for one of several models
    GET  /models /health /metrics

Lists are as long as what was asked and in its order. A score that there is not is `null`, its `errors` says why. A query of OpenRLHF holds the
policy's special tokens and is scored as it stands. What does not fit in the queue is refused with 503 and `Retry-After`, and costs nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cascade_core.serve.access import Access
from cascade_core.serve.answering import Answering, Room, answered, numbers, outside
from cascade_core.serve.wire import Refused, a_list, an_object, is_conversation, wrong
from cascade_plugin_rlhf.serving.encoding import Encoder, Unreadable
from cascade_plugin_rlhf.serving.engine import Engine, Full, Verdict
from cascade_plugin_rlhf.serving.metrics import Metrics, Numbers
from cascade_plugin_rlhf.serving.model import Encoded, RewardModel

_KNOWN = "POST /score /get_reward, the same under /v1/NAME, GET /models /health /metrics"
Handler = Callable[["Serving", str, Any], Awaitable[dict[str, Any]]]
Reading = Callable[[Encoder], Encoded]


def say(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"cascade rm: {line}\n".encode("utf-8", "backslashreplace").decode())
    sys.stderr.flush()


class Desk:
    """One model behind the endpoints: encodes in a thread of its own, scores in the engine's."""

    def __init__(self, name: str, model: RewardModel, most_waiting: int, metrics: Metrics) -> None:
        source = model.source
        self.name, self.facts, self.numbers = name, dict(model.facts()), Numbers(metrics, name)
        self._encoder = Encoder(model.tokenizer, model.context, source.max_tokens, source.template, model.is_value_head)
        self.facts |= {"template": self._encoder.template, "max_tokens": self._encoder.limit}
        self._most_waiting, self._refused = most_waiting, metrics.refused.labels("items")
        self.engine = Engine(model.scores, model.most_tokens, most_waiting, self.numbers)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="encode")

    async def verdicts(self, readings: Sequence[Reading]) -> list[Verdict]:
        """One for each.

        Raises:
            Refused: too many wait already.
        """
        try:
            self.engine.reserve(len(readings))
        except Full:
            self._refused.inc()
            raise Refused(
                f"{self.engine.waiting} items wait for {self.name!r} already (allowed: {self._most_waiting}); ask again later",
                status=503,
                again=1,
            ) from None
        # Shielded: whoever goes away in the middle leaves what was reserved to be used up, not lost.
        found = await asyncio.shield(asyncio.ensure_future(self._scored(readings)))
        failed, cut = sum(bool(one.error) for one in found), sum(one.truncated and not one.error for one in found)
        for outcome, count in (("failed", failed), ("truncated", cut), ("scored", len(found) - failed - cut)):
            self.numbers.told(outcome, count)
        return found

    async def _scored(self, readings: Sequence[Reading]) -> list[Verdict]:
        loop = asyncio.get_running_loop()
        try:
            encoded = await loop.run_in_executor(self._threads, self._encoded, readings)
        except BaseException:
            self.engine.release(len(readings))
            raise
        return await asyncio.wrap_future(self.engine.submit(encoded))

    def _encoded(self, readings: Sequence[Reading]) -> list[Encoded | Verdict]:
        found: list[Encoded | Verdict] = []
        for read in readings:
            try:
                found.append(read(self._encoder))
            except Unreadable as cause:
                found.append(Verdict(None, error=str(cause)))
        return found

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()
        self.engine.close()


class Serving:
    """What the endpoints share.

    Args:
        models: by the names that they are asked by.
        most_waiting: items that may wait for one model.
        body_mib: the longest body of a request.
    """

    def __init__(self, models: Mapping[str, RewardModel], access: Access, most_waiting: int, body_mib: int) -> None:
        self.metrics, self.access, self.body_mib = Metrics(), access, body_mib
        self.room = Room(64 * body_mib * 2**20, self.metrics.refused.labels("bytes").inc)
        self.desks = {name: Desk(name, model, most_waiting, self.metrics) for name, model in models.items()}
        self.metrics.watch(lambda: self.waiting, lambda: self.room.bytes)

    @property
    def waiting(self) -> int:
        """Items without a verdict."""
        return sum(desk.engine.waiting for desk in self.desks.values())

    def desk(self, name: Any) -> Desk:
        """The model that is asked.

        Raises:
            Refused: there is none of that name, or none was named and there are several.
        """
        if name is None and len(self.desks) == 1:
            return next(iter(self.desks.values()))
        if not isinstance(name, str) or name not in self.desks:
            raise wrong("body.model", name, f"one of {', '.join(sorted(self.desks))}")
        return self.desks[name]


async def _score(serving: Serving, name: str, data: Any) -> dict[str, Any]:
    asked = an_object(data, ("items", "model"))
    desk = serving.desk(name or asked.get("model"))
    items = [_item(one, f"body.items[{place}]") for place, one in enumerate(a_list(asked.get("items"), "body.items"))]
    found = await desk.verdicts(items)
    told = {"model": desk.name, "scores": [one.score for one in found], "tokens": [one.tokens for one in found]}
    return _with_errors({**told, "truncated": [one.truncated for one in found]}, found)


async def _get_reward(serving: Serving, name: str, data: Any) -> dict[str, Any]:
    asked = an_object(data, ("query", "prompts", "labels", "request_id", "model"))
    desk = serving.desk(name or asked.get("model"))
    queries = a_list(asked.get("query"), "body.query")
    for field in ("prompts", "labels"):
        beside = asked.get(field)
        if beside is not None and (not isinstance(beside, list) or len(beside) != len(queries)):
            raise wrong(f"body.{field}", beside, f"a list as long as query, {len(queries)}")
    for place, query in enumerate(queries):
        if not isinstance(query, str):
            raise wrong(f"body.query[{place}]", query, "a text")
    found = await desk.verdicts([partial(_whole, query) for query in queries])
    scores = [one.score for one in found]
    logs = {"tokens": [float(one.tokens) for one in found], "truncated": [float(one.truncated) for one in found]}
    return _with_errors({"rewards": scores, "scores": scores, "extra_logs": logs}, found)


async def _models(serving: Serving, name: str, data: Any) -> dict[str, Any]:
    return {"models": {desk.name: desk.facts for desk in serving.desks.values()}}


async def _health(serving: Serving, name: str, data: Any) -> dict[str, Any]:
    return {"status": "ok", "version": version("cascade-plugin-rlhf"), "waiting": serving.waiting}


def _item(value: Any, where: str) -> Reading:
    item = an_object(value, ("prompt", "response"), where)
    prompt: Any = item.get("prompt")
    response = item.get("response")
    if not isinstance(prompt, str) and not is_conversation(prompt):
        raise wrong(f"{where}.prompt", prompt, "a text or a list of messages with text role and content")
    if not isinstance(response, str):
        raise wrong(f"{where}.response", response, "a text")
    return lambda encoder: encoder.item(prompt, response)


def _whole(query: str, encoder: Encoder) -> Encoded:
    return encoder.text(query)


def _with_errors(told: dict[str, Any], found: Sequence[Verdict]) -> dict[str, Any]:
    return {**told, "errors": [one.error for one in found]} if any(one.error for one in found) else told


def build(serving: Serving) -> Starlette:
    """The application; its lifespan ends the engines."""

    def endpoint(handler: Handler, name: str = "") -> Answering:
        async def answer(request: Request) -> Response:
            return await answered(
                request,
                partial(handler, serving, name),
                access=serving.access,
                room=serving.room,
                body_mib=serving.body_mib,
                requests=serving.metrics.requests,
                say=say,
            )

        return answer

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for desk in serving.desks.values():
            await asyncio.to_thread(desk.close)

    posts: dict[str, Handler] = {"/score": _score, "/get_reward": _get_reward}
    gets: dict[str, Handler] = {"/models": _models, "/health": _health}
    routes = [Route(path, endpoint(handler), methods=["POST"]) for path, handler in posts.items()]
    routes += [Route(path, endpoint(handler), methods=["GET"]) for path, handler in gets.items()]
    for name in serving.desks:
        routes += [Route(f"/v1/{name}{path}", endpoint(one, name), methods=["POST"]) for path, one in posts.items()]
    routes.append(Route("/metrics", numbers(serving.metrics.text, serving.access), methods=["GET"]))
    made = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: outside(_KNOWN)})
    made.router.redirect_slashes = False
    return made
