"""Preferences from JSONL and Parquet files and from data sets of a hub: a prompt, the better answer, the worse.

What a source may be: `cascade_core.sources`. What a row may look like: `pair_formats.py`. A row whose two sides are the same
text is refused, since it prefers nothing; a row whose judges saw no difference is a tie, left out and counted in the log.
A preference that comes again is left out. Nothing is scored or trained here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cascade_core.domain import Message, Pair, Task
from cascade_core.errors import UsageError
from cascade_core.sources import OnBadRow, digest, load

REFERENCE = "reference_answer"
"""The key of a task's answer under which the answer lies that others are compared with."""

_log = logging.getLogger(__name__)
_told: set[tuple[str, int]] = set()  # a source is loaded many times in a run, and told to have so many ties once


@dataclass(frozen=True)
class Preference:
    """One row: `chosen` is better than `rejected`, unless it is a `tie`."""

    prompt: str | list[Message]
    chosen: str
    rejected: str
    tie: bool = False
    id: str = ""
    subset: str = ""
    source: str = ""

    @property
    def task(self) -> Task:
        """The prompt as a task, its reference the better answer."""
        key = self.id or digest(text_of(self.prompt))
        meta = {"subset": self.subset} if self.subset else {}
        return Task(key, self.prompt, {REFERENCE: self.chosen}, source=self.source, meta=meta)

    @property
    def pair(self) -> Pair:
        """The preference as the contract has it; its id names the two answers too, as a prompt may be asked about often."""
        task = self.task
        key = f"{task.id}-{digest(self.chosen + chr(0) + self.rejected)}"
        return Pair(Task(key, task.prompt, source=task.source, meta=task.meta), self.chosen, self.rejected)


def preferences(sources: Sequence[str], on_bad_row: OnBadRow = "fail") -> Iterator[Preference]:
    """The preferences of all sources in order, each once, without ties.

    Raises:
        UsageError: a source cannot be opened, or (unless bad rows are skipped) a row is of no known format, has an empty side, or
            two sides that are the same.
    """
    seen: set[str] = set()
    for source in sources:
        ties = 0
        for one in load(source, partial(_checked, source=source), on_bad_row):
            if one.tie:
                ties += 1
                continue
            key = digest("\0".join((text_of(one.prompt), one.chosen, one.rejected)))
            if key not in seen:
                seen.add(key)
                yield one
        if ties and (source, ties) not in _told:
            _told.add((source, ties))
            _log.warning("%s: %d ties left out: a pair needs a better side", source, ties)


def _checked(row: Mapping[str, Any], where: str, source: str) -> Preference:
    from cascade_plugin_rlhf.pair_formats import preference

    one = preference(row, where)
    if not one.tie and one.chosen.strip() == one.rejected.strip():
        raise UsageError(f"{where}: both sides are the same, {one.chosen[:60]!r}: that prefers nothing")
    if not one.tie and not one.chosen.strip():
        raise UsageError(f"{where}: the better side is empty")
    return replace(one, source=str(row.get("source") or Path(source).stem))


def text_of(prompt: str | Sequence[Message]) -> str:
    """All that a prompt says, with who says it; what makes two prompts the same."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) == 1 and prompt[0]["role"] == "user":
        return prompt[0]["content"]
    return "\0".join(f"{turn['role']}: {turn['content']}" for turn in prompt)
