"""How common a word is in English and in 26 other languages of Latin script: the word lists inside the package wordfreq.

Frequencies are Zipf values: log10 of the occurrences in a billion words, so 6 is one word in a thousand. English comes from the
large list (down to 1), the others from the small ones (down to 3). `CUES` are common words of a language that are ten times
rarer in English; only where one stands is a language's list loaded at all. Nothing is downloaded.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

_LANGUAGES = "ca cs da de es fi fil fr hu id is it lt lv ms nb nl pl pt ro sh sk sl sv tr vi"
LANGUAGES = tuple(_LANGUAGES.split())
"""The languages of Latin script that are told from English; `sh` stands for Bosnian, Croatian and Serbian."""

ENGLISH_FLOOR = 1.0
"""The Zipf value of a word that is not in the English list."""
OTHER_FLOOR = 2.5
"""The Zipf value of a word that is not in another language's list."""

_CUES = 6_000  # words of a language that point to it
_MARGIN = 1.0


@functools.cache
def english() -> Mapping[str, float]:
    """Zipf values of the English words that occur at least once in a hundred million."""
    return _listed("en", "large", 10**9)


@functools.cache
def words_of(language: str) -> Mapping[str, float]:
    """Zipf values of the words of one of `LANGUAGES` that occur at least once in a million."""
    return _listed(language, "small", 10**9)


@functools.cache
def cues() -> Mapping[str, int]:
    """Words that are at least ten times as common in another language: the bits of the languages, in the order of `LANGUAGES`."""
    known = english()
    found: dict[str, int] = {}
    for place, language in enumerate(LANGUAGES):
        for word, zipf in _listed(language, "small", _CUES).items():
            if zipf - known.get(word, ENGLISH_FLOOR) >= _MARGIN:
                found[word] = found.get(word, 0) | 1 << place
    return found


def _listed(language: str, size: str, most: int) -> dict[str, float]:
    """The most frequent words; wordfreq keeps them in bins of a hundredth of a power of ten."""
    from wordfreq import get_frequency_list

    found: dict[str, float] = {}
    for centibels, words in enumerate(get_frequency_list(language, size)):
        if len(found) >= most:
            break
        zipf = 9.0 - centibels / 100
        found.update(dict.fromkeys(words, zipf))
    return found
