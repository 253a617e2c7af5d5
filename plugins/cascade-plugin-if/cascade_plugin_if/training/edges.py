"""The groups `first_word` and `last_word`, and `keywords:start_end`: words at the ends of the answer or of its sentences."""

from __future__ import annotations

from random import Random

from cascade_plugin_if.drafts import sentences
from cascade_plugin_if.ifbench.sequences import as_words, stands_at
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, lone_text
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import fold


def _ends_with(folded: list[str], word: str) -> bool:
    wanted = as_words(word)
    return tuple(folded[-len(wanted) :]) == wanted


def _folded_sentences(reading: Reading) -> list[list[str]]:
    return [[fold(word) for word in sentence] for sentence in reading.sentence_words]


def _first_of_sentences(reading: Reading, args: Args) -> bool:
    found = _folded_sentences(reading)
    return bool(found) and all(stands_at(sentence, 1, args["first_word"]) for sentence in found)


def _last_of_sentences(reading: Reading, args: Args) -> bool:
    found = _folded_sentences(reading)
    return bool(found) and all(_ends_with(sentence, args["last_word"]) for sentence in found)


def _first(reading: Reading, args: Args) -> bool:
    return stands_at(reading.folded_words, 1, args["first_word"])


def _last(reading: Reading, args: Args) -> bool:
    return _ends_with(reading.folded_words, args["last_word"])


def _both_ends(reading: Reading, args: Args) -> bool:
    """The same word first and last, and not even a mark behind it."""
    found = reading.folded_words
    return len(found) > 1 and found[0] == found[-1] and reading.text.endswith(reading.words[-1])


def _edit_first_of_sentences(draft: str, args: Args, rng: Random) -> str:
    return " ".join(f"{args['first_word'].capitalize()} {sentence}" for sentence in sentences(draft))


def _edit_last_of_sentences(draft: str, args: Args, rng: Random) -> str:
    return " ".join(f"{sentence.rstrip('.')} {args['last_word']}." for sentence in sentences(draft))


def _edit_both_ends(draft: str, args: Args, rng: Random) -> str:
    word = rng.choice(("Today", "Here", "Always", "Peace"))
    return f"{word} we say this. {draft} It ends {word.lower()}"


FIRST_WORD, LAST_WORD = Argument("first_word", lone_text), Argument("last_word", lone_text)
FAMILIES = (
    Instruction(
        "first_word:first_word_sent",
        (FIRST_WORD,),
        _first_of_sentences,
        lambda args: f'Begin every sentence with the word "{args["first_word"]}".',
        _edit_first_of_sentences,
        28,
    ),
    Instruction(
        "first_word:first_word_answer",
        (FIRST_WORD,),
        _first,
        lambda args: f'Let "{args["first_word"]}" be the first word of the answer.',
        lambda draft, args, rng: f"{args['first_word'].capitalize()} is the word. {draft}",
        68,
    ),
    Instruction(
        "last_word:last_word_sent",
        (LAST_WORD,),
        _last_of_sentences,
        lambda args: f'End every sentence with the word "{args["last_word"]}", before its stop.',
        _edit_last_of_sentences,
        28,
    ),
    Instruction(
        "last_word:last_word_answer",
        (LAST_WORD,),
        _last,
        lambda args: f'Let "{args["last_word"]}" be the last word of the answer.',
        lambda draft, args, rng: f"{draft.rstrip()} It ends with {args['last_word']}.",
        70,
    ),
    Instruction(
        "keywords:start_end",
        (),
        _both_ends,
        lambda args: "Begin and end the answer with the same word, and write nothing behind it, not even a stop.",
        _edit_both_ends,
        75,
    ),
)
