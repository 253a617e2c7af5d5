"""Responses to one task side by side: what a model answered after every stage, and what the verifier said of it.

`sheets` puts the tasks of every benchmark in order; `Sheet.examples` are the few that a page shows at once, and `browser.py` takes
as many of the others as it has room for. The choice is the same for the same folder, and is no cherry-picking among samples: it is always the first sample of a task.
Tasks are sorted into kinds by how that sample's value went from the baseline (the last SFT stage, or the start) to the last
stage: gained, lost, changed between, not judged, unchanged. Kinds take turns, so that losses are shown as often as gains.
Of gains and losses those come first whose mean over all samples went furthest that way; what is left to order, a hash of the
id does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cascade_core.report.answers import AnswerFile, Answers, Sampled
from cascade_core.report.matrix import Matrix
from cascade_core.report.record import StageRecord, count, mapping, number
from cascade_core.report.text import Clip, clip, plain, shown

KINDS = (
    "gained",
    "lost",
    "changed between",
    "not judged",
    "unchanged, not right",
    "unchanged, right",
    "not right",
    "right",
)
TASKS = 6
"""Tasks shown of a benchmark; half as many where there are more than six benchmarks."""
ALL_TEXT = 2_000_000
"""About how many characters of responses a page holds; one response has at least 400 and at most 4,000."""

VERDICTS = {"right": "✓", "wrong": "✗", "partly": "◐", "limit": "◷", "not judged": "!", "absent": "–"}
"""Every verdict with its sign."""


@dataclass(frozen=True)
class Card:
    """One response, the first sample of its task. `others` says how many of the task's samples were right."""

    stage: StageRecord
    verdict: str
    value: str
    note: str
    prefill: str
    text: Clip
    tokens: int | None
    is_truncated: bool
    others: str

    @property
    def mark(self) -> str:
        """The verdict as one sign."""
        return VERDICTS[self.verdict]


@dataclass(frozen=True)
class Example:
    """One task, its kind and the responses to it."""

    kind: str
    task: str
    turns: tuple[tuple[str, Clip], ...]
    title: str
    answer: Clip | None
    source: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Sheet:
    """The tasks of one benchmark.

    `kinds` says how many are of which kind, `turns` is the kind and id of every task, kinds taking turns; `examples` are the first
    few of those, by kind; `is_whole` says whether all rows were read.
    """

    benchmark: str
    kinds: Mapping[str, int]
    turns: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...]
    is_whole: bool
    files: tuple[tuple[StageRecord, AnswerFile], ...]

    def example(self, kind: str, task: str, limit: int) -> Example:
        """A task of `turns` with its responses, every text cut to about `limit` characters."""
        return _example(kind, task, self.files, limit)


