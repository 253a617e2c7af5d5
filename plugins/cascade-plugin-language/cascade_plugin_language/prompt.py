"""What a prompt allows: whether it is English at all, and the languages, scripts and words that it asks for or holds.

A prompt that names a language ("in Spanish", "the German economy") allows that language and its script, one that holds text in
another language or script, quoted or not, allows that. "Translate the sentence" without a language, and prompts about languages
as such, allow everything. The Chinese remainder theorem and its like name no language. A prompt that is for the greater part not
English is not judged: the answer may be in any language; `Was ist Photosynthese?` is one by how common its words are in German and English.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from cascade_core import Message
from cascade_plugin_language import runs, scripts
from cascade_plugin_language.phrases import KIN, TONGUES
from cascade_plugin_language.prose import clean, prose
from cascade_plugin_language.vocabulary import english

_WORD = re.compile(r"[^\W\d_]+")
_TONGUE = regex.compile(
    r"(?i)\b("
    + "|".join(TONGUES)
    + r")\b(?![- ](?:remainder|restaurant|whispers|roulette|delight|pastr(?:y|ies)|fries|toast"
    r"|open|letters?|alphabet|algorithm|method|notation|space|spaces|tank|shepherd|numerals?|mythology|gods?|salad|dressing|cabbage))"
)
_POLISH_VERB = re.compile(r"\bpolish\b|\bPolish (?=this|the|my|it|up|your|our|these)")
_ANY = regex.compile(
    r"(?i)(?<!\b(?:programming|formal|regular|body|sign|query|machine|assembly|plain|context-free|scripting|markup) )\blanguages\b"
    r"|\b(?:foreign|another|other|any|native|mother|second|target|romance|slavic|germanic) (?:language|tongue)\b"
    r"|\b(?:multi|bi|tri)lingual\b|\betymolog|\btransliterat"
)
_TRANSLATE = regex.compile(
    r"(?i)\btranslat\w*\W+(?:\w+\W+){0,3}(?:sentence|text|phrase|paragraph|passage|poem|dialogue|title|word(?! problem))s?\b"
)
_FOREIGN_PROMPT = 0.5
_LEAST_WORDS = 6
_LEAN = 1.0  # powers of ten: a few words that are so much likelier in another language are in it
_LEAST_ENGLISH = 0.4
_KNOWN = 3.5
_LONGEST = 50_000  # characters of a prompt that are looked at


@dataclass(frozen=True)
class Leave:
    """What a prompt allows: `judged` is false where it is not English; `everything`, or these kinds and words."""

    judged: bool = True
    everything: bool = False
    kinds: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()

    def allows(self, word: scripts.Word) -> bool:
        """Whether the word is no fault."""
        return self.everything or word.kind in self.kinds or word.text.lower() in self.words


NOTHING = Leave()
"""An English prompt that asks for no other language."""


def leave(prompt: str | Sequence[Message], question: str) -> Leave:
    """What the prompt allows.

    Args:
        prompt: all of it; every turn's foreign text is allowed.
        question: the last user turn, which decides whether the prompt is English.
    """
    whole = prompt if isinstance(prompt, str) else "\n".join(turn["content"] for turn in prompt)
    return _leave(whole[:_LONGEST], question[:_LONGEST])


@functools.lru_cache(256)
def _leave(whole: str, question: str) -> Leave:
    whole = clean(whole)
    if not is_english(question):
        return Leave(judged=False)
    tongues = _TONGUE.findall(_POLISH_VERB.sub("", whole))
    if _ANY.search(whole) or (_TRANSLATE.search(whole) and not tongues):
        return Leave(everything=True)
    found = [*scripts.words(whole), *(runs.words(whole) if runs.may_have(whole) else ())]
    kinds = {word.kind for word in found}
    for named in tongues:
        kinds.update(TONGUES[named.lower()])
    return Leave(kinds=_with_kin(kinds), words=frozenset(_WORD.findall(whole.lower())))


def is_english(question: str) -> bool:
    """Whether a prompt is English; formulas, code and a handful of words that no other language claims count as English."""
    text = prose(clean(question))
    letters = sum(map(len, _WORD.findall(text)))
    found = [*scripts.words(text), *runs.words(text)]
    if letters and sum(len(word.text) for word in found) > _FOREIGN_PROMPT * letters:
        return False
    if len(_WORD.findall(text)) < _LEAST_WORDS and runs.lean(text) >= _LEAN:
        return False
    said = [word for word in _WORD.findall(text.lower()) if len(word) > 1]
    known = sum(english().get(word, 0.0) >= _KNOWN for word in said)
    return len(said) < _LEAST_WORDS or known >= _LEAST_ENGLISH * len(said)


def _with_kin(kinds: set[str]) -> frozenset[str]:
    return frozenset(kinds).union(*(group for group in KIN if group & kinds))
