"""The group `words`, what holds for each word alone: letters, length, syllables, repetition; and the verb at the start."""

from __future__ import annotations

import unicodedata
from collections import Counter

import regex

from cascade_plugin_if.ifbench.english import opens_with_verb
from cascade_plugin_if.ifbench.syllables import counts
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, whole
from cascade_plugin_if.reading import Reading

_VOWELS = frozenset("aeiou")
# `y` is a consonant before a vowel only.
_CLUSTER = regex.compile(r"[bcdfghjklmnpqrstvwxz](?:[bcdfghjklmnpqrstvwxz]|y(?=[aeiou]))")
_LETTERS = regex.compile(r"[\p{L}\p{N}]")
PALINDROMES, PALINDROME_LENGTH = 10, 5
_MOST_TYPES = 3


def plain(text: str) -> str:
    """Text in small letters without accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char))


def is_prime(number: int) -> bool:
    """Whether a number is prime."""
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))


def _vowels(reading: Reading, args: Args) -> bool:
    """One paragraph without a line break, in whose words at most three of a, e, i, o, u occur."""
    return (
        bool(reading.words)
        and "\n" not in reading.text
        and len(_VOWELS.intersection(plain(reading.text))) <= _MOST_TYPES
    )


def _clusters(reading: Reading, args: Args) -> bool:
    return _have_clusters(reading.opening) and _have_clusters(reading.words)


def _have_clusters(words: list[str]) -> bool:
    return bool(words) and all(_CLUSTER.search(plain(word)) for word in words)


def _palindromes(reading: Reading, args: Args) -> bool:
    long = [word for word in reading.folded_words if len(word) >= PALINDROME_LENGTH and word[0] == word[-1]]
    return sum(is_palindrome(word, PALINDROME_LENGTH) for word in long) >= PALINDROMES


def is_palindrome(word: str, least: int) -> bool:
    """Whether a folded word of at least so many letters reads the same backwards."""
    return len(word) >= least and word[0] == word[-1] and word == word[::-1] and word.isalnum()


def _primes(reading: Reading, args: Args) -> bool:
    """Apostrophes, hyphens and dots inside a word are no letters."""
    return _are_prime(reading.opening) and _are_prime(reading.words)


def _are_prime(words: list[str]) -> bool:
    return bool(words) and all(is_prime(len(_LETTERS.findall(word))) for word in words)


def _verb(reading: Reading, args: Args) -> bool:
    return opens_with_verb(reading.folded_words[:2])


def _repeats(reading: Reading, args: Args) -> bool:
    """A word may occur `small_n` times."""
    words = reading.folded_words
    return bool(words) and max(Counter(words).values()) <= int(args["small_n"])


def _syllables(reading: Reading, args: Args) -> bool:
    """Odd and even in turn; a word that is said in two ways may be either."""
    return _alternate(reading.opening) and len(reading.words) > 1 and _alternate(reading.words)


def _alternate(words: list[str]) -> bool:
    possible = {0, 1}
    for word in words:
        possible = {1 - parity for parity in possible} & {count % 2 for count in counts(word)}
        if not possible:
            return False
    return True


VOWEL = Instruction(
    "words:vowel",
    (),
    _vowels,
    lambda args: "Write one paragraph in whose words only three of the vowels a, e, i, o and u occur.",
)
CONSONANTS = Instruction(
    "words:consonants",
    (),
    _clusters,
    lambda args: "Let two consonants or more stand together in every word.",
)
PALINDROME = Instruction(
    "words:palindrome",
    (),
    _palindromes,
    lambda args: (
        f"Use at least {PALINDROMES} words of {PALINDROME_LENGTH} letters or more that read the same backwards."
    ),
)
PRIME = Instruction(
    "words:prime_lengths",
    (),
    _primes,
    lambda args: "Use only words whose number of letters is prime.",
)
VERB = Instruction(
    "words:start_verb",
    (),
    _verb,
    lambda args: "Begin with a verb.",
)
REPEATS = Instruction(
    "words:repeats",
    (Argument("small_n", whole(1)),),
    _repeats,
    lambda args: f"Use no word more than {counted(args['small_n'], 'time')}.",
)
SYLLABLES = Instruction(
    "words:odd_even_syllables",
    (),
    _syllables,
    lambda args: "Let words of an odd and of an even number of syllables take turns.",
)
FAMILIES = (VOWEL, CONSONANTS, PALINDROME, PRIME, VERB, REPEATS, SYLLABLES)
