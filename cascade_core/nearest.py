"""The nearest allowed word to one that was found, said the same way in every refusal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """`, did you mean 'x'` where a word of `allowed` is near, and `(allowed: …)` always.

    Words that differ in case, or in `-` for `_`, are near whatever their length.
    """
    words = list(allowed)
    return f"{hint(word, words)} (allowed: {', '.join(words) or 'none'})"


def hint(word: str, allowed: Iterable[str]) -> str:
    """`, did you mean 'x'`, or `""` where nothing is near."""
    found = near(word, allowed)
    return f", did you mean {found!r}" if found else ""


def near(word: str, allowed: Iterable[str]) -> str:
    """The nearest word itself, `""` where none is near."""
    folded = {_fold(known): known for known in allowed}
    found = difflib.get_close_matches(_fold(word)[:100], folded, n=1)
    return folded[found[0]] if found else ""


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_")
