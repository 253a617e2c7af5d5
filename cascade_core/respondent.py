"""Who answers the tasks of a benchmark: a model behind an endpoint (`Served`), or one in a folder on this machine (`Local`, and
`LocalVllm` where vLLM samples).

Both are asked for what is missing and hand over each response as it comes; a request that failed is handed over as its
cause. Keeping, judging and counting are `assessment.py`'s.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from cascade_core.answer import Reply
from cascade_core.completions import Key
from cascade_core.endpoint import Client, Endpoint
from cascade_core.evaluate import Exam, Sampler
from cascade_core.rows import Row
from cascade_core.sampling import Sample
from cascade_core.vllm_sampling import Vllm

if TYPE_CHECKING:
    from cascade_core.vllm_sampling.sampler import VllmSampler

Keep = Callable[[Key, Row], None]
Fail = Callable[[Key, str, bool], None]
"""Takes the cause, and whether the server refused this request for good."""

_BATCHES_AT_ONCE = 4


class Respondent(Protocol):
    """Whatever answers tasks."""

    def pins(self) -> dict[str, Any]:
        """What its responses depend on besides the task and the sampling; JSON values."""

    def answer(self, exam: Exam, missing: Sequence[Key], seed: int, keep: Keep, fail: Fail) -> None:
        """Calls `keep` or `fail` once for each of the missing responses, in any order; what they raise ends it."""


@dataclass(frozen=True)
class Served:
    """A model behind an endpoint, asked for `concurrency` responses at a time."""

    endpoint: Endpoint
    concurrency: int = 32

    def pins(self) -> dict[str, Any]:
        """The address, the model's name and the extra fields; never the key."""
        asked = self.endpoint
        pinned = {"endpoint": asked.url, "model": asked.model, "api": asked.api, "body": dict(asked.body)}
        return {**pinned, **_modes(asked.modes)}

    def answer(self, exam: Exam, missing: Sequence[Key], seed: int, keep: Keep, fail: Fail) -> None:
        """Every sample is a request of its own, with its own seed: `seed_of`."""
        asyncio.run(self._answer(exam, missing, seed, keep, fail))

    async def _answer(self, exam: Exam, missing: Sequence[Key], seed: int, keep: Keep, fail: Fail) -> None:
        tasks = {row["id"]: row for row in exam.tasks}
        left = iter(missing)
        async with Client(self.endpoint, self.concurrency) as client:

            async def work() -> None:
                for key in left:
                    reply = await client.complete(tasks[key[0]], exam.sampling, seed_of(seed, key))
                    if reply.error:
                        fail(key, reply.error, reply.refused)
                    else:
                        keep(key, _kept(reply, self.endpoint.prefill(tasks[key[0]])))

            workers = [asyncio.create_task(work()) for _ in range(min(self.concurrency, len(missing)))]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)


class Local:
    """A model in a folder, sampled here; only made ready when something is missing."""

    def __init__(self, model: Path, batch_size: int, modes: str = "switch") -> None:
        self._model = model
        self._batch_size, self._modes = batch_size, modes
        self._sampler: Sampler | None = None

    def pins(self) -> dict[str, Any]:
        """The files of the model, and the batch size: what a prompt is given depends on the prompts beside it."""
        from cascade_core.folder import model_fingerprint

        made: dict[str, Any] = {"model": str(self._model), "weights": model_fingerprint(self._model)}
        return {**made, "batch_size": self._batch_size, **_modes(self._modes)}

    def answer(self, exam: Exam, missing: Sequence[Key], seed: int, keep: Keep, fail: Fail) -> None:
        """A few batches at a time, always the same ones: what is missing of one is sampled as if all of it were."""
        from cascade_core.sampling import LocalSampler

        self._sampler = self._sampler or LocalSampler(self._model, self._batch_size, self._modes)
        wanted = set(missing)
        for number, tasks in enumerate(_chunks(exam, self._batch_size)):
            mine = {(row["id"], sample) for row in tasks for sample in range(exam.samples)} & wanted
            if not mine:
                continue
            drawn = self._sampler.sample(tasks, exam.samples, exam.sampling, seed + number)
            for row, samples in zip(tasks, drawn, strict=True):
                for sample, one in enumerate(samples):
                    if (row["id"], sample) in mine:
                        keep((row["id"], sample), _sampled(one))


class LocalVllm:
    """A model in a folder, sampled by vLLM in a process of its own, which is started when something is missing; a context manager.

    Args:
        folder: of the evaluation; the sampler's own is inside.
        exams: all that will be asked for.
        seed: of the evaluation.
        modes: how a task's mode is said to the model.
    """

    def __init__(
        self, vllm: Vllm, model: Path, folder: Path, exams: Sequence[Exam], seed: int, modes: str = "switch"
    ) -> None:
        self._modes = modes
        self._vllm, self._model, self._folder, self._exams, self._seed = vllm, model, folder, exams, seed
        self._open = ExitStack()
        self._sampler: VllmSampler | None = None

    def __enter__(self) -> LocalVllm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def pins(self) -> dict[str, Any]:
        """The files of the model, and who samples."""
        from cascade_core.folder import model_fingerprint

        made: dict[str, Any] = {"model": str(self._model), "weights": model_fingerprint(self._model)}
        return {**made, "sampler": "vllm", **_modes(self._modes)}

    def answer(self, exam: Exam, missing: Sequence[Key], seed: int, keep: Keep, fail: Fail) -> None:
        """Every sample is a request of its own, with its own seed: `seed_of`."""
        from cascade_core.vllm_sampling.sampler import VllmSampler

        if self._sampler is None:
            place, log = self._folder / "sampling", self._folder / "vllm.log"
            self._sampler = self._open.enter_context(
                VllmSampler(self._vllm, self._model, place, log, self._exams, self._seed, self._modes)
            )
        for key, one in self._sampler.stream(exam, missing):
            keep(key, _sampled(one))


def seed_of(seed: int, key: Key) -> int:
    """The sampling seed of one response: 31 bits of SHA-256 over the evaluation's seed, the task and the sample."""
    digest = hashlib.sha256(f"{seed}\0{key[1]}\0{key[0]}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _chunks(exam: Exam, batch_size: int) -> Iterator[Sequence[Row]]:
    size = max(1, _BATCHES_AT_ONCE * batch_size // exam.samples)
    for start in range(0, len(exam.tasks), size):
        yield exam.tasks[start : start + size]


def _sampled(one: Sample) -> Row:
    """A sample as the fields of a row."""
    told = asdict(one)
    return {"response": told.pop("text"), **told}


def _modes(modes: str) -> dict[str, str]:
    """How modes are said, where not as they are by default: what was answered before there was a choice goes on."""
    return {} if modes == "switch" else {"modes": modes}


def _kept(reply: Reply, prefill: str) -> Row:
    """A reply as the fields of a row; a server that counts no tokens leaves them out."""
    row: Row = {"response": reply.text, "prefill": prefill, "truncated": reply.truncated}
    if reply.completion_tokens is not None:
        row["tokens"] = reply.completion_tokens
    if reply.prompt_tokens is not None:
        row["prompt_tokens"] = reply.prompt_tokens
    return row
