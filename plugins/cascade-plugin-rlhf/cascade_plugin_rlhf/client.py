"""Clients of reward models, for code that runs in one thread: our server's `/score`, OpenRLHF's wire, and vLLM's pooling endpoints.

    RewardClient("http://127.0.0.1:5001").scores([("2 and 2?", "4")])
    VllmClient("http://127.0.0.1:8000", model="org/rm").scores(…)
    connect("vllm:http://127.0.0.1:8000")        the one that an address names

Each item comes back once, in order: `Scored`, or `Unjudged` with its reason. What may pass (no connection, no answer in time, a server that is killed and comes
back, 429, 5xx, half a body, a page of HTML) is asked again for as long as `tries` and `pause_seconds` last, as `cascade_core/endpoint.py`
says; an answer of another shape is not. What is left raises `RewardModelError`. No failure is ever a score. Asking twice does no harm: a score follows from its
item alone.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from cascade_core.answer import Garbage, Refused
from cascade_core.endpoint import Client, Endpoint
from cascade_core.errors import UsageError
from cascade_core.secret import Secret
from cascade_plugin_rlhf.addresses import REWARD_MODEL, reward_model
from cascade_plugin_rlhf.replies import Verdicts, read_pooled, read_rewards, read_scores
from cascade_plugin_rlhf.verdict import Item, RewardModelError, Scored, Unjudged

MOST_ITEMS = 256
MOST_CHARACTERS = 2_000_000
Answer = TypeVar("Answer")
VLLM_FIELDS = {"classify": "probs", "pooling": "data", "score": "score"}
_SPECIAL = re.compile(
    r"<(?=[|｜][^<>|｜\s]{1,40}[|｜]>|/?s>|(?:start|end)_of_turn>|(?:bos|eos|pad|unk|mask)>)|\[(?=/?INST\]|(?:CLS|SEP|PAD|UNK|MASK)\])"
)
"""Where a word begins that is a special token of some tokenizer: those of Qwen, Llama, Mistral, Gemma, DeepSeek, Phi, BERT and their kin."""


class _Caller:
    """One address that is asked from one thread; what it holds open is closed by `close`.

    Args:
        address: `http(s)://host[:port][/path]`.
        key: sent as a bearer token, where the server wants one.
        timeout_seconds: for one whole answer.
        tries: of one request, the first included.
        pause_seconds: the longest pause after the first try; it doubles with each, up to 60 s.
        concurrency: requests at once.
    """

    def __init__(
        self,
        address: str,
        *,
        model: str = "",
        key: str = "",
        timeout_seconds: float = 300.0,
        tries: int = 8,
        pause_seconds: float = 1.0,
        concurrency: int = 8,
    ) -> None:
        self.address, self.model = address.rstrip("/"), model
        endpoint = Endpoint(
            self.address, model, key, timeout_seconds=timeout_seconds, tries=tries, pause_seconds=pause_seconds
        )
        self._runner, self._client = asyncio.Runner(), Client(endpoint, concurrency)
        self._gate = asyncio.Semaphore(concurrency)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections; safe to repeat."""
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()

    def _run(self, jobs: Sequence[Awaitable[Answer]]) -> list[Answer]:
        """All of them, at once; the first that fails ends the others."""

        async def gathered() -> list[Answer]:
            tasks = [asyncio.ensure_future(job) for job in jobs]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        return self._runner.run(gathered())

    async def _asked(self, path: str, payload: Mapping[str, Any], read: Callable[[bytes], Answer]) -> Answer:
        try:
            async with self._gate:
                return await self._client.asked(path, payload, read)
        except Garbage as cause:
            raise RewardModelError(f"the reward model at {self.address} gives no score: {cause}") from None


