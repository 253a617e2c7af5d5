"""The group `length_constraints`: sentences, paragraphs, words, and the first word of a paragraph."""

from __future__ import annotations

from random import Random

from cascade_plugin_if import drafts, markdown
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, holds, relation, text, whole
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import first_words, fold, has_word, words

DIVIDER = "***"


def _sentences(reading: Reading, args: Args) -> bool:
    return holds(reading.sentence_count, args["relation"], args["num_sentences"])


def _words(reading: Reading, args: Args) -> bool:
    return holds(len(reading.words), args["relation"], args["num_words"])


def divided(reading: Reading) -> list[str]:
    """The texts between lines that hold `***` and nothing else; blank ones at either end are dropped."""
    parts: list[list[str]] = [[]]
    for line in reading.lines:
        if line.strip() == DIVIDER:
            parts.append([])
        else:
            parts[-1].append(line)
    texts = ["\n".join(part) for part in parts]
    if not texts[0].strip():
        texts = texts[1:]
    return texts[:-1] if texts and not texts[-1].strip() else texts


def _paragraphs(reading: Reading, args: Args) -> bool:
    parts = divided(reading)
    return len(parts) == args["num_paragraphs"] and all(has_word(part) for part in parts)


def _first_word(reading: Reading, args: Args) -> bool:
    parts = markdown.paragraphs(reading.lines)
    if len(parts) != args["num_paragraphs"]:
        return False
    wanted = [fold(word) for word in words(args["first_word"])] or [args["first_word"]]
    found = first_words(parts[args["nth_paragraph"] - 1], len(wanted))
    return [fold(word) for word in found] == wanted


def _beyond(args: Args) -> str:
    if args["nth_paragraph"] <= args["num_paragraphs"]:
        return ""
    return (
        f"'nth_paragraph' must be at most 'num_paragraphs', found {args['nth_paragraph']} of {args['num_paragraphs']}"
    )


def _least(args: Args, name: str) -> int:
    """A count that satisfies the relation and is natural to write."""
    shift = {"less than": -1, "more than": 1}.get(args["relation"], 0)
    return max(1, int(args[name]) + shift)


def _edit_sentences(draft: str, args: Args, rng: Random) -> str:
    return drafts.with_sentences(draft, args["relation"], _least(args, "num_sentences"), rng)


def _edit_words(draft: str, args: Args, rng: Random) -> str:
    return drafts.with_words(draft, args["relation"], _least(args, "num_words"), rng)


def _edit_paragraphs(draft: str, args: Args, rng: Random) -> str:
    return f"\n\n{DIVIDER}\n\n".join(drafts.split(draft, args["num_paragraphs"], rng))


def _edit_first_word(draft: str, args: Args, rng: Random) -> str:
    parts = drafts.split(draft, args["num_paragraphs"], rng)
    nth = args["nth_paragraph"] - 1
    parts[nth] = f"{args['first_word']} {parts[nth]}"
    return "\n\n".join(parts)


SENTENCES = Instruction(
    "length_constraints:number_sentences",
    (Argument("relation", relation), Argument("num_sentences", whole(0))),
    _sentences,
    lambda args: f"Write {args['relation']} {counted(args['num_sentences'], 'sentence')}.",
    _edit_sentences,
    0,
)
PARAGRAPHS = Instruction(
    "length_constraints:number_paragraphs",
    (Argument("num_paragraphs", whole(1)),),
    _paragraphs,
    lambda args: (
        f"Write exactly {counted(args['num_paragraphs'], 'paragraph')}; between two of them stands a line with {DIVIDER}."
    ),
    _edit_paragraphs,
    30,
)
WORDS = Instruction(
    "length_constraints:number_words",
    (Argument("relation", relation), Argument("num_words", whole(0))),
    _words,
    lambda args: f"Write {args['relation']} {counted(args['num_words'], 'word')}.",
    _edit_words,
    1,
)
FIRST_WORD = Instruction(
    "length_constraints:nth_paragraph_first_word",
    (
        Argument("num_paragraphs", whole(1)),
        Argument("nth_paragraph", whole(1)),
        Argument("first_word", text),
    ),
    _first_word,
    lambda args: (
        f"Write exactly {counted(args['num_paragraphs'], 'paragraph')} with a blank line between two of them; "
        f'paragraph {args["nth_paragraph"]} starts with the word "{args["first_word"]}".'
    ),
    _edit_first_word,
    30,
    _beyond,
)
FAMILIES = (SENTENCES, PARAGRAPHS, WORDS, FIRST_WORD)
