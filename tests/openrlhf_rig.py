"""The agent of OpenRLHF, loaded as OpenRLHF loads it, with an engine, a tokenizer and a service of the test's own."""

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

import cascade_core.trainers

STAND_IN = Path(__file__).parent / "openrlhf_stand_in"
FILE = Path(cascade_core.trainers.__file__).with_name("openrlhf_agent.py")


def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, from its path, never put into `sys.modules`."""
    monkeypatch.syspath_prepend(STAND_IN)
    for name in [name for name in sys.modules if name.partition(".")[0] == "openrlhf"]:
        monkeypatch.delitem(sys.modules, name)
    spec = importlib.util.spec_from_file_location("agent_module", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in [name for name in sys.modules if name.partition(".")[0] == "openrlhf"]:
        del sys.modules[name]  # for good: monkeypatch would put the stand-in back, for whoever looks for the real one
    return module


class Tokenizer:
    """A token for each character; `~` ends a turn and is special."""

    eos_token_id: int | None = ord("~")
    all_special_ids = (ord("~"),)
    added_tokens_decoder: dict[int, Any] = {}  # noqa: RUF012

    def get_vocab(self) -> dict[str, int]:
        return {chr(number): number for number in range(128)}

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": ([0] if add_special_tokens else []) + [ord(letter) for letter in text]}

    def decode(self, tokens: list[int], **_named: Any) -> str:
        return "".join(map(chr, tokens))


@dataclass
class Sampling:
    """What OpenRLHF shares among the samples of a prompt."""

    temperature: float = 0.123
    top_p: float = 0.5
    top_k: int = 7
    max_tokens: int | None = None
    logprobs: int | None = 1


@dataclass
class Engine:
    """Answers each request with the next text (a list is used up first to last, the last one stays)."""

    texts: list[Any] = field(default_factory=lambda: ["yes~"])
    finish: str = "stop"
    asked: list[tuple[str, Sampling]] = field(default_factory=list)
    is_exact: bool = False

    async def generate(self, tokens: list[int], sampling: Sampling) -> Any:
        self.asked.append(("".join(map(chr, tokens)), sampling))
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        await asyncio.sleep(0)
        if isinstance(text, BaseException):
            raise text
        ids = [ord(letter) for letter in text]
        logged: list[Any] = [-0.5] * len(ids)
        if self.is_exact:  # as vLLM has them
            logged = [{one: SimpleNamespace(logprob=-one / 1000)} for one in ids]
        if len(ids) > (sampling.max_tokens or len(ids)):
            ids, logged, self.finish = ids[: sampling.max_tokens], logged[: sampling.max_tokens], "length"
        made = SimpleNamespace(token_ids=ids, finish_reason=self.finish, logprobs=logged)
        return SimpleNamespace(outputs=[made])


Answer = Callable[[dict[str, Any]], Awaitable[Any]]


def good(reward: float = 0.5, masked: str = "", **logs: Any) -> dict[str, Any]:
    return {"reward": reward, "scores": 1.0, "masked": masked, "extra_logs": {"cascade_value": 1.0, **logs}}


@dataclass
class Service:
    """A server in the loop of the test; `slots` and `samples` are the bodies that came."""

    per_prompt: int = 2
    prompt: str = "one and one?"
    sampling: dict[str, Any] = field(
        default_factory=lambda: {"temperature": 1.0, "top_p": 0.9, "top_k": 0, "max_tokens": 8}
    )
    answer: Callable[[dict[str, Any]], Any] = lambda body: good()
    before: list[Any] = field(
        default_factory=list
    )  # statuses with which the first requests are turned away; 0: hung up
    more: dict[str, Any] = field(default_factory=dict)  # of a task
    reply: Callable[[dict[str, Any]], Any] = lambda body: {"said": None}
    replies: list[dict[str, Any]] = field(default_factory=list)
    slots: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)

    async def _slot(self, request: web.Request) -> web.StreamResponse:
        self.slots.append(await request.json())
        self.headers.append(request.headers.get("Authorization", ""))
        turned = await self._turned(request)
        told = {
            "step": 3,
            "slot": self.slots[-1]["slot"],
            "samples": self.per_prompt,
            "prompt": self.prompt,
            "ids": [ord(letter) for letter in self.prompt],
            **self.more,
        }
        return turned or web.json_response({**told, "sampling": self.sampling})

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        self.replies.append(await request.json())
        return await self._turned(request) or web.json_response(self.reply(self.replies[-1]))

    async def _sample(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.samples.append(body)
        turned = await self._turned(request)
        if turned:
            return turned
        told = self.answer(body)
        return web.json_response(await told if isinstance(told, Awaitable) else told)

    async def _turned(self, request: web.Request) -> web.StreamResponse | None:
        if not self.before:
            return None
        status = self.before.pop(0)
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
            await asyncio.sleep(0.01)
        return web.json_response({"error": "not like this"}, status=status or 500)

    async def begin(self) -> tuple[web.AppRunner, str]:
        application = web.Application(client_max_size=2**24)
        application.router.add_post("/slot", self._slot)
        application.router.add_post("/reply", self._reply)
        application.router.add_post("/sample", self._sample)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


class Rig:
    """What a test says `execute` to."""

    def __init__(self, module: Any, service: Service, engine: Engine) -> None:
        self.module, self.service, self.engine = module, service, engine
        self.tokenizer = Tokenizer()
        self.length = 64

    def group(self, sampling: Any = None, n: int | None = None, label: Any = "5") -> list[Any]:
        """The coroutines of one prompt, made as OpenRLHF makes them."""
        shared = sampling or Sampling()
        return [
            self.agent.execute(
                prompt=f"slot {label}",
                label=label,
                sampling_params=shared,
                max_length=self.length,
                hf_tokenizer=self.tokenizer,
                llm_engine=self.engine,
                images=None,
            )
            for _ in range(self.service.per_prompt if n is None else n)
        ]

    def run(self, work: Callable[[], Awaitable[Any]], **environment: str) -> Any:
        """Does `work` with the service and an agent that knows its address."""

        async def all_of_it() -> Any:
            runner, address = await self.service.begin()
            given = {"CASCADE_SERVE_ADDRESS": address, **environment}
            with pytest.MonkeyPatch.context() as patch:
                for name, value in given.items():
                    patch.setenv(name, value)
                self.agent = self.module.AgentExecutor()
            try:
                return await work()
            finally:
                await asyncio.gather(*self.agent._last_words, return_exceptions=True)
                await self.agent._client.close()
                await runner.cleanup()

        return asyncio.run(all_of_it())