class RewardClient(_Caller):
    """Asks `cascade rm serve`; `model` names one of several. See the module."""

    def scores(self, items: Sequence[Item]) -> Verdicts:
        """The verdict on each item.

        Raises:
            RewardModelError: there is no answer that can be read.
        """
        jobs = [self._part(part) for part in _parts(items)]
        return [one for part in self._run(jobs) for one in part]

    def rewards(self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]) -> Verdicts:
        """The same in OpenRLHF's wire, from any server that speaks it: queries are whole texts with their special tokens.

        Raises:
            RewardModelError: there is no answer that can be read.
        """
        asked = {"query": list(queries), "prompts": list(prompts), "labels": list(labels)}
        return self._run([self._whole("/get_reward", asked, lambda body: read_rewards(body, len(queries)))])[0]

    async def _part(self, items: Sequence[Item]) -> Verdicts:
        asked: dict[str, Any] = {
            "items": [
                {"prompt": prompt if isinstance(prompt, str) else list(prompt), "response": response}
                for prompt, response in items
            ]
        }
        asked |= {"model": self.model} if self.model else {}
        return await self._whole("/score", asked, lambda body: read_scores(body, len(items)))

    async def _whole(self, path: str, asked: Mapping[str, Any], read: Callable[[bytes], Verdicts]) -> Verdicts:
        try:
            return await self._asked(path, asked, read)
        except Refused as cause:
            raise RewardModelError(f"the reward model at {self.address} gives no score: {cause}") from None


class VllmClient(_Caller):
    """Asks vLLM's server of a pooling model, one item a request, in the model's own chat template.

    Args:
        api: `classify` and `pooling` send a conversation, `score` a pair of texts (cross encoders). All ask for raw scores
            (`use_activation: false`): the default of vLLM would be their sigmoid.
    """

    def __init__(
        self, address: str, *, api: Literal["classify", "pooling", "score"] = "classify", **patience: Any
    ) -> None:
        if api not in VLLM_FIELDS:
            raise UsageError(f"api {api!r} is none of vLLM's that give a score (allowed: {', '.join(VLLM_FIELDS)})")
        super().__init__(address, **patience)
        self._api = api

    def scores(self, items: Sequence[Item]) -> Verdicts:
        """The verdict on each item; one that vLLM refuses (too long for the model) is `Unjudged`.

        Raises:
            RewardModelError: there is no answer that can be read.
        """
        return self._run([self._one(item) for item in items])

    async def _one(self, item: Item) -> Scored | Unjudged:
        prompt, response = item
        turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        said = [{**turn, "content": unspecial(turn["content"])} for turn in turns]
        asked: dict[str, Any] = {"use_activation": False} | ({"model": self.model} if self.model else {})
        if self._api == "score":
            asked |= {"text_1": "\n".join(turn["content"] for turn in said), "text_2": unspecial(response)}
        else:
            asked |= {"messages": [*said, {"role": "assistant", "content": unspecial(response)}]}
            asked |= {"add_generation_prompt": False}
        try:
            return await self._asked(f"/{self._api}", asked, lambda body: read_pooled(body, VLLM_FIELDS[self._api]))
        except Refused as cause:
            return Unjudged(f"vLLM at {self.address} gives no score: {cause}")


def unspecial(text: str) -> str:
    """The text with a space in each word that looks like a special token, which vLLM would read as one: it could end the answer's turn and begin another.

    Our server knows its tokenizer and breaks what is one there (`cascade_core/reward_model.py`); here the usual shapes have to do.

    >>> unspecial("Fine.<|im_end|> if a<s or x[i]")
    'Fine.< |im_end|> if a<s or x[i]'
    """
    return _SPECIAL.sub(lambda found: f"{found[0]} ", text)


def connect(address: str, **patience: Any) -> RewardClient | VllmClient:
    """The client of an address: `http://…` is `cascade rm serve`, `vllm:http://…` vLLM's `/classify`, `vllm-pooling:` and `vllm-score:` the others; or
    what `RewardModelEndpoint` gives.

    Raises:
        UsageError: it is none of these.
        SpecError: the token is not where the endpoint says.
    """
    if address.startswith(REWARD_MODEL):
        given = json.loads(address.removeprefix(REWARD_MODEL))
        key = Secret(**given["key"]).reveal() if given["key"] else ""
        address, patience = given["url"], {"model": given["model"], "key": key, **patience}
    api, url = reward_model(address)
    return VllmClient(url, api=api, **patience) if api else RewardClient(url, **patience)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Requests of a bounded size."""
    part: list[Item] = []
    size = 0
    for prompt, response in items:
        length = (
            len(response) + sum(len(turn["content"]) for turn in prompt)
            if not isinstance(prompt, str)
            else len(response) + len(prompt)
        )
        if part and (len(part) == MOST_ITEMS or size + length > MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append((prompt, response))
        size += length
    if part:
        yield part
