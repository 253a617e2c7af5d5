"""What waits for one model: taken in as whole requests, run in batches by one thread, told item by item.

There is no delay: a batch is what has come while the one before ran. The oldest of what waits, as much as a few full batches hold, is sorted by
length and run before anything that came later, so nobody waits for ever. A batch that fails is halved until the item is found that fails alone;
a score that is no finite number is a failure of its item. What may wait is bounded; beyond that a request is refused as a whole.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from cascade_core.threads import started
from cascade_plugin_rlhf.serving.batches import plan
from cascade_plugin_rlhf.serving.metrics import Numbers
from cascade_plugin_rlhf.serving.model import Encoded

WINDOW_BATCHES = 8


class Full(Exception):
    """No room for a request; nothing of it was taken."""


@dataclass(frozen=True)
class Verdict:
    """A score, or in `error` why there is none; tokens of the item before it was cut."""

    score: float | None
    tokens: int = 0
    truncated: bool = False
    error: str = ""


@dataclass
class _Request:
    verdicts: list[Verdict | None]
    left: int
    begun: float
    done: Future[list[Verdict]] = field(default_factory=Future)


@dataclass(frozen=True)
class _Entry:
    request: _Request
    place: int
    encoded: Encoded


class Engine:
    """One model's queue and thread.

    Args:
        run: the scores of one batch; called by the thread of the engine alone.
        most_tokens: of a batch, padding included.
        most_waiting: items that may wait at once.
    """

    def __init__(
        self, run: Callable[[Sequence[Encoded]], list[float]], most_tokens: int, most_waiting: int, numbers: Numbers
    ) -> None:
        self._run, self._most_tokens, self._most_waiting = run, most_tokens, most_waiting
        self._numbers = numbers
        self._queue: deque[_Entry] = deque()
        self._wake = threading.Condition()
        self._waiting, self._closed = 0, False
        self._thread = started(self._work, name="reward-model")

    @property
    def waiting(self) -> int:
        """Items without a verdict."""
        return self._waiting

    def reserve(self, count: int) -> None:
        """Room for the items of one request.

        Raises:
            Full: there is none.
        """
        with self._wake:
            if self._closed or self._waiting + count > self._most_waiting:
                raise Full
            self._waiting += count

    def release(self, count: int) -> None:
        """Gives back what was reserved for items that never came."""
        with self._wake:
            self._waiting -= count

    def submit(self, items: Sequence[Encoded | Verdict]) -> Future[list[Verdict]]:
        """The verdicts of items that have room; one that is a verdict already stays it."""
        known = [item if isinstance(item, Verdict) else None for item in items]
        request = _Request(list(known), sum(one is None for one in known), time.monotonic())
        fresh = [_Entry(request, place, item) for place, item in enumerate(items) if isinstance(item, Encoded)]
        with self._wake:
            self._waiting -= len(items) - len(fresh)
            self._queue.extend(fresh)
            self._wake.notify()
        if not fresh:
            request.done.set_result([one for one in known if one is not None])
        return request.done

    def close(self) -> None:
        """Ends the thread after its batch. What still waits is given up: whoever drains has waited for it as long as is allowed."""
        with self._wake:
            self._closed = True
            self._queue.clear()
            self._wake.notify()
        self._thread.join()

    def _work(self) -> None:
        while window := self._window():
            for places in plan([len(entry.encoded.ids) for entry in window], self._most_tokens):
                self._batch([window[place] for place in places])
            del window

    def _window(self) -> list[_Entry]:
        """The oldest of what waits; empty once closed and done."""
        with self._wake:
            while not self._queue and not self._closed:
                self._wake.wait()
            found: list[_Entry] = []
            tokens = 0
            while self._queue and (not found or tokens < WINDOW_BATCHES * self._most_tokens):
                found.append(self._queue.popleft())
                tokens += len(found[-1].encoded.ids)
            return found

    def _batch(self, entries: Sequence[_Entry]) -> None:
        encoded = [entry.encoded for entry in entries]
        try:
            scores = self._run(encoded)
        except Exception as cause:  # noqa: BLE001 - whatever one item brings about is that item's
            if len(entries) > 1:
                self._batch(entries[: len(entries) // 2])
                self._batch(entries[len(entries) // 2 :])
                return
            said = " ".join(str(cause).split())[:200]
            self._tell(entries[0], Verdict(None, error=f"the model failed: {type(cause).__name__}: {said}"))
            return
        self._numbers.batch([len(one.ids) for one in encoded])
        for entry, score in zip(entries, scores, strict=True):
            error = "" if math.isfinite(score) else f"the model's score is {score}"
            self._tell(entry, Verdict(None if error else score, error=error))

    def _tell(self, entry: _Entry, verdict: Verdict) -> None:
        one, request = entry.encoded, entry.request
        request.verdicts[entry.place] = Verdict(verdict.score, one.tokens, one.truncated, verdict.error)
        with self._wake:
            self._waiting -= 1
        request.left -= 1
        if not request.left:
            self._numbers.done(time.monotonic() - request.begun)
            request.done.set_result([one for one in request.verdicts if one is not None])
