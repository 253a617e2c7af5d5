"""The groups `keywords` and `count`, words that must occur just so often or in one place, and a palindrome."""

from __future__ import annotations

from random import Random

import regex

from cascade_plugin_if.drafts import sentences
from cascade_plugin_if.ifbench.sequences import as_words, stands_in_sentence
from cascade_plugin_if.ifbench.spellings import is_palindrome, plain
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, holds, lone_text, relation, whole
from cascade_plugin_if.instructions.keywords import FORBIDDEN, FREQUENCY, LETTERS, occurrences
from cascade_plugin_if.reading import Reading

SHORTEST, SHORTEST_SENTENCE = 3, 6  # letters of a palindrome
_PALINDROMES = ("level", "radar", "civic", "kayak", "rotor")
_LETTER = regex.compile(r"[\p{L}\p{N}]")


def _once(reading: Reading, args: Args) -> bool:
    return occurrences(reading, args["keyword"]) == 1


def _often(reading: Reading, args: Args) -> bool:
    return holds(occurrences(reading, args["keyword"]), args["relation"], args["frequency"])


def _excluded(reading: Reading, args: Args) -> bool:
    return occurrences(reading, args["keyword"]) == 0


def _increment(reading: Reading, args: Args) -> bool:
    return occurrences(reading, args["keyword1"]) == 1 and occurrences(reading, args["keyword2"]) == 2


def _same(args: Args) -> str:
    one, other = args["keyword1"], args["keyword2"]
    return f"its two keywords must differ, found {one!r} twice" if as_words(one) == as_words(other) else ""


def _palindrome(reading: Reading, args: Args) -> bool:
    """A word of three letters or more, or a sentence that reads the same backwards."""
    if any(is_palindrome(word, SHORTEST) for word in reading.folded_words):
        return True
    return any(_reads_backwards(sentence) for sentence in reading.sentences)


def _reads_backwards(sentence: str) -> bool:
    letters = _LETTER.findall(plain(sentence))
    return len(letters) >= SHORTEST_SENTENCE and letters == letters[::-1]


def _edit(family: Instruction, draft: str, args: Args, rng: Random) -> str:
    """The edit of an IFEval family whose arguments say the same."""
    return family.edit(draft, args, rng) if family.edit else draft


def _edit_times(draft: str, word: str, times: int, rng: Random) -> str:
    draft = _edit(FORBIDDEN, draft, {"forbidden_words": [word]}, rng)
    return _edit(FREQUENCY, draft, {"keyword": word, "relation": "at least", "frequency": times}, rng)


def _edit_increment(draft: str, args: Args, rng: Random) -> str:
    draft = _edit_times(draft, args["keyword1"], 1, rng)
    return _edit_times(draft, args["keyword2"], 2, rng)


def _edit_palindrome(draft: str, args: Args, rng: Random) -> str:
    return f"{draft} It was on the {rng.choice(_PALINDROMES)} that day."


def _edit_place(draft: str, args: Args, rng: Random) -> str:
    """Sentence `n` gets the keyword as its word `m`; there must be so many, of as many words."""
    parts = sentences(draft)
    while len(parts) < args["n"]:
        parts.append("There is always something new to notice about it.")
    found = parts[args["n"] - 1].split()
    while len(found) < args["m"]:
        found.insert(0, "so")
    parts[args["n"] - 1] = " ".join([*found[: args["m"] - 1], args["keyword"], *found[args["m"] - 1 :]])
    return " ".join(parts)


KEYWORD = Argument("keyword", lone_text)
ONCE = Instruction(
    "keywords:word_once",
    (KEYWORD,),
    _once,
    lambda args: f'Use the word "{args["keyword"]}" exactly once.',
    lambda draft, args, rng: _edit_times(draft, args["keyword"], 1, rng),
    21,
)
OFTEN = Instruction(
    "keywords:word_count_different_numbers",
    (KEYWORD, Argument("frequency", whole(0)), Argument("relation", relation)),
    _often,
    lambda args: f'Let the word "{args["keyword"]}" occur {args["relation"]} {counted(args["frequency"], "time")}.',
    lambda draft, args, rng: _edit(FREQUENCY, draft, args, rng),
    21,
)
EXCLUDED = Instruction(
    "keywords:exclude_word_harder",
    (KEYWORD,),
    _excluded,
    lambda args: f'Do without the word "{args["keyword"]}".',
    lambda draft, args, rng: _edit(FORBIDDEN, draft, {"forbidden_words": [args["keyword"]]}, rng),
    10,
)
INCREMENT = Instruction(
    "count:count_increment_word",
    (Argument("keyword1", lone_text), Argument("keyword2", lone_text)),
    _increment,
    lambda args: f'Use the word "{args["keyword1"]}" once and the word "{args["keyword2"]}" twice.',
    _edit_increment,
    21,
    _same,
)
PALINDROME = Instruction(
    "keywords:palindrome",
    (),
    _palindrome,
    lambda args: "Use a palindrome: a word or a sentence that reads the same backwards.",
    _edit_palindrome,
    23,
)
PLACE = Instruction(
    "keywords:keyword_specific_position",
    (KEYWORD, Argument("n", whole(1)), Argument("m", whole(1))),
    stands_in_sentence,
    lambda args: f'In sentence {args["n"]} let word {args["m"]} be "{args["keyword"]}".',
    _edit_place,
    29,
)
LETTERS_AGAIN = Instruction(
    "letters:letter_counting2",
    LETTERS.arguments,
    LETTERS.check,
    LETTERS.describe,
    LETTERS.edit,
    LETTERS.stage,
)
FAMILIES = (ONCE, OFTEN, EXCLUDED, INCREMENT, PALINDROME, PLACE, LETTERS_AGAIN)
