"""What the options of the domain name, split by split: prompts to answer and preferences to learn from.

Prompts of anything that is measured, policy or reward model, are in no training split; without evaluation files one prompt in
five is held out, by its text alone (`cascade_core.sources.is_held_out`), so that prompts and preferences of one text are on
the same side. Without any file everything comes from the generator `tiny`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from cascade_core.domain import Demonstration, Pair, Task
from cascade_core.errors import UsageError
from cascade_core.prompts import prompt_key
from cascade_core.sources import OnBadRow, is_held_out, read
from cascade_plugin_rlhf import tiny
from cascade_plugin_rlhf.pair_formats import FORMATS
from cascade_plugin_rlhf.pairs import REFERENCE, Preference, preferences, text_of
from cascade_plugin_rlhf.questions import Fields, arena, questions

ARENA, REWARD_BENCH = "arena", "reward_bench"
_OWN = ("train", "test")


@dataclass(frozen=True)
class Data:
    """The sources of a domain; see the options of `RLHF`."""

    prompts: Sequence[str] = ()
    tests: Mapping[str, Sequence[str]] = field(default_factory=dict)
    preferences: Sequence[str] = ()
    test_preferences: Sequence[str] = ()
    reward_bench: str = ""
    arena: str = ""
    arena_answers: str = ""
    fields: Fields = field(default_factory=Fields)

    @property
    def is_tiny(self) -> bool:
        """Whether all comes from the generator."""
        return not (self.prompts or self.tests or self.preferences or self.test_preferences)

    @property
    def on_bad_row(self) -> OnBadRow:
        """What becomes of a row that cannot be used."""
        return self.fields.on_bad_row

    def has_pairs(self, split: str) -> bool:
        """Whether there are preferences of a split: files of them, or prompts whose first row is one."""
        sources = self._pair_sources(split)
        return self.is_tiny or bool(self.preferences or self.test_preferences) or _are_pairs(sources)

    def _pair_sources(self, split: str) -> Sequence[str]:
        if split == "test" and self.test_preferences:
            return self.test_preferences
        return self.preferences or self.prompts

    # --- prompts ------------------------------------------------------------------------------------------------
    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        """Tasks of `train`, `test`, a name of `tests`, `arena` or `reward_bench`.

        Raises:
            UsageError: there is no such split, or nothing to train on.
        """
        if split == REWARD_BENCH and self.reward_bench:
            return (pair.task for pair in self.pairs(split, seed))
        if split == ARENA and self.arena:
            return arena(self.arena, self.arena_answers, self.fields)
        if split in self.tests:
            return questions(self.tests[split], self.fields)
        if split not in _OWN:
            names = (*_OWN, *self.tests, *(name for name in (ARENA, REWARD_BENCH) if getattr(self, name)))
            raise UsageError(f"split must be one of {', '.join(map(repr, dict.fromkeys(names)))}, found {split!r}")
        if self.is_tiny:
            return self._kept((_tiny_task(one) for one in tiny.requests(split, seed if split == "train" else 0)), split)
        if split == "test" and self.tests:
            return questions([source for sources in self.tests.values() for source in sources], self.fields)
        sources = self.prompts or self.preferences
        if not sources:
            raise UsageError("domain 'rlhf' has only data to evaluate with: set 'data' or 'preferences' to train")
        return self._kept(questions(sources, self.fields), split)

    def _kept(self, stream: Iterable[Task], split: str) -> Iterator[Task]:
        """The tasks of one side of the split, and none of `train` that is measured with."""
        measured = self._measured() if split == "train" else frozenset()
        for task in stream:
            if not self.tests and not self.is_tiny and is_held_out(text_of(task.prompt)) != (split == "test"):
                continue
            if prompt_key(task.prompt) not in measured:
                yield task

    def _measured(self) -> frozenset[str]:
        """The keys of all prompts in files that something is measured with."""
        tests = [source for sources in self.tests.values() for source in sources]
        found = {prompt_key(task.prompt) for task in questions(tests, self.fields)}
        if self.arena:
            found |= {prompt_key(task.prompt) for task in self.tasks(ARENA, 0)}
        pairs = [*self.test_preferences, *([self.reward_bench] if self.reward_bench else [])]
        return frozenset(found | {prompt_key(one.prompt) for one in preferences(pairs, self.on_bad_row)})

    # --- preferences --------------------------------------------------------------------------------------------
    def pairs(self, split: str, seed: int) -> Iterator[Pair]:
        """Preferences of `train`, `test` or `reward_bench`; none where there are no files of them.

        Raises:
            UsageError: there is no such split, or a row that cannot be used.
        """
        if split == REWARD_BENCH and self.reward_bench:
            return (one.pair for one in preferences([self.reward_bench], self.on_bad_row))
        if split not in _OWN:
            raise UsageError(f"preferences are of the split 'train' or 'test', found {split!r}")
        if self.is_tiny:
            return _tiny_pairs(split, seed if split == "train" else 0)
        if not self.has_pairs(split):
            return iter(())
        return (one.pair for one in self._kept_pairs(split))

    def _kept_pairs(self, split: str) -> Iterator[Preference]:
        found = preferences(self._pair_sources(split), self.on_bad_row)
        if split == "test" and self.test_preferences:
            yield from found
            return
        measured = self._measured() if split == "train" else frozenset()
        by_text = not self.test_preferences and not self.tests
        for one in found:
            held_out = is_held_out(text_of(one.prompt))
            if (by_text or not self.test_preferences) and held_out != (split == "test"):
                continue
            if prompt_key(one.prompt) not in measured:
                yield one

    # --- demonstrations -----------------------------------------------------------------------------------------
    def demonstrations(self, split: str, seed: int) -> Iterator[Demonstration]:
        """The references as answers worth imitating; of the generator mediocre ones, on purpose."""
        rng = Random(f"demonstrations {split} {seed}")
        for task in self.tasks(split, seed):
            one = tiny.request(task.question) if self.is_tiny else None
            answer = one.draw(rng) if one else reference_of(task)
            if answer is not None:
                yield Demonstration(task, answer)


def reference_of(task: Task) -> str | None:
    """The answer that others are compared with, where this domain gave the task one; tasks of other domains have none."""
    answer = task.answer
    found = answer.get(REFERENCE) if isinstance(answer, Mapping) else None
    return found if isinstance(found, str) else None


def _are_pairs(sources: Sequence[str]) -> bool:
    first = next(iter(read(sources[0])), None) if sources else None
    columns = {name for name, value in (first or {}).items() if value is not None}
    return any(columns.issuperset(needed) for needed in FORMATS.values())


def _tiny_task(one: tiny.Request) -> Task:
    return Task(one.id, one.prompt, {REFERENCE: one.reference}, source="tiny")


def _tiny_pairs(split: str, seed: int) -> Iterator[Pair]:
    for one, better, worse in tiny.preferences(split, seed):
        yield Pair(Task(one.id, one.prompt, source="tiny"), better, worse)


__all__ = ["ARENA", "REWARD_BENCH", "Data", "reference_of"]
