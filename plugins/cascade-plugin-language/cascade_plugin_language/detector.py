"""Words of another script or language in a text that should be English: the parts put together.

Two fast looks come first, one for letters of another script and one for common words of another language; only where one of them
sees something is the text taken apart. The same text gives the same words in any process; nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from cascade_plugin_language import runs, scripts
from cascade_plugin_language.prompt import NOTHING, Leave
from cascade_plugin_language.prose import clean, prose
from cascade_plugin_language.scripts import Word


@dataclass(frozen=True)
class Found:
    """The foreign words of a text in their order, and the share of its letters that they take (0 to 1)."""

    words: tuple[Word, ...]
    share: float


def find(text: str, allowed: Leave = NOTHING) -> Found:
    """The words of another script or language that the prompt does not allow; places refer to `prose.clean(text)`."""
    if allowed.everything or not allowed.judged:
        return Found((), 0.0)
    text = clean(text)
    other, run = scripts.may_have(text), runs.may_have(text)
    if not other and not run:
        return Found((), 0.0)
    read = prose(text)
    found = scripts.words(read) if other else []
    found = sorted(found + runs.words(read), key=lambda word: word.start) if run else found
    kept = tuple(word for word in found if not allowed.allows(word))
    if not kept:
        return Found((), 0.0)
    letters = sum(map(str.isalpha, text))
    return Found(kept, min(1.0, sum(len(word.text) for word in kept) / max(1, letters)))