def sheets(matrix: Matrix, answers: Answers) -> list[Sheet]:
    """The tasks of every benchmark that has rows."""
    tasks = TASKS if len(matrix.benchmarks) <= 6 else TASKS // 2
    cards = max(1, len(matrix.benchmarks) * tasks * len(matrix.stages))
    limit = min(4000, max(400, ALL_TEXT // cards))
    found = []
    for benchmark in matrix.benchmarks:
        files = [(stage, answers[stage.id, benchmark]) for stage in matrix.stages if (stage.id, benchmark) in answers]
        if any(file.tasks for _, file in files):
            found.append(_sheet(benchmark, tuple(files), matrix.baseline, tasks, limit))
    return found


def _sheet(
    benchmark: str,
    files: tuple[tuple[StageRecord, AnswerFile], ...],
    baseline: StageRecord | None,
    most: int,
    limit: int,
) -> Sheet:
    since = [file for stage, file in files if baseline is None or stage.index >= baseline.index]
    compared = since if len(since) > 1 else [file for _, file in files]
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    is_whole = all(file.is_whole for _, file in files)
    for task in dict.fromkeys(task for file in compared for task in file.tasks):
        if is_whole or all(task in file.tasks for file in compared):
            by_kind[_kind(task, compared)].append(task)
    by_kind = {kind: _ordered(kind, tasks, compared) for kind, tasks in by_kind.items()}
    turns = tuple(_take_turns(by_kind))
    shown = sorted(turns[:most], key=lambda turn: KINDS.index(turn[0]))
    examples = tuple(_example(kind, task, files, limit) for kind, task in shown)
    counts = {kind: len(tasks) for kind, tasks in by_kind.items() if tasks}
    return Sheet(benchmark, counts, turns, examples, is_whole, files)


def _kind(task: str, files: Sequence[AnswerFile]) -> str:
    first = [one for file in files if (one := _first(file, task)) is not None]
    values = [one.value for one in first]
    judged = [value for value in values if value is not None]
    if len(judged) < len(values):
        return "not judged"
    if judged[-1] != judged[0]:
        return "gained" if judged[-1] > judged[0] else "lost"
    if any(value != judged[0] for value in judged):
        return "changed between"
    verdict = "right" if judged[0] >= 1 else "not right"
    return f"unchanged, {verdict}" if len(files) > 1 else verdict


def _first(file: AnswerFile, task: str) -> Sampled | None:
    return min(file.tasks.get(task, ()), key=lambda one: one.sample, default=None)


def _ordered(kind: str, tasks: Iterable[str], files: Sequence[AnswerFile]) -> list[str]:
    way = {"gained": -1.0, "lost": 1.0}.get(kind, 0.0)
    return sorted(
        tasks, key=lambda task: (way * _moved(task, files), hashlib.sha256(task.encode("utf-8", "replace")).digest())
    )


def _moved(task: str, files: Sequence[AnswerFile]) -> float:
    """How far the task's mean over all samples went from the first file to the last."""
    return files[-1].means.get(task, 0.0) - files[0].means.get(task, 0.0)


def _take_turns(by_kind: Mapping[str, list[str]]) -> Iterable[tuple[str, str]]:
    """Kind and id of every task: one of each kind in turn, until there is none left."""
    for i in range(max(map(len, by_kind.values()))):
        yield from ((kind, tasks[i]) for kind, tasks in by_kind.items() if i < len(tasks))


def _example(kind: str, task: str, files: Iterable[tuple[StageRecord, AnswerFile]], limit: int) -> Example:
    rows: list[tuple[StageRecord, Mapping[str, Any], Sequence[Sampled]]] = []
    for stage, file in files:
        first = _first(file, task)
        rows.append((stage, file.row(first) if first else {}, file.tasks.get(task, ())))
    known = next((row for _, row, _ in rows if row), {})
    turns = tuple(_turns(known.get("prompt"), limit))
    answer = known.get("answer")
    return Example(
        kind=kind,
        task=task,
        turns=turns,
        title=" ".join(turns[-1][1].head.split())[:90] if turns else "",
        answer=None if answer in (None, "") else clip(shown(answer), 400),
        source=shown(known.get("source") or ""),
        cards=tuple(_card(stage, row, samples, limit) for stage, row, samples in rows),
    )


def _turns(prompt: object, limit: int) -> Iterable[tuple[str, Clip]]:
    """The turns of a prompt, with their roles where it is a conversation."""
    if not isinstance(prompt, list):
        yield "", clip(shown(prompt), limit)
        return
    for turn in prompt:
        yield str(mapping(turn).get("role", "")), clip(shown(mapping(turn).get("content", turn)), limit)


def _card(stage: StageRecord, row: Mapping[str, Any], samples: Sequence[Sampled], limit: int) -> Card:
    score = mapping(row.get("score"))
    value, tokens = number(score.get("value")), number(row.get("tokens"))
    verdict = _verdict(score, value)
    judged = [one.value for one in samples if one.value is not None]
    return Card(
        stage=stage,
        verdict=verdict,
        value=plain(value, 2) if value is not None and verdict != "not judged" else "",
        note=clip(shown(score.get("error") or score.get("note") or ""), 300).head,
        prefill=shown(row.get("prefill") or "")[:200],
        text=clip(shown(row.get("response", "")), limit),
        tokens=None if tokens is None else count(tokens),
        is_truncated=row.get("truncated") is True,
        others=f"{sum(one >= 1 for one in judged)} of {len(samples)} samples right" if len(samples) > 1 else "",
    )


def _verdict(score: Mapping[str, Any], value: float | None) -> str:
    if value is None:
        return "absent"
    if score.get("error"):
        return "not judged"
    if str(score.get("note", "")).startswith("limit"):
        return "limit"
    return "right" if value >= 1 else "wrong" if value <= 0 else "partly"
