"""Level `tiny`: requests, answers and preferences that a model of half a million parameters learns in seconds.

A request names one of three errands and a made-up name, `thank bok: `. What is liked is hidden from the policy and
learnable from pairs: the right word for the errand, the right name, a full stop, nothing said twice. `thanks bok.` has it
all. Demonstrations are mediocre on purpose, so that a reward model has something to say and a policy room to climb.
`quality` is that hidden measure itself: no model sees it, and it tells whether a policy that scores well is well liked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from cascade_core.sources import is_held_out

OPENERS = {"greet": "hello", "thank": "thanks", "leave": "goodbye"}
RUDE = "hey"
MOST = 5.0
"""The quality of the best answer; the worst that is generated has -4."""

_CONSONANTS, _VOWELS = "bcdfghklmnprstz", "aeiou"
_UNFIT = frozenset(("cok", "cum", "dic", "dik", "fag", "hag", "nig", "pis", "sac", "suc", "tit", "tur"))


@dataclass(frozen=True)
class Request:
    """One request: an errand and a name."""

    errand: str
    name: str

    @property
    def id(self) -> str:
        """Readable, and the same in every run."""
        return f"tiny-{self.errand}-{self.name}"

    @property
    def prompt(self) -> str:
        """What the model reads."""
        return f"{self.errand} {self.name}: "

    @property
    def reference(self) -> str:
        """A fair answer, quality 3: better than most demonstrations, worse than the best."""
        return f"{self.name}."

    def quality(self, answer: str) -> float:
        """How well liked an answer is: right word +2, rude word -1, right name +2, full stop +1, `!` -1, each further word -1."""
        words = [word.strip(".!") for word in answer.split()]
        first = words[0] if words else ""
        liked = 2.0 * (first == OPENERS[self.errand]) - (first == RUDE) + 2.0 * (self.name in words)
        liked += answer.endswith(".") - answer.endswith("!")
        return liked - max(0, len(words) - 2)

    def draw(self, rng: Random) -> str:
        """An answer of mixed quality; one in twenty is as good as can be."""
        opener = rng.choices((OPENERS[self.errand], rng.choice(list(OPENERS.values())), RUDE, ""), (3, 1, 3, 3))[0]
        name = self.name if rng.random() < 0.7 else self._misheard(rng)
        end = rng.choices((".", "", "!"), (3, 4, 3))[0]
        said = " ".join(part for part in (opener, name) if part)
        return (f"{said} {said}" if rng.random() < 0.25 else said) + end

    def _misheard(self, rng: Random) -> str:
        return self.name[0] + rng.choice([vowel for vowel in _VOWELS if vowel != self.name[1]]) + self.name[2]


def request(prompt: str) -> Request | None:
    """The request that a prompt is, if it is one."""
    errand, _, rest = prompt.partition(" ")
    name = rest.removesuffix(": ")
    return Request(errand, name) if errand in OPENERS and Request(errand, name).prompt == prompt else None


def requests(split: str, seed: int) -> Iterator[Request]:
    """Every request of the split once, in an order drawn from the seed: about 2,600 of `train` and 700 of `test`."""
    names = ["".join(letters) for letters in itertools.product(_CONSONANTS, _VOWELS, _CONSONANTS)]
    every = [Request(errand, name) for errand in OPENERS for name in names if name not in _UNFIT]
    Random(f"requests {seed}").shuffle(every)
    return (one for one in every if is_held_out(one.prompt) == (split == "test"))


def preferences(split: str, seed: int) -> Iterator[tuple[Request, str, str]]:
    """A request, the better answer and the worse; answers of one quality are no preference, and not drawn."""
    rng = Random(f"preferences {split} {seed}")
    for one in requests(split, seed):
        first, second = one.draw(rng), one.draw(rng)
        while one.quality(first) == one.quality(second):
            second = one.draw(rng)
        better, worse = sorted((first, second), key=one.quality, reverse=True)
        yield one, better, worse
