"""Our verdicts as a reward function for TRL's `GRPOTrainer`.

    with Scorer({"math": registry().reference("math")}, Scoring()) as scorer:
        data = Dataset.from_list(trl_rows("math", tasks))
        GRPOTrainer(model, reward_funcs=trl_reward(scorer), train_dataset=data, args=args).train()

A sample that could not be judged is `None`, which TRL from 1.6 on leaves out of the group's mean and deviation, with advantage 0. Older
ones make a reward of 0 of it, a wrong answer that nobody gave, and are refused. Advantages are TRL's own here, and so is what becomes of
a response that was cut; `cascade run` with `trainer: trl` is the way to have those of the stage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cascade_core.adapters.outgoing import Failures, carried, completed, messages, opened, with_own_rewards
from cascade_core.domain import BatchStats, Score, Task
from cascade_core.errors import ContractError, RowError, ScoringError
from cascade_core.rows import Row, score_json
from cascade_core.scoring import Scorer

_COLUMNS = ("domain", "id", "answer", "mode", "source", "meta")
_FIRST = (1, 6)

Reward = Callable[..., list[float | None]]


def trl_rows(domain: str, tasks: Iterable[Task], *, plain: bool = False) -> list[dict[str, Any]]:
    """Rows of a data set for `GRPOTrainer`: `prompt` (a conversation, or text if `plain`), and `task` for the reward function.

    Raises:
        ContractError: `plain`, and a task's prompt is a conversation.
    """
    found = []
    for task in tasks:
        if plain and not isinstance(task.prompt, str):
            raise ContractError(f"task {task.id!r} has a conversation for a prompt, which is no plain text")
        found.append({"prompt": task.prompt if plain else messages(task), "task": carried(domain, task)})
    return found


def trl_reward(
    scorer: Scorer,
    *,
    columns: Mapping[str, str] | None = None,
    group_size: int | None = None,
    ends: Collection[int] = (),
    prefill: str = "",
    name: str = "cascade",
) -> Reward:
    """A reward function: one finite reward per completion, or `None` where it could not be judged.

    A data set made by `trl_rows` needs no more. Of any other the columns `domain`, `id`, `answer`, `mode`, `source` and `meta` are read
    where they are there; a domain that is the only one scored, and an id made of the prompt, are filled in.

    Args:
        columns: other names for them, such as `{"answer": "solution"}`.
        group_size: TRL's `num_generations`; needed for domains that make their rewards of the group, which must then be whole in
            every process (`per_device_train_batch_size` × gradient steps a multiple of it).
        ends: ids of the tokens that end a response; one whose last token is none of them was cut. Without them none is.
        prefill: what the chat template puts before every response.
        name: that the trainer logs the reward under.

    Raises:
        ContractError: TRL is older than 1.6; a domain needs the whole batch, or the group and `group_size` is missing. When called: groups
            are not whole.
        TooManyFailures: when called: more than the scorer's `max_error_rate` of the last 500 samples could not be judged, or all of a call.
    """
    _check_version()
    own = with_own_rewards(scorer)
    if own and group_size is None:
        raise ContractError(f"domain {min(own)!r} makes its rewards of the group: say with group_size how large one is")
    failures = Failures(scorer.settings.max_error_rate)

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any] | None = None, **given: Any
    ) -> list[float | None]:
        cut = [bool(ends) and (not ids or ids[-1] not in ends) for ids in completion_ids or [[]] * len(completions)]
        rows: list[Row | Score] = []
        for index, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            try:
                task = _task(
                    prompt,
                    {key: values[index] for key, values in given.items() if _is_column(values, prompts)},
                    columns,
                )
                said = {"response": _text(completion), "prefill": prefill, "truncated": cut[index]}
                rows.append({**completed(task, scorer.domains), **said})
            except RowError as cause:
                rows.append(Score.failed(str(cause)))
        scores = _scores(scorer, rows)
        rewards = _rewards(scorer, rows, scores, own, group_size or 1)
        failures.count(scores)
        _tell(given.get("log_metric"), scores, name)
        return rewards

    reward.__name__ = name
    return reward


def _scores(scorer: Scorer, rows: Sequence[Row | Score]) -> list[Score]:
    judged = iter(scorer.score([row for row in rows if not isinstance(row, Score)]))
    return [row if isinstance(row, Score) else next(judged) for row in rows]


def _rewards(
    scorer: Scorer, rows: Sequence[Row | Score], scores: list[Score], own: Collection[str], size: int
) -> list[float | None]:
    """The rewards; `scores` gets the failures of groups."""
    rewards = [score.trained if score.is_judged else None for score in scores]
    whole = _groups(rows, size) if own else []
    for domain in sorted(own):
        live = [[i for i in group if rewards[i] is not None and _of(rows[i], domain)] for group in whole]
        live = [group for group in live if group]
        if not live:
            continue
        trained = [scores[i].trained for group in live for i in group]
        batch = BatchStats(len(trained), min(trained), math.fsum(trained) / len(trained), max(trained))
        asked = [[{**rows[i], "score": score_json(scores[i])} for i in group] for group in live]  # type: ignore[dict-item]
        for group, found in zip(live, scorer.group_rewards(domain, asked, batch), strict=True):
            for place, i in enumerate(group):
                if isinstance(found, ScoringError):
                    rewards[i], scores[i] = None, Score.failed(str(found))
                else:
                    rewards[i] = found[place]
    return rewards


def _groups(rows: Sequence[Row | Score], size: int) -> list[range]:
    """The places of `size` samples of one task each, which follow each other.

    Raises:
        ContractError: they do not come out even, or a group is not of one task.
    """
    found = [range(start, start + size) for start in range(0, len(rows), size)]
    tasks = [{row["id"] for row in rows[group.start : group.stop] if not isinstance(row, Score)} for group in found]
    if len(rows) % size or any(len(ids) > 1 for ids in tasks):
        raise ContractError(
            f"a domain that makes its rewards of the group needs whole groups, group_size {size} samples of one task in a row,"
            f" and {len(rows)} samples came that are not"
        )
    return found


def _of(row: Row | Score, domain: str) -> bool:
    return not isinstance(row, Score) and row.get("domain") == domain


def _is_column(values: Any, prompts: Sequence[Any]) -> bool:
    """Columns of the data set are lists as long as the prompts; what else TRL hands over (its state, its loggers) is not."""
    return isinstance(values, list) and len(values) == len(prompts)


def _task(prompt: Any, given: Mapping[str, Any], columns: Mapping[str, str] | None) -> Row:
    if given.get("task") is not None:
        return opened(given["task"])
    named = {name: (columns or {}).get(name, name) for name in _COLUMNS}
    return {"prompt": prompt, **{name: given[key] for name, key in named.items() if key in given}}


def _text(completion: Any) -> str:
    """What the model said: text, or the last of the assistant's messages.

    Raises:
        RowError: neither.
    """
    if isinstance(completion, str):
        return completion
    turns = completion if isinstance(completion, Sequence) else []
    said = [turn.get("content") for turn in turns if isinstance(turn, Mapping) and turn.get("role") == "assistant"]
    content = said[-1] if said else None
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        raise RowError(
            f"a completion must be a text or end in a message of the assistant's, found {str(completion)[:120]}"
        )
    return content


def _tell(log_metric: Any, scores: Sequence[Score], name: str) -> None:
    """To the trainer's own log, so that a mean reward never stands there without what it leaves out."""
    if not callable(log_metric) or not scores:
        return
    judged = [score for score in scores if score.is_judged]
    log_metric(f"{name}/failed", 1 - len(judged) / len(scores))
    log_metric(f"{name}/limit", sum(score.is_limit for score in judged) / len(scores))
    if judged:
        log_metric(f"{name}/value", sum(score.value for score in judged) / len(judged))


def _check_version() -> None:
    try:
        found = version("trl")
    except PackageNotFoundError:
        return  # whoever calls it then is not TRL
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if numbers < _FIRST:
        raise ContractError(f"TRL {found} makes a reward of 0 of what could not be judged: install trl>=1.6")
