"""What the agent in OpenRLHF's engines knows of groups, tasks and answers; plain data, without OpenRLHF, torch or network.

`openrlhf_agent.py` says how it is used. Bodies are those of `cascade_core.serve`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from cascade_core.errors import TrainerError

LOGGED = (
    "cascade_judged",
    "cascade_value",
    "cascade_reward",
    "cascade_masked",
    "cascade_limit",
    "cascade_truncated",
    "cascade_tokens",
)
"""The numbers that OpenRLHF logs of every sample; it ends the job when they are not the same for all."""

Output = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """The task of a group: what is to be read, and how its responses are sampled."""

    step: int
    prompt: str
    samples: int
    sampling: Mapping[str, Any]
    turns: int = 0
    """Turns that the model may have in a conversation; 0 where the task is none."""
    prefill: str = ""
    """What of the prompt belongs to the model's first turn."""
    ids: tuple[int, ...] = ()
    """The tokens of the prompt."""


@dataclass
class Group:
    """The samples of one prompt: those that were called for, and their task once one of them has asked."""

    shared: object
    slot: int
    name: str = field(default_factory=lambda: uuid4().hex)
    members: int = 0
    begun: bool = False
    task: asyncio.Task[Drawn] | None = None


@dataclass(frozen=True)
class Call:
    """What OpenRLHF hands to `execute`."""

    label: Any
    sampling: Any
    max_length: int
    tokenizer: Any
    engine: Any
    images: Any


class Read:
    """The tokenizer of a call as its executor sees it: the prompt of the task has the tokens that the service says, anything else the tokenizer's."""

    def __init__(self, tokenizer: Any, drawn: Drawn) -> None:
        self._tokenizer, self._drawn = tokenizer, drawn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, text: Any, **options: Any) -> Any:
        if text != self._drawn.prompt:
            return self._tokenizer(text=text, **options)
        ids: Any = list(self._drawn.ids)
        if options.get("return_tensors") == "pt":
            import torch

            ids = torch.tensor([ids])
        return {"input_ids": ids}


def stand_in(drawn: Drawn, call: Call) -> Output:
    """The output of a sample that has no response: the prompt and one token, which will be masked."""
    read = list(drawn.ids)
    last = call.tokenizer.eos_token_id
    return {
        "prompt": drawn.prompt,
        "label": call.label,
        "images": call.images,
        "mm_train_inputs": None,
        "observation_tokens": [*read, read[-1] if last is None else last],
        "action_ranges": [(len(read), len(read) + 1)],
        "rollout_log_probs": None if call.sampling.logprobs is None else [0.0] * (len(read) + 1),
        "truncated": False,
    }


def finished(out: Output, answer: Mapping[str, Any]) -> Output:
    """The output with its advantage; of a masked sample, one token of response is left."""
    out |= {"reward": answer["reward"], "scores": answer["scores"], "extra_logs": answer["extra_logs"]}
    if answer["masked"]:
        start = out["action_ranges"][0][0]
        out |= {"reward": 0.0, "action_ranges": [(start, start + 1)]}
        found = out["rollout_log_probs"]
        if found is not None:  # the trainer's own are 0 there, and the ratio of the two must be 1
            out["rollout_log_probs"] = found[: start + 1] + [0.0] * (len(found) - start - 1)
    return out


def slot_of(label: Any) -> int:
    """The slot that a row of the data set stands for.

    Raises:
        TrainerError: it stands for none.
    """
    if not str(label).isdecimal():
        raise TrainerError(
            f"the data set must hold slots, labelled by their numbers, found the label {str(label)[:80]!r}"
        )
    return int(label)


def read_task(told: Any) -> Drawn:
    """The answer of `/slot`.

    Raises:
        TrainerError: it is none.
    """
    try:
        given = told["sampling"]
        sampling = {
            "temperature": float(given["temperature"]),
            "top_p": float(given["top_p"]),
            "top_k": int(given.get("top_k") or -1),  # ours says 0 for all tokens, vLLM -1
            "max_tokens": int(given["max_tokens"]),
        }
        turns = int(told.get("turns") or 0)
        return Drawn(
            int(told["step"]),
            str(told["prompt"]),
            int(told["samples"]),
            sampling,
            turns,
            str(told.get("prefill") or ""),
            tuple(map(int, told["ids"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise TrainerError(f"the service answers /slot with {str(told)[:200]!r}: {why(cause)}") from cause


def read_answer(told: Any) -> dict[str, Any]:
    """The answer of `/sample`: finite numbers only, and the same names whatever happened.

    Raises:
        TrainerError: it is none.
    """
    try:
        logs = {name: float(told["extra_logs"].get(name, 0.0)) for name in LOGGED}
        found = {"reward": float(told["reward"]), "scores": float(told["scores"])}
        if not all(map(math.isfinite, (*found.values(), *logs.values()))):
            raise ValueError("a number is not finite")
        return {**found, "masked": bool(told["masked"]), "extra_logs": logs}
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise TrainerError(f"the service answers /sample with {str(told)[:200]!r}: {why(cause)}") from cause


def why(cause: BaseException) -> str:
    """An exception in one line."""
    return f"{type(cause).__name__}: {cause}"[:300]
