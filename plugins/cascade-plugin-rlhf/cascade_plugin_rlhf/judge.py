"""A language model as judge, behind any OpenAI-compatible API: two answers compared in both orders, or one answer graded.

Judges favour a place: a comparison is asked in both orders, and counts where both replies have a verdict. Requests are tried again as `cascade_core/endpoint.py`
says (429 as long as `Retry-After` asks), begin no closer together than `per_minute` allows, and are not sent where the reply is kept. A judge that answers prose,
refuses or does not answer gives `Unjudged` with the reason, never half a point.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from cascade_core.answer import Reply
from cascade_core.domain import Message
from cascade_core.endpoint import Client, Endpoint
from cascade_core.secret import Secret
from cascade_core.settings import Sampling
from cascade_plugin_rlhf.addresses import judge
from cascade_plugin_rlhf.cache import Cache
from cascade_plugin_rlhf.judging import PACE, SCHEME, Judging
from cascade_plugin_rlhf.opinions import GRADED, PAIRWISE, asked, read_grade, read_verdict
from cascade_plugin_rlhf.pace import Pace
from cascade_plugin_rlhf.verdict import Item, Scored, Unjudged

Contest = tuple[str | Sequence[Message], str, str]
"""A prompt and two answers to it."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Comparison:
    """Of two answers the first: `forward` and `backward` are 2 (much better) … -2 (much worse), asked as A and asked as B."""

    forward: int
    backward: int

    @property
    def value(self) -> float:
        """1.0 where the first won in both orders, 0.0 where it lost in both, else between: the mean of win, half a point, loss."""
        return sum((step > 0) + 0.5 * (step == 0) for step in (self.forward, self.backward)) / 2

    @property
    def is_consistent(self) -> bool:
        """Whether no order favours an answer that the other does not."""
        return self.forward * self.backward >= 0


class Judge:
    """Asks from one thread; what it holds open is closed by `close`.

    Args:
        judging: whom, and how.
        pairwise: the text of a comparison, with `{question}`, `{first}` and `{second}`.
        graded: the text of a grade, with `{question}` and `{first}`.
        pace: a file by which several processes keep `per_minute` together; `""` for this judge alone.
    """

    def __init__(self, judging: Judging, *, pairwise: str = PAIRWISE, graded: str = GRADED, pace: str = "") -> None:
        key = judging.key.reveal() if judging.key else ""
        self._endpoint = Endpoint(
            judging.url,
            judging.model,
            key,
            timeout_seconds=judging.timeout_seconds,
            tries=judging.tries,
            pause_seconds=judging.pause_seconds,
        )
        self._sampling = Sampling(temperature=judging.temperature, max_response_tokens=judging.max_response_tokens)
        self._runner, self._client = asyncio.Runner(), Client(self._endpoint, judging.concurrency)
        self._gate = asyncio.Semaphore(judging.concurrency)
        self._cache, self._pairwise, self._graded = Cache(judging.cache), pairwise, graded
        self._pace = Pace(judging.per_minute, pace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes connections and the cache; safe to repeat."""
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()
        self._cache.close()

    def compare(self, contests: Sequence[Contest]) -> list[Comparison | Unjudged]:
        """The judge's word on each: asked in both orders, from the first answer's point of view."""
        return self._all([self._contest(*contest) for contest in contests])

    def scores(self, items: Sequence[Item]) -> list[Scored | Unjudged]:
        """The grade of each answer, 1 to 10."""
        return self._all([self._grade(*item) for item in items])

    def _all(self, jobs: Sequence[Awaitable[Result]]) -> list[Result]:
        async def gathered() -> list[Result]:
            return list(await asyncio.gather(*jobs))

        return self._runner.run(gathered())

    async def _contest(self, prompt: str | Sequence[Message], first: str, second: str) -> Comparison | Unjudged:
        texts = (asked(self._pairwise, prompt, first, second), asked(self._pairwise, prompt, second, first))
        forward, backward = await asyncio.gather(*(self._opinion(text, read_verdict) for text in texts))
        if isinstance(forward, str) or isinstance(backward, str):
            return Unjudged(str(forward if isinstance(forward, str) else backward))
        return Comparison(forward, -backward)

    async def _grade(self, prompt: str | Sequence[Message], response: str) -> Scored | Unjudged:
        found = await self._opinion(asked(self._graded, prompt, response), read_grade)
        return Unjudged(found) if isinstance(found, str) else Scored(found)

    async def _opinion(self, text: str, read: Callable[[Reply], Result | str]) -> Result | str:
        """What `read` makes of the reply to a text, kept or asked for."""
        row = {"prompt": text}
        payload = self._endpoint.payload(row, self._sampling, 0)
        key = self._cache.key({"url": self._endpoint.url, **payload})
        async with self._gate:
            if (kept := self._cache.get(key)) is not None:
                return read(Reply(kept))
            await asyncio.sleep(self._pace.take() - time.monotonic())
            reply = await self._client.complete(row, self._sampling, 0)
        found = read(reply)
        if not isinstance(found, str):
            self._cache.put(key, reply.text)
        return found


def connect_judge(address: str) -> Judge:
    """The judge of an address: what `JudgeEndpoint` gives, or `http(s)://host[:port]/v1#MODEL`.

    Raises:
        UsageError: it is neither.
    """
    if not address.startswith(SCHEME):
        return Judge(Judging(*judge(address)))
    given = json.loads(address.removeprefix(SCHEME))
    key, pace = given.pop("key", None), given.pop(PACE, "")
    return Judge(Judging(**given, key=Secret(**key) if key else None), pace=pace)
