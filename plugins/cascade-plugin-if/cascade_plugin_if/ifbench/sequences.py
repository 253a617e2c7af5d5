"""The groups `words` and `sentence`, what follows from one word or sentence to the next, and what stands in a place."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, lone_text, whole
from cascade_plugin_if.instructions.keywords import occurrences
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold, initial, words

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_NEXT = dict(zip(_ALPHABET, _ALPHABET[1:] + "a", strict=True))


@functools.lru_cache(maxsize=1024)
def as_words(text: str) -> tuple[str, ...]:
    """The folded words of a keyword; a keyword without any is itself one."""
    return tuple(fold(word) for word in words(text)) or (fold(text),)


def stands_at(folded: Sequence[str], place: int, keyword: str) -> bool:
    """Whether a keyword's words begin at a place, counted from 1, of these folded words."""
    wanted = as_words(keyword)
    return tuple(folded[place - 1 : place - 1 + len(wanted)]) == wanted


def stands_in_sentence(reading: Reading, args: Args) -> bool:
    """Whether `keyword` is word `m` of sentence `n`, both counted from 1."""
    sentences = reading.sentence_words
    if len(sentences) < args["n"]:
        return False
    return stands_at([fold(word) for word in sentences[args["n"] - 1]], args["m"], args["keyword"])


def _alphabet(reading: Reading, args: Args) -> bool:
    return _follow(map(initial, reading.opening)) and len(reading.words) > 1 and _follow(reading.initials)


def _follow(initials: Iterable[str]) -> bool:
    return all(_NEXT.get(one) == other for one, other in itertools.pairwise(initials))


def _no_consecutive(reading: Reading, args: Args) -> bool:
    """Of two words or more; digits have no first letter."""
    return _differ(map(initial, reading.opening)) and len(reading.words) > 1 and _differ(reading.initials)


def _differ(initials: Iterable[str]) -> bool:
    return not any(one == other and not one.isdigit() for one, other in itertools.pairwise(initials))


def _last_first(reading: Reading, args: Args) -> bool:
    sentences = reading.sentence_words
    return len(sentences) > 1 and all(fold(one[-1]) == fold(other[0]) for one, other in itertools.pairwise(sentences))


def _paragraphs(reading: Reading, args: Args) -> bool:
    """Every line with a word is a paragraph; it needs two words to begin and end."""
    is_any = False
    for line in filter(None, map(words, reading.prose_lines)):
        is_any = True
        if len(line) < 2 or fold(line[0]) != fold(line[-1]):
            return False
    return is_any


def _second(reading: Reading, args: Args) -> bool:
    found, wanted = reading.folded_words, as_words(args["keyword"])
    ends_so = tuple(found[-1 - len(wanted) : -1]) == wanted
    return len(found) > 2 and ends_so and stands_at(found, 2, args["keyword"])


def _alliteration(reading: Reading, args: Args) -> bool:
    """By the longest run of words with one first letter; a word alone is a run of one."""
    runs = [longest_run(sentence) for sentence in reading.sentence_words]
    return len(runs) > 1 and all(one < other for one, other in itertools.pairwise(runs))


def longest_run(sentence: Sequence[str]) -> int:
    """How many words in a row begin with the same letter."""
    return max((sum(1 for _ in run) for _, run in itertools.groupby(sentence, initial)), default=0)


def _increment(reading: Reading, args: Args) -> bool:
    lengths = [len(sentence) for sentence in reading.sentence_words]
    return len(lengths) > 1 and all(one + args["small_n"] == other for one, other in itertools.pairwise(lengths))


def _in_sentence(reading: Reading, args: Args) -> bool:
    sentences = reading.sentences
    return len(sentences) >= args["N"] and occurrences(Reading(sentences[args["N"] - 1]), args["word"]) > 0


ALPHABET = Instruction(
    "words:alphabet",
    (),
    _alphabet,
    lambda args: "Let each word begin with the letter after that of the word before; after Z comes A.",
)
NO_CONSECUTIVE = Instruction(
    "words:no_consecutive",
    (),
    _no_consecutive,
    lambda args: "Let no two words in a row begin with the same letter.",
)
LAST_FIRST = Instruction(
    "words:last_first",
    (),
    _last_first,
    lambda args: "Begin each sentence with the last word of the one before.",
)
PARAGRAPHS = Instruction(
    "words:paragraph_last_first",
    (),
    _paragraphs,
    lambda args: "Put each paragraph on a line of its own and end it with the word it begins with.",
)
SECOND = Instruction(
    "words:words_position",
    (Argument("keyword", lone_text),),
    _second,
    lambda args: f'Let the second word and the last but one be "{args["keyword"]}".',
)
PLACE = Instruction(
    "words:keywords_specific_position",
    (Argument("keyword", lone_text), Argument("n", whole(1)), Argument("m", whole(1))),
    stands_in_sentence,
    lambda args: f'Let word {args["m"]} of sentence {args["n"]} be "{args["keyword"]}".',
)
ALLITERATION = Instruction(
    "sentence:alliteration_increment",
    (),
    _alliteration,
    lambda args: "Let each sentence hold a longer row of words with the same first letter than the one before.",
)
INCREMENT = Instruction(
    "sentence:increment",
    (Argument("small_n", whole(1)),),
    _increment,
    lambda args: f"Let each sentence be {counted(args['small_n'], 'word')} longer than the one before.",
)
KEYWORD = Instruction(
    "sentence:keyword",
    (Argument("word", lone_text), Argument("N", whole(1))),
    _in_sentence,
    lambda args: f'Use the word "{args["word"]}" in sentence {args["N"]}.',
)
FAMILIES = (ALPHABET, NO_CONSECUTIVE, LAST_FIRST, PARAGRAPHS, SECOND, PLACE, ALLITERATION, INCREMENT, KEYWORD)
