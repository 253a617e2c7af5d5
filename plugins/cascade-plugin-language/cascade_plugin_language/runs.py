"""Runs of words of another language in Latin script.

Every word has evidence: how much more common it is in the other language than in English (Zipf values, `vocabulary.py`). The most
likely split of a line into English and the other language is found with two states and a price for each change (Viterbi's
algorithm); only languages of which a cue word stands in the line are tried. A run counts where it has three words or more, enough
evidence, two strong words, and one of them is written small and is no particle: `Ludwig van Beethoven` and
`Universidade de São Paulo` are names. Fewer than three words are a borrowing, whatever they are, and so are words that commas keep
apart, two words with a small one between them, and up to eight words with a genitive that begin with a capital amid an English sentence.

It does not know languages without a list in wordfreq, nor a foreign language in an alphabet that is not its own.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import regex

from cascade_plugin_language.phrases import BORROWED, GENITIVES, JOINTS, PARTICLES
from cascade_plugin_language.scripts import Word
from cascade_plugin_language.vocabulary import (
    ENGLISH_FLOOR,
    LANGUAGES,
    OTHER_FLOOR,
    cues,
    english,
    words_of,
)

LEAST_WORDS = 3
"""The number of words from which a run is a switch and no borrowing."""

_LEAST_EVIDENCE = 4.0  # powers of ten, of a whole run
_STRONG = 1.2
_IN, _OUT = (2.5, 1.5), (1.5, 0.5)  # the price of a change into and out of the other language: amid words, after a sign
_MOST = 3.0  # the evidence of one word
_NAME = 0.8  # at most, of a capitalised word
_UNKNOWN, _UNKNOWN_ACCENTED = 0.2, 1.0
_TRIED = 3  # languages a line
_GAP = 4  # characters that are looked at before a word
_COMMON, _FAINT = 3.5, 0.7  # a common English word with faint evidence does not begin or end a run
_POSSIBLE = -1.0  # the evidence of a word that both languages have
_ENGLISH = 4.7  # a word so common in English is no proof of another language
_USUAL = 4.5  # a word that English has, whoever else has it
_CHUNK = 200  # words that are split together
_KNOWN = 2.5  # a word below this Zipf value may be foreign
_EVERYDAY, _ALIEN, _WALL = 5.5, -1.5, -9.0  # a word so common in English and so rare there ends any run
_ROMANCE = frozenset(("ca", "es", "fr", "it", "pt"))
_TITLE = 8  # words of a title or a name, at most

_ASCII_WORD = re.compile("[a-z]+")
_LATIN_WORD = re.compile(r"[^\W\d_]+")
_WORD = regex.compile(r"[\p{Latin}\p{Mn}]++(?:['’][\p{Latin}\p{Mn}]++)*+")
_STOP = regex.compile(r"[.!?…:;\"“”„«»()\[\]¿¡•*-]\s*+$")
_PHRASES = regex.compile(
    r"(?i)(?<!\p{L})(?:"
    + "|".join(re.escape(p).replace(r"\ ", "[ -]").replace("'", "['’]") for p in BORROWED)
    + r")(?!\p{L})"
)


def may_have(text: str) -> bool:
    """Whether a text may hold a run: two cue words in a line; fast, and right when it says no."""
    low = text.lower()
    seen = set(_words(low))
    known = cues()
    return sum(word in known for word in seen) >= 2 and any(map(_has_cues, low.split("\n")))


def words(text: str) -> list[Word]:
    """The words of all runs, in their order; time grows with the length of the text."""
    return [word for line in _lines(text) for word in _runs(line)]


def lean(text: str) -> float:
    """How much more likely a few words are in the likeliest other language than in English, in powers of ten; 0 where one is plainly English, or each is usual in it.

    Languages are those that a word points to; all of them where none does and most words are rare in English.
    """
    tokens = [token for token in itertools.islice(_tokens(text.replace("\n", " "), 0), _CHUNK) if len(token.low) > 1]
    if all(english().get(token.low, 0.0) >= _USUAL for token in tokens):
        return 0.0
    languages = [LANGUAGES[place] for place, _ in _votes(tokens).most_common(_TRIED)]
    if not languages and 2 * sum(english().get(token.low, 0.0) < _KNOWN for token in tokens) > len(tokens):
        languages = list(LANGUAGES)
    found = 0.0
    for language in languages:
        evidence = [_evidence(token, language) for token in tokens]
        if min(evidence) > _POSSIBLE:
            found = max(found, sum(evidence))
    return found


class _Token(NamedTuple):
    """A word of a line, where it stands in the text, in lower case; `is_name`: written as one.

    `is_small`: begins with a small letter, or is in capitals among such; `opens`: after more than a blank.
    """

    text: str
    low: str
    start: int
    end: int
    is_name: bool
    is_small: bool
    opens: bool


def _lines(text: str) -> Iterator[list[_Token]]:
    """The words of each line that has two cue words, borrowed phrases left out, at most `_CHUNK` at a time."""
    start = 0
    for line in text.split("\n"):
        if _has_cues(line.lower()):
            tokens = _tokens(_PHRASES.sub(lambda match: "0" * len(match.group()), line), start)
            while chunk := list(itertools.islice(tokens, _CHUNK)):
                yield chunk
        start += len(line) + 1


def _has_cues(line: str) -> bool:
    known = cues()
    return sum(word in known for word in _words(line)) >= 2


def _words(low: str) -> list[str]:
    return (_ASCII_WORD if low.isascii() else _LATIN_WORD).findall(low)


def _tokens(line: str, offset: int) -> Iterator[_Token]:
    before, shouted = 0, False
    for match in _WORD.finditer(line):
        said, start = match.group(), match.start()
        gap = line[max(before, start - _GAP) : start]
        shouts = len(said) > 1 and said.isupper()
        is_small = not said[0].isupper() or (shouts and shouted)
        is_name = not is_small and _STOP.search(gap) is None and before > 0
        opens = before == 0 or gap.strip(" -'’") != ""
        yield _Token(
            said, _core(said.lower().replace("’", "'")), offset + start, offset + match.end(), is_name, is_small, opens
        )
        before, shouted = match.end(), shouts


def _core(word: str) -> str:
    """The word as the lists have it: `l'homme` without its article, English contractions whole."""
    if "'" not in word or word in english():
        return word
    parts = word.split("'")
    return max(parts, key=len)


def _runs(tokens: Sequence[_Token]) -> list[Word]:
    """The words of the runs of one piece of a line; where languages compete for words, the one with most evidence has them.

    Lists and titles compete too, and what they win is nobody's: a French title is no Danish sentence.
    """
    stretches = []
    for language in _candidates(tokens):
        evidence = [_evidence(token, language) for token in tokens]
        for first, last in (_trimmed(tokens, evidence, *stretch) for stretch in _split(tokens, evidence)):
            if _counts(tokens[first:last], evidence[first:last]):
                is_spared = _is_list(tokens[first:last]) or _is_title(tokens, first, last, language)
                stretches.append((-sum(evidence[first:last]), first, last, language, is_spared))
    found: dict[int, Word | None] = {}
    for _, first, last, language, is_spared in sorted(stretches):
        if found.keys().isdisjoint(range(first, last)):
            for place, token in enumerate(tokens[first:last], first):
                found[place] = None if is_spared else Word(token.text, token.start, token.end, language)
    return [word for place in sorted(found) if (word := found[place]) is not None]


def _candidates(tokens: Sequence[_Token]) -> list[str]:
    """The languages with the most cue words here; none where fewer than two words are foreign to English."""
    foreign = sum(token.low in cues() or english().get(token.low, 0.0) < _KNOWN for token in tokens)
    return [LANGUAGES[place] for place, _ in _votes(tokens).most_common(_TRIED)] if foreign >= 2 else []


def _votes(tokens: Sequence[_Token]) -> Counter[int]:
    """How many cue words of each language there are, by its place in `LANGUAGES`."""
    known, votes = cues(), Counter[int]()
    for token in tokens:
        bits = known.get(token.low, 0)
        while bits:
            votes[(bits & -bits).bit_length() - 1] += 1
            bits &= bits - 1
    return votes


def _evidence(token: _Token, language: str) -> float:
    """How much more likely the word is in the language than in English, in powers of ten."""
    ours, theirs = english().get(token.low), words_of(language).get(token.low)
    if theirs is None:
        unknown = _UNKNOWN if token.low.isascii() else _UNKNOWN_ACCENTED
        said = unknown if ours is None else min(unknown, OTHER_FLOOR - ours)
    else:
        said = theirs - (ENGLISH_FLOOR if ours is None else ours)
    if said <= _ALIEN and (ours or 0.0) >= _EVERYDAY:
        return _WALL
    if len(token.low) == 1:
        return max(-1.0, min(0.5, said))
    return max(-_MOST, min(_NAME if token.is_name else _MOST, said))


def _split(tokens: Sequence[_Token], evidence: Sequence[float]) -> list[tuple[int, int]]:
    """The stretches in the other language, by the most likely path through two states."""
    ours, theirs = 0.0, -math.inf
    came: list[tuple[bool, bool]] = []  # whether each state was entered from the other one
    for token, said in zip(tokens, evidence, strict=True):
        back, forth = theirs - _OUT[token.opens], ours - _IN[token.opens]
        came.append((back > ours, forth > theirs))
        ours, theirs = max(ours, back), max(theirs, forth) + said
    found, last, inside = [], len(came), theirs - _OUT[True] > ours
    for place in range(len(came) - 1, -1, -1):
        left, entered = came[place]
        if inside and entered:
            found.append((place, last))
            inside = False
        elif not inside and left:
            inside, last = True, place
    return found[::-1]


def _trimmed(tokens: Sequence[_Token], evidence: Sequence[float], first: int, last: int) -> tuple[int, int]:
    """The stretch without common English words at its ends, unless it ends there at a sign."""

    def is_faint(place: int) -> bool:
        low = tokens[place].low
        return evidence[place] < _FAINT and (len(low) == 1 or english().get(low, 0.0) >= _COMMON)

    while first < last and not tokens[first].opens and is_faint(first):
        first += 1
    while first < last and not (last == len(tokens) or tokens[last].opens) and is_faint(last - 1):
        last -= 1
    return _grown(tokens, evidence, first, last)


def _grown(tokens: Sequence[_Token], evidence: Sequence[float], first: int, last: int) -> tuple[int, int]:
    """Two certain words with the words beside them that could be of their sentence, up to what counts as a run."""
    if sum(evidence[first:last]) < _LEAST_EVIDENCE:
        return first, last

    def could_be(place: int) -> bool:
        return evidence[place] > _POSSIBLE and len(tokens[place].low) > 1

    while last - first < LEAST_WORDS and first and not tokens[first].opens and could_be(first - 1):
        first -= 1
    while last - first < LEAST_WORDS and last < len(tokens) and not tokens[last].opens and could_be(last):
        last += 1
    return first, last


def _counts(tokens: Sequence[_Token], evidence: Sequence[float]) -> bool:
    """Whether a stretch is a switch: long, certain, and no name."""
    if len(tokens) < LEAST_WORDS or sum(evidence) < _LEAST_EVIDENCE:
        return False
    strong = [
        token
        for token, said in zip(tokens, evidence, strict=True)
        if said >= _STRONG or (token.is_name and said >= _NAME)
    ]
    if len({token.low for token in strong}) < 2:
        return False
    known = english()
    return any(
        token.is_small and token.low not in PARTICLES and known.get(token.low, 0.0) < _ENGLISH for token in strong
    )


def _is_list(tokens: Sequence[_Token]) -> bool:
    """Whether signs leave no sentence together: `masa harina, queso fresco, tamales de elote`."""
    signs = [place for place, token in enumerate(tokens) if place == 0 or token.opens]
    pieces = (tokens[start:end] for start, end in itertools.pairwise([*signs, len(tokens)]))
    return all(len(piece) < LEAST_WORDS or _is_expression([token.low for token in piece]) for piece in pieces)


def _is_expression(words: Sequence[str]) -> bool:
    """Whether two words are joined by small ones: `bacalhau à brás`, a dish or a term, and no sentence."""
    return PARTICLES.isdisjoint((words[0], words[-1])) and " ".join(words[1:-1]) in JOINTS


def _is_title(tokens: Sequence[_Token], first: int, last: int, language: str) -> bool:
    """Whether a Romance stretch begins with a capital amid an English sentence and has a genitive: `we read Cien años de soledad`."""
    return (
        language in _ROMANCE
        and 0 < first < last <= first + _TITLE
        and tokens[first].is_name
        and tokens[first - 1].is_small
        and tokens[first].start - tokens[first - 1].end == 1
        and any(token.low in GENITIVES for token in tokens[first + 1 : last])
    )
