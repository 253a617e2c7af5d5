"""The browser of responses: the data with which a page's own script searches and filters all tasks of a run.

`build` takes the tasks of every benchmark in the order of `responses.sheets`, benchmarks in turn, until `MOST_BYTES` are full, and
gives them as one JSON text that is safe inside `<script type="application/json">`: a browser runs no such element, `<`, `>` and `&`
stand in it as escapes, and unfit characters have become signs before (`text.visible`). The script writes strings as text only,
never as markup. What did not fit is counted, so that the page can say so. Nothing here chooses among samples: it is the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cascade_core.report.record import StageRecord
from cascade_core.report.responses import KINDS, VERDICTS, Card, Example, Sheet
from cascade_core.report.text import Clip, visible

MOST_BYTES = 3_000_000
"""Bytes that the tasks of the browser may add to a page."""
MOST_OF_TASK = 150_000
"""Bytes of one task; a larger one (a prompt of a thousand turns, say) is left out and counted."""

# In a script element only "</script" and "<!--" mean anything to a browser, but then in any spelling: no "<" is left at all.
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


@dataclass(frozen=True)
class Browser:
    """The JSON text, how many tasks it holds (`shown`) of how many there are (`total`), and whether a text was cut to `limit` characters."""

    data: Markup
    shown: int
    total: int
    limit: int
    is_cut: bool


def build(sheets: Sequence[Sheet], stages: Sequence[StageRecord]) -> Browser:
    """The data of all tasks that fit; `stages` are those of the matrix."""
    total = sum(len(sheet.turns) for sheet in sheets)
    limit = min(4000, max(400, MOST_BYTES // max(1, total * (len(stages) + 1))))
    head = {
        "benchmarks": [visible(sheet.benchmark) for sheet in sheets],
        "kinds": list(KINDS),
        "verdicts": list(VERDICTS.items()),
        "stages": [visible(stage.name) for stage in stages],
    }
    places = {stage.id: place for place, stage in enumerate(stages)}
    tasks, used, is_cut = [], 0, False
    for place, example in _in_turn(sheets, limit):
        told = _dump({"b": place, **_task(example, places)})
        size = len(told.encode()) + 1
        if size > MOST_OF_TASK:
            continue
        if used + size > MOST_BYTES:
            break
        tasks.append(told)
        is_cut = is_cut or _is_cut(example)
        used += size
    data = f'{_dump(head)[:-1]},"tasks":[{",".join(tasks)}]}}'
    return Browser(Markup(data), len(tasks), total, limit, is_cut)


def _in_turn(sheets: Sequence[Sheet], limit: int) -> Iterator[tuple[int, Example]]:
    """The place of a sheet and a task of it: one of each sheet in turn, until none is left."""
    for i in range(max((len(sheet.turns) for sheet in sheets), default=0)):
        for place, sheet in enumerate(sheets):
            if i < len(sheet.turns):
                yield place, sheet.example(*sheet.turns[i], limit)


def _is_cut(example: Example) -> bool:
    return any(text.omitted for text in (*(turn for _, turn in example.turns), *(card.text for card in example.cards)))


def _dump(value: Mapping[str, Any]) -> str:
    """JSON in which no character can end the element that holds it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _task(example: Example, places: Mapping[str, int]) -> dict[str, Any]:
    """One task by short keys; `templates/browser.js` is the only reader. What is empty is left out."""
    fields = {
        "k": KINDS.index(example.kind),
        "id": visible(example.task),
        "q": [[visible(role), _text(turn)] for role, turn in example.turns],
        "a": _text(example.answer) if example.answer else "",
        "s": visible(example.source),
        "c": [_card(card, places) for card in example.cards],
    }
    return {key: value for key, value in fields.items() if value not in ("", [])}


def _card(card: Card, places: Mapping[str, int]) -> dict[str, Any]:
    fields = {
        "v": list(VERDICTS).index(card.verdict),
        "x": card.value if card.verdict not in ("right", "wrong") else "",
        "n": visible(card.note),
        "p": visible(card.prefill),
        "r": _text(card.text),
        "t": card.tokens,
        "cut": card.is_truncated,
        "o": card.others,
        "s": places[card.stage.id],
    }
    return {key: value for key, value in fields.items() if value is not None and value is not False and value != ""}


def _text(clip: Clip) -> str | list[str | int]:
    """A text, or what is left of it: its head, how many characters were left out, its tail."""
    return [visible(clip.head), clip.omitted, visible(clip.tail)] if clip.omitted else visible(clip.head)
