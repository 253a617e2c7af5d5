"""`Problem`: what every source yields, before prompts and splits are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cascade_core.domain import Message


@dataclass(frozen=True)
class Problem:
    """One problem with its answer.

    `text` is the question, `turns` the chat it came in, if it did. `answer` is a label, or an object with `label` and keys of
    the verifier's policy. `response` is a solution worth imitating, `""` if there is none.
    """

    id: str
    text: str
    answer: Any
    source: str
    turns: tuple[Message, ...] = ()
    response: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
