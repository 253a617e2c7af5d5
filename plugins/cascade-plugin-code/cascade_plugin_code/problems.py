"""`Problem`: what every source yields, before prompts and splits are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cascade_core.domain import Message


@dataclass(frozen=True)
class Problem:
    """One problem with its tests.

    `text` is the statement, `turns` the chat it came in, if it did. `answer` is as `exam` describes it. `solution` is a program that
    passes, `""` if none is known, and `others` are more of them.
    """

    id: str
    text: str
    answer: Mapping[str, Any]
    source: str
    turns: tuple[Message, ...] = ()
    solution: str = ""
    others: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Omitted:
    """A row that is a problem of its format, but one that its tests cannot judge; `reason` in words for people."""

    reason: str
