"""Level `tiny`: tasks that a model of half a million parameters learns in seconds, judged by the real verifier.

A task asks for a made-up word, one to three times, in capitals or small letters, and at times in quotation marks or
with a last word: `write bok 2 times in capitals and end with done: `, answered by `BOK BOK DONE`. Each part of the
sentence is one IFEval instruction; the number of words is bounded too, so that neither the word without end, nor the
bare word, nor an echo of the prompt is right for more than a few tasks. About 34,000 prompts, references of at most
18 characters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cascade_core.sources import is_held_out

CONSONANTS, VOWELS = "bcdfghklmnprstz", "aeiou"
ENDS = ("ok", "bye", "done")
EXTRAS = ("", "quotes", *ENDS)
_UNFIT = frozenset(("cok", "cum", "dic", "dik", "fag", "hag", "nig", "pis", "sac", "suc", "tit", "tur"))
_CASES = {"capitals": "change_case:english_capital", "small letters": "change_case:english_lowercase"}
_FAMILY = {"": "", "quotes": "startend:quotation", **dict.fromkeys(ENDS, "startend:end_checker")}


@dataclass(frozen=True)
class Recipe:
    """What one task asks for; `extra` is `""`, `"quotes"` or the last word."""

    word: str
    times: int
    case: str
    extra: str

    @property
    def id(self) -> str:
        """Readable and the same in every run."""
        return "-".join(part for part in ("tiny", self.word, str(self.times), self.case.split()[0], self.extra) if part)

    @classmethod
    def parse(cls, name: str) -> Recipe:
        """The recipe of an `id`."""
        _, word, times, case, *extra = name.split("-")
        return cls(word, int(times), next(full for full in _CASES if full.startswith(case)), "".join(extra))

    @property
    def prompt(self) -> str:
        """The request."""
        times = f" {self.times} times" if self.times > 1 else ""
        extra = {"": "", "quotes": " in quotes"}.get(self.extra, f" and end with {self.extra}")
        return f"write {self.word}{times} in {self.case}{extra}: "

    @property
    def instructions(self) -> list[tuple[str, dict[str, Any]]]:
        """The public ids and their arguments."""
        ends = self.extra in ENDS
        found: list[tuple[str, dict[str, Any]]] = [
            ("keywords:frequency", {"keyword": self.word, "relation": "at least", "frequency": self.times})
            if self.times > 1
            else ("keywords:existence", {"keywords": [self.word]}),
            ("length_constraints:number_words", {"relation": "less than", "num_words": self.times + ends + 1}),
            (_CASES[self.case], {}),
        ]
        if ends:
            found.append(("startend:end_checker", {"end_phrase": self.extra}))
        elif self.extra:
            found.append(("startend:quotation", {}))
        return found

    def write(self, times: int | None = None, case: str | None = None, extra: str | None = None) -> str:
        """The right answer, or with an argument one that differs in that alone."""
        extra = self.extra if extra is None else extra
        words = [self.word] * (self.times if times is None else times)
        if extra in ENDS:
            words.append(extra)
        text = " ".join(words)
        text = text.upper() if (case or self.case) == "capitals" else text
        return f'"{text}"' if extra == "quotes" else text

    def spoil(self, rng: Random) -> str:
        """An answer that breaks one of the instructions, chosen evenly: the case, the count, or the extra part."""
        other = next(case for case in _CASES if case != self.case)
        ways: list[Callable[[], str]] = [
            lambda: self.write(case=other),
            lambda: self.write(times=self.times + 1),
            lambda: self.write(times=self.times - 1) if self.times > 1 else self._misspelt(rng),
        ]
        if self.extra:
            ways.append(lambda: self.write(extra=""))
        return rng.choice(ways)()

    def _misspelt(self, rng: Random) -> str:
        vowel = rng.choice([vowel for vowel in VOWELS if vowel != self.word[1]])
        return Recipe(self.word[0] + vowel + self.word[2], self.times, self.case, self.extra).write()


def words() -> Iterator[str]:
    """The made-up words: consonant, vowel, consonant."""
    for letters in itertools.product(CONSONANTS, VOWELS, CONSONANTS):
        if (word := "".join(letters)) not in _UNFIT:
            yield word


def recipes(split: str, seed: int, families: Sequence[str] = ()) -> Iterator[Recipe]:
    """Every task of the split once, in an order drawn from the seed; `families` keeps only these ids as extras."""
    extras = [extra for extra in EXTRAS if not families or not extra or _FAMILY[extra] in families]
    rng = Random(seed)
    places = list(itertools.product(words(), (1, 2, 3), _CASES, extras))
    rng.shuffle(places)
    for place in places:
        recipe = Recipe(*place)
        if is_held_out(recipe.prompt) == (split == "test"):
            yield recipe


def task_fields(recipe: Recipe) -> Mapping[str, Any]:
    """The public form: prompt, ids and arguments, and a reference."""
    ids, kwargs = zip(*recipe.instructions, strict=True)
    return {
        "key": recipe.id,
        "prompt": recipe.prompt,
        "instruction_id_list": list(ids),
        "kwargs": list(kwargs),
        "reference": recipe.write(),
    }
