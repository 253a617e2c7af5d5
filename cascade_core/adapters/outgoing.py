"""What both adapters share: a task on its way through somebody's data set, and a count of what could not be judged.

Data sets keep columns, and Arrow gives every row of a column the keys of all the others. So a task travels as JSON text in
one column, and is the same task when its response comes back. Judging is `scoring.py`'s, finished advantages are `judge.py`'s:
a trainer that takes rewards makes its own advantages of them.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cascade_core.domain import Domain, Score, Task
from cascade_core.errors import ContractError, RowError, TooManyFailures
from cascade_core.plugins import registry
from cascade_core.rows import Row, dump, task_row
from cascade_core.scoring import Scorer

_FIELDS = ("domain", "id", "prompt", "answer", "mode", "source", "meta")
_WINDOW = 500  # samples over which failures are counted
_WHOLE = 20  # a call with so many samples, all failed, is an end at once


def carried(domain: str, task: Task) -> str:
    """The task as one line of JSON, for a column `task`."""
    return dump(task_row(domain, task))


def messages(task: Task) -> list[dict[str, str]]:
    """The task's prompt as a conversation."""
    if isinstance(task.prompt, str):
        return [{"role": "user", "content": task.prompt}]
    return [{"role": turn["role"], "content": turn["content"]} for turn in task.prompt]


def opened(text: str) -> Row:
    """The row that `carried` wrote.

    Raises:
        RowError: it is not that.
    """
    try:
        row = json.loads(text)
    except (TypeError, ValueError, RecursionError) as cause:
        raise RowError(f"a column 'task' must hold the JSON text of a row, found {str(text)[:80]!r}") from cause
    if not isinstance(row, dict):
        raise RowError(f"a column 'task' must hold the JSON text of a row, found {str(text)[:80]!r}")
    return {name: row[name] for name in _FIELDS if name in row}


def completed(row: Mapping[str, Any], domains: Iterable[str]) -> Row:
    """A row with what can be filled in: the only domain that is scored, and an id made of the prompt."""
    whole = {name: value for name, value in row.items() if value is not None}
    names = list(domains)
    if len(names) == 1:
        whole.setdefault("domain", names[0])
    if "id" not in whole:
        text = json.dumps(whole.get("prompt"), default=str, sort_keys=True)
        whole["id"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return whole


class Failures:
    """Counts what could not be judged; one for a whole training, safe from several threads.

    Args:
        most: the share of samples that may fail, over the last 500.
    """

    def __init__(self, most: float) -> None:
        self._most, self._lock = most, threading.Lock()
        self._seen: deque[bool] = deque(maxlen=_WINDOW)

    def count(self, scores: Sequence[Score]) -> None:
        """Counts the scores of one call.

        Raises:
            TooManyFailures: more than `most` of the last 500 failed, or all of a call of 20 or more.
        """
        failed = [score for score in scores if not score.is_judged]
        with self._lock:
            self._seen.extend(not score.is_judged for score in scores)
            full, bad, total = len(self._seen) == _WINDOW, sum(self._seen), len(self._seen)
        if failed and ((full and bad > self._most * total) or len(failed) == len(scores) >= _WHOLE):
            raise TooManyFailures(
                f"{bad} of the last {total} samples could not be judged (allowed: {self._most:.1%}), the last: {failed[-1].error}"
            )


def with_own_rewards(scorer: Scorer) -> frozenset[str]:
    """The domains of a scorer whose rewards need the group; their verdicts are not their rewards.

    Raises:
        ContractError: the rewards of one need the whole batch, which no reward function is shown.
        PluginError: one is not installed here.
    """
    classes = {name: registry().domain(ref.name) for name, ref in scorer.domains.items()}
    for name, cls in classes.items():
        if cls.needs_batch:
            raise ContractError(
                f"domain {name!r} makes its rewards of the whole batch, which a reward function is not shown:"
                " train it with cascade run, or ask cascade serve for /rewards"
            )
    return frozenset(name for name, cls in classes.items() if cls.rewards is not Domain.rewards)
