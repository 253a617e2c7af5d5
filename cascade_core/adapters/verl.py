"""Our verdicts as verl's `compute_score`, for a file that `reward.custom_reward_function.path` names.

    reward = VerlReward(lambda: Scorer({"math": registry().reference("math")}, Scoring(workers=2)))
    compute_score = reward.compute_score

verl calls it in its own processes, one sample at a time from threads or all of a batch at once (reward manager `batch`), so the
scorer is made where it is first needed. What could not be judged raises: verl judges the batch once more and then ends. It has no word for
"leave this sample out": `None` breaks it, and a NaN spreads over its group until the whole update is skipped. Whoever wants to
go on says what such a sample is worth with `unjudged`; it is never made a 0 unasked.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cascade_core.adapters.outgoing import Failures, carried, completed, messages, opened, with_own_rewards
from cascade_core.domain import Score, Task
from cascade_core.errors import ContractError, RowError, ScoringError
from cascade_core.rows import Row
from cascade_core.scoring import Scorer

_EXTRA = ("id", "prompt", "mode", "source", "meta", "truncated", "prefill")


def verl_rows(domain: str, tasks: Iterable[Task], split: str = "train") -> list[dict[str, Any]]:
    """Rows of a data set for verl (`data.train_files`, a parquet file): the task goes along in `extra_info`."""
    return [
        {
            "data_source": domain,
            "prompt": messages(task),
            "ability": domain,
            "reward_model": {"style": "rule", "ground_truth": _ground_truth(task.answer)},
            "extra_info": {"split": split, "index": index, "task": carried(domain, task)},
        }
        for index, task in enumerate(tasks)
    ]


class VerlReward:
    """`compute_score` in three forms; safe from many threads, and sent to another process without its scorer.

    Args:
        make: makes the scorer, once in every process that judges.
        sources: verl's `data_source` to a domain that is scored, such as `{"openai/gsm8k": "math"}`; one that is not listed is a domain's
            own name, or any where only one is scored.
        unjudged: the reward of a sample that could not be judged; `None` raises.

    Every answer is a dictionary: `score` is the reward, `value` the verdict, `judged` and `limit` are 0 or 1, always the same keys.
    """

    def __init__(
        self, make: Callable[[], Scorer], *, sources: Mapping[str, str] | None = None, unjudged: float | None = None
    ) -> None:
        self._make, self._sources, self._unjudged = make, dict(sources or {}), unjudged
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_sources": self._sources, "_unjudged": self._unjudged}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[Scorer, Failures] | None = None

    def close(self) -> None:
        """Ends this process's scorer; the next call makes another."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made[0].close()

    def compute_score(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **ignored: Any,
    ) -> dict[str, float]:
        """One sample, for verl's reward managers `naive`, `prime` and `dapo`.

        Raises:
            ScoringError: it could not be judged, and `unjudged` says nothing.
            ContractError: a domain makes its rewards of the group, which one sample does not show.
        """
        return self.compute_scores([data_source], [solution_str], [ground_truth], [extra_info])[0]

    def compute_scores(
        self,
        data_sources: Sequence[str],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any] | None],
        **ignored: Any,
    ) -> list[dict[str, float]]:
        """A whole batch, judged side by side, for verl's reward manager `batch`. Raises as `compute_score`."""
        scorer, failures = self._ready()
        samples = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
        rows = [self._row(scorer, *sample) for sample in samples]
        judged = iter(scorer.score([row for row in rows if not isinstance(row, Score)]))
        scores = [row if isinstance(row, Score) else next(judged) for row in rows]
        return self._answers(failures, rows, scores)

    async def compute_score_async(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **ignored: Any,
    ) -> dict[str, float]:
        """One sample without a thread of its own, for verl's reward loop. Raises as `compute_score`."""
        scorer, failures = self._ready()
        row = self._row(scorer, data_source, solution_str, ground_truth, extra_info)
        score = row if isinstance(row, Score) else await asyncio.wrap_future(scorer.submit(row))
        return self._answers(failures, [row], [score])[0]

    def _ready(self) -> tuple[Scorer, Failures]:
        with self._lock:
            if self._made is None:
                scorer = self._make()
                try:
                    own = with_own_rewards(scorer)
                    if own:
                        raise ContractError(
                            f"domain {min(own)!r} makes its rewards of the group, which verl does not show:"
                            " train it with cascade run, or ask cascade serve for /rewards"
                        )
                except BaseException:
                    scorer.close()
                    raise
                self._made = scorer, Failures(scorer.settings.max_error_rate)
            return self._made

    def _row(
        self, scorer: Scorer, source: str, response: Any, answer: Any, extra: Mapping[str, Any] | None
    ) -> Row | Score:
        extra = extra or {}
        try:
            if extra.get("task") is not None:
                row = opened(extra["task"])
            else:
                named = {name: _plain(extra[name]) for name in _EXTRA if extra.get(name) is not None}
                row = {"prompt": "", "answer": _plain(answer), **named}
                domain = self._sources.get(source, source)
                if domain in scorer.domains:
                    row["domain"] = domain
                elif len(scorer.domains) > 1:
                    known = ", ".join(sorted(scorer.domains))
                    return Score.failed(
                        f"no domain of data_source {source!r}: sources must say which it is (allowed: {known})"
                    )
                if "id" not in row and extra.get("index") is not None:
                    row["id"] = f"{source}/{extra['index']}"
        except RowError as cause:
            return Score.failed(str(cause))
        return {**completed(row, scorer.domains), "response": response}

    def _answers(
        self, failures: Failures, rows: Sequence[Row | Score], scores: Sequence[Score]
    ) -> list[dict[str, float]]:
        for row, score in zip(rows, scores, strict=True):
            if not score.is_judged and self._unjudged is None:
                named = row.get("id") if isinstance(row, dict) else None
                raise ScoringError(
                    f"task {named!r} could not be judged, and verl cannot leave a sample out: {score.error}"
                )
        failures.count(scores)
        return [self._answer(score) for score in scores]

    def _answer(self, score: Score) -> dict[str, float]:
        worth = self._unjudged if self._unjudged is not None else 0.0
        return {
            "score": score.trained if score.is_judged else worth,
            "value": score.value if score.is_judged else worth,
            "judged": float(score.is_judged),
            "limit": float(score.is_limit),
        }


def _ground_truth(answer: Any) -> str:
    """Text, since a parquet column has one type."""
    return answer if isinstance(answer, str) else json.dumps(answer)


def _plain(value: Any) -> Any:
    """Arrays, which is what parquet makes of lists, as lists."""
    return value.tolist() if hasattr(value, "tolist") else value
