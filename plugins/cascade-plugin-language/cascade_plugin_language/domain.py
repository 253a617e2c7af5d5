"""The domain `code-switch`: 1 where an English prompt is answered in English, 0 where words of another language are mixed in.

It judges the answer to any task, of any domain; what is done about a switch is the stage's policy. Its own few tasks
(`tasks.py`) are there for `cascade check`. Importing this module loads no word list.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cascade_core import Domain, Response, Score, Task
from cascade_core.errors import ContractError, UsageError
from cascade_plugin_language import tasks

if TYPE_CHECKING:
    from cascade_plugin_language.detector import Found
    from cascade_plugin_language.prompt import Leave

_PARTS = ("all", "answer")
_NAMED = 6  # words in a note
_LONGEST = 24  # characters of one of them


@dataclass
class CodeSwitch(Domain):
    """Code-switching: a scorer of any task.

    Attributes:
        parts: what is read: `all` is thought and answer, `answer` only what follows the thought (all where the thought does
            not end).

    Raises:
        UsageError: `parts` is something else.
    """

    name: ClassVar[str] = "code-switch"
    judges_any: ClassVar[bool] = True

    parts: str = "all"

    def __post_init__(self) -> None:
        if self.parts not in _PARTS:
            raise UsageError(f"option 'parts' of domain 'code-switch' must be 'all' or 'answer', found {self.parts!r}")

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        """Small questions with a word that a right answer holds; the same in every run.

        Raises:
            UsageError: `split` is neither `train` nor `test`.
        """
        return tasks.tasks(split, seed)

    def open(self, resources: Mapping[str, str]) -> None:
        """Loads the word lists, so that the time this takes is not counted against the first verdict."""
        detector = importlib.import_module("cascade_plugin_language.detector")
        detector.find("el perro come la comida")

    def score(self, task: Task, response: Response) -> Score:
        """1 if no foreign word is in the response, else 0; the note names the first of them.

        `foreign_words` counts them, `foreign_share` is their share of the letters (0 to 1). A prompt that is not English is
        not judged and scores 1. The domain's own tasks also want their word.

        Raises:
            ContractError: the response is no text.
        """
        _, found = self._look(task, response)
        metrics = {"foreign_words": float(len(found.words)), "foreign_share": found.share}
        if found.words:
            named = ", ".join(f"{word.text[:_LONGEST]} ({word.kind})" for word in found.words[:_NAMED])
            more = f" and {len(found.words) - _NAMED} more" if len(found.words) > _NAMED else ""
            return Score(0.0, note=f"not English: {_printable(named)}{more}", metrics=metrics)
        missing = tasks.missing(task, response.answer)
        return Score(0.0 if missing else 1.0, note=missing, metrics=metrics)

    def explain(self, task: Task, response: Response) -> Mapping[str, Any]:
        """What the prompt allows, every foreign word with its language or script, and the parts that were read."""
        leave, found = self._look(task, response)
        rule = "the prompt asks for or is about other languages" if leave.everything else "the prompt is English"
        return {
            "rule": rule if leave.judged else "the prompt is not English: the answer is not judged",
            "parts": self.parts,
            "allowed": sorted(leave.kinds),
            "words": [{"word": _printable(word.text[:_LONGEST]), "kind": word.kind} for word in found.words[:100]],
            "foreign_words": len(found.words),
            "foreign_share": round(found.share, 4),
        }

    def reference(self, task: Task) -> str | None:
        """The answer of one of the domain's own tasks."""
        return tasks.reference(task)

    def _look(self, task: Task, response: Response) -> tuple[Leave, Found]:
        from cascade_plugin_language.detector import find
        from cascade_plugin_language.prompt import leave

        if not isinstance(response.text, str):
            raise ContractError(f"a response must be text, found {response.text!r}")
        allowed = leave(task.prompt, task.question)
        whole = response.prefill + response.text
        answer = response.answer if self.parts == "answer" else None
        return allowed, find(whole if answer is None else answer, allowed)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
