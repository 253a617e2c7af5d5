"""A conversation as one sample of OpenRLHF's: the model's turns are its actions, the environment's turns are only read.

    prompt | turn of the model | what the environment says | turn of the model …
             action                (never learned from)      action

Everything is done in tokens: what the model sampled is never decoded and tokenized again. The text between two of its turns comes from the
service, in the model's own template; its beginning, the end of the turn, is left out where the model has ended the turn itself. A
conversation ends when the environment says nothing more, when the model has had its turns, or when no token fits any more: all that follows
the prompt has at most `max_response_tokens`, and a conversation that is cut there is truncated.

Log-probabilities stand beside their tokens, 0 where nothing was sampled. No OpenRLHF, torch or network here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from cascade_core.errors import TrainerError
from cascade_core.trainers.openrlhf_sample import Call, Drawn, Output


class GivenUp(Exception):
    """The sample cannot be finished: it counts as not judged."""


class Said(NamedTuple):
    """What the environment says; `said` is `None` at the end of the conversation. `text` is what the model reads of it,
    as `ids` in tokens, `prefill` what of that belongs to its next turn.
    """

    said: str | None
    text: str = ""
    prefill: str = ""
    ids: tuple[int, ...] = ()


def read_reply(told: Any) -> Said:
    """The answer of `/reply`.

    Raises:
        TrainerError: it is none.
        GivenUp: the domain could not say anything.
    """
    if not isinstance(told, dict) or not isinstance(told.get("said", 0), str | None):
        raise TrainerError(f"the service answers /reply with {str(told)[:200]!r}")
    if told.get("failed"):
        raise GivenUp(str(told["failed"]))
    if told["said"] is None:
        return Said(None)
    ids = told.get("ids")
    if not told.get("text") or not isinstance(ids, list) or not ids or not all(isinstance(one, int) for one in ids):
        raise TrainerError(f"the service answers /reply without a text: {str(told)[:200]!r}")
    return Said(told["said"], str(told["text"]), str(told.get("prefill") or ""), tuple(ids))


class Conversation:
    """One conversation from its first turn to its last.

    Args:
        sampling: the sample's own parameters; what is left of `max_tokens` is set for each turn.
        decoded: tokens of a turn to its text, without special tokens.
    """

    def __init__(self, drawn: Drawn, call: Call, sampling: Any, decoded: Callable[[Sequence[int]], str]) -> None:
        self._drawn, self._call, self._sampling, self._decoded = drawn, call, sampling, decoded
        self._tokens = list(drawn.ids)
        self._last = len(self._tokens) + int(drawn.sampling["max_tokens"])  # the conversation ends there
        self._logged: list[float] | None = None if sampling.logprobs is None else [0.0] * len(self._tokens)
        self._ranges: list[tuple[int, int]] = []
        self._turns: list[dict[str, str]] = []
        self._opening = drawn.prefill

    async def led(self, reply: Callable[[list[dict[str, str]]], Awaitable[Said]]) -> tuple[dict[str, Any], Output]:
        """Leads it: what the service is told of the sample, and the output.

        Args:
            reply: asks the environment, after these turns.

        Raises:
            GivenUp: it cannot be finished.
            TrainerError: the service refuses.
        """
        while True:
            text, is_cut = await self._turn()
            if is_cut or len(self._ranges) == self._drawn.turns:
                break
            turns = [*self._turns, {"role": "assistant", "content": self._opening + text}]
            found = await reply(turns)
            if found.said is None:
                break
            if not self._append(found.ids):
                is_cut = True
                break
            self._turns = [*turns, {"role": "user", "content": found.said}]
            self._opening = found.prefill
        return self._told(text, is_cut), self._output(is_cut)

    async def _turn(self) -> tuple[str, bool]:
        """Samples a turn of the model: its text, and whether the length limit cut it."""
        asked = deepcopy(self._sampling)
        asked.max_tokens = self._last - len(self._tokens)
        made = (await self._call.engine.generate(list(self._tokens), asked)).outputs[0]
        action = list(made.token_ids)
        if not action:
            raise GivenUp("the engine returned no token")
        start = len(self._tokens)
        self._tokens += action
        self._ranges.append((start, len(self._tokens)))
        if self._logged is not None:
            if made.logprobs is None or len(made.logprobs) != len(action):
                raise GivenUp("the engine returned no log-probability of each token")
            self._logged += [found[token].logprob for found, token in zip(made.logprobs, action, strict=True)]
        return self._decoded(action), made.finish_reason == "length"

    def _append(self, ids: Sequence[int]) -> bool:
        """Reads what the environment says; false where no turn of the model would fit behind it."""
        read = list(ids[1:] if ids[0] == self._tokens[-1] else ids)
        if len(self._tokens) + len(read) >= self._last:
            return False
        self._tokens += read
        if self._logged is not None:
            self._logged += [0.0] * len(read)
        return True

    def _told(self, text: str, is_cut: bool) -> dict[str, Any]:
        tokens = sum(end - start for start, end in self._ranges)
        told = {"response": text, "truncated": is_cut, "tokens": tokens}
        return {**told, "turns": self._turns} if self._turns else told

    def _output(self, is_cut: bool) -> Output:
        return {
            "prompt": self._drawn.prompt,
            "label": self._call.label,
            "images": self._call.images,
            "mm_train_inputs": None,
            "observation_tokens": self._tokens,
            "action_ranges": self._ranges,
            "rollout_log_probs": self._logged,
            "truncated": is_cut,
        }
