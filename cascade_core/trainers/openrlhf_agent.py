"""The agent that OpenRLHF loads into each of its vLLM engines (`--train.agent_func_path`): the only module that imports OpenRLHF.

OpenRLHF's data set holds slots, rows such as `{"prompt": "slot 3", "label": "3"}`. For each group of samples of a slot the agent asks the
service of the stage which task stands there now, lets OpenRLHF's own single-turn executor generate, reports each response as
soon as it ends, and hands back what the service answers once the step is judged: the finished advantage as `reward`, the
value as `scores`. Nothing is judged or rendered here, and no label or test ever comes here.

**Groups.** OpenRLHF calls `execute` for the n samples of a prompt in one go, with one and the same object of sampling parameters. So `execute`
is no coroutine function: it takes down who is of the group when it is *called*, and only then hands out coroutines. The object
is compared by identity and kept, since numbers of dead objects are used again.

**Masks.** A sample that must not be learned from keeps one token with advantage 0, and log-probabilities of 0 behind it: with no token at all,
means over the sample are NaN. Its gradient is exactly 0 without a KL term and an entropy bonus, which OpenRLHF takes over the same tokens;
it weighs one token in the denominator of a loss over all tokens, and a sample in that of a loss over samples.

**Failures.** Every way out of a sample is reported, so that no group waits for a member that is gone. A generation that fails is
a sample that could not be judged: masked, counted, never `reward=None`, which would end the job elsewhere and later. What ends
the job at once: an engine that is dead, a prompt without room, a service that refuses or is gone.

**Conversations** (`Domain.reply`) are led turn by turn, in tokens (`openrlhf_conversation.py`), with the sample's own copy of the
sampling parameters.

OpenRLHF loads this file by its path and keeps it out of `sys.modules`: no dataclass can be defined here (`openrlhf_sample.py` has
them). What it imports is lent to the job; nothing of the project is installed beside OpenRLHF.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from copy import deepcopy
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor

from cascade_core.errors import TrainerError
from cascade_core.pretrained import Decoder
from cascade_core.trainers.openrlhf_client import Client
from cascade_core.trainers.openrlhf_conversation import Conversation, GivenUp, read_reply
from cascade_core.trainers.openrlhf_sample import (
    Call,
    Drawn,
    Group,
    Output,
    Read,
    finished,
    read_answer,
    read_task,
    slot_of,
    stand_in,
    why,
)


class AgentExecutor(SingleTurnAgentExecutor):  # type: ignore[misc]
    """See the module. OpenRLHF makes one per engine, without arguments."""

    def __init__(self) -> None:
        super().__init__(None)
        self._client = Client.of(os.environ)
        self._open: Group | None = None
        self._decoder: Decoder | None = None
        self._last_words: set[asyncio.Task[Any]] = set()

    def execute(
        self,
        prompt: str,
        label: Any,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> Coroutine[Any, Any, Output]:
        """Takes the call down as one of its group, and returns the coroutine that does it."""
        group = self._open
        if group is None or group.begun or group.shared is not sampling_params:
            group = self._open = Group(sampling_params, slot_of(label))
        index, group.members = group.members, group.members + 1
        return self._member(group, index, Call(label, sampling_params, max_length, hf_tokenizer, llm_engine, images))

    async def _member(self, group: Group, index: int, call: Call) -> Output:
        group.begun = True
        name = {"group": group.name, "index": index}
        try:
            drawn = await self._drawn(group, call)
            body, out = await self._sampled(drawn, call, name)
        except BaseException as cause:
            # The job ends, and those who wait with this sample must not wait for it.
            words = self._client.ask("/sample", {**name, "gave_up": why(cause)}, dict)
            task = asyncio.get_running_loop().create_task(words)
            self._last_words.add(task)
            task.add_done_callback(self._said)
            raise
        return finished(out, await self._client.ask("/sample", {**name, **body}, read_answer))

    def _text(self, tokens: Sequence[int], tokenizer: Any) -> str:
        if self._decoder is None:  # a vocabulary is walked through: once, the tokenizer is the job's
            self._decoder = Decoder(tokenizer)
        return self._decoder.text(tokens)

    async def _sampled(self, drawn: Drawn, call: Call, name: dict[str, Any]) -> tuple[dict[str, Any], Output]:
        """What the service is told of a sample, and the output: of a response, a conversation, or a stand-in of one token, with why."""
        own = deepcopy(call.sampling)  # the n samples share one object, which must stay as it is
        for key, value in drawn.sampling.items():
            setattr(own, key, value)
        try:
            if drawn.turns:
                talk = Conversation(drawn, call, own, lambda tokens: self._text(tokens, call.tokenizer))
                return await talk.led(lambda turns: self._client.ask("/reply", {**name, "turns": turns}, read_reply))
            out = await self._generated(drawn, call, own)
            start, end = out["action_ranges"][0]
            if end > start:
                text = self._text(out["observation_tokens"][start:end], call.tokenizer)
                return {"response": text, "truncated": bool(out["truncated"]), "tokens": end - start}, out
            failure = "the engine returned no token"
        except TrainerError:
            raise  # the service's word, not the engine's
        except Exception as cause:  # whatever an engine may raise for one request
            if type(cause).__name__ == "EngineDeadError":
                raise
            failure = str(cause) if isinstance(cause, GivenUp) else why(cause)
        return {"gave_up": failure[:300]}, stand_in(drawn, call)

    async def _generated(self, drawn: Drawn, call: Call, sampling: Any) -> Output:
        """What the executor of OpenRLHF makes of the prompt."""
        out: Output = await super().execute(
            drawn.prompt, call.label, sampling, call.max_length, Read(call.tokenizer, drawn), call.engine, call.images
        )
        return out

    def _said(self, task: asyncio.Task[Any]) -> None:
        self._last_words.discard(task)
        if not task.cancelled():
            task.exception()  # the first failure is the one to be told

    async def _drawn(self, group: Group, call: Call) -> Drawn:
        """The group's task, asked for once; a member that is cancelled takes nobody's away."""
        if group.task is None:
            group.task = asyncio.get_running_loop().create_task(self._draw(group, call))
        return await asyncio.shield(group.task)

    async def _draw(self, group: Group, call: Call) -> Drawn:
        drawn = await self._client.ask("/slot", {"slot": group.slot, "group": group.name}, read_task)
        if drawn.samples != group.members:
            raise TrainerError(f"the stage has {drawn.samples} samples per prompt, OpenRLHF makes {group.members}")
        size = len(drawn.ids)
        room = call.max_length - int(drawn.sampling["max_tokens"])
        if not 0 < size <= room:
            raise TrainerError(
                f"slot {group.slot}, step {drawn.step}: a prompt of {size} tokens (allowed: 1 … {room}, what"
                f" data.max_len {call.max_length} leaves beside rollout.max_response_tokens)"
            )
        return drawn
