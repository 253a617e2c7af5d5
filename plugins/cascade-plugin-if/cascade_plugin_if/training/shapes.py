"""The groups `detectable_format`, `paragraphs` and `count:counting_composition`: brackets, hyphens and paragraphs."""

from __future__ import annotations

from random import Random

import regex

from cascade_plugin_if import drafts, markdown, sentences
from cascade_plugin_if.instructions.base import Args, Argument, Instruction, counted, whole
from cascade_plugin_if.instructions.lengths import DIVIDER, divided
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word, words

TWO, THREE = 2, 3  # paragraphs
_BRACKETED = regex.compile(r"\[([^\[\]]*+)\]")
_ANGLED = regex.compile(r"<<([^<>]*+)>>")
_HYPHEN = regex.compile(r"(?<=[.!?…][\"'”’)]?)-(?=[^\s-])")


def _groups(reading: Reading, pattern: regex.Pattern[str]) -> list[int] | None:
    """How many words each group of the pattern holds; `None` where a word stands outside of all."""
    if has_word(pattern.sub(" ", reading.text)):
        return None
    return [len(words(match.group(1))) for match in pattern.finditer(reading.text)]


def _brackets(reading: Reading, args: Args) -> bool:
    """Every word in square brackets of its own; stops may stand outside."""
    return set(_groups(reading, _BRACKETED) or ()) == {1}


def _bigrams(reading: Reading, args: Args) -> bool:
    """Two words in each pair of brackets; where their number is odd, the last stands alone in its own."""
    counts = _groups(reading, _ANGLED) or [0]
    return set(counts[:-1]) <= {2} and counts[-1] in (1, 2) and counts[0] == 2


def _hyphens(reading: Reading, args: Args) -> bool:
    """Two sentences or more, and every border between two of them is a hyphen without a space."""
    text = reading.text
    joined = len(_HYPHEN.findall(text))
    return joined > 0 and sentences.count(_HYPHEN.sub(" ", text).split("\n")) == joined + 1


def _divided_in_two(reading: Reading, args: Args) -> bool:
    parts = divided(reading)
    return len(parts) == TWO and all(map(has_word, parts))


def _two_paragraphs(reading: Reading, args: Args) -> bool:
    return len(markdown.paragraphs(reading.lines)) == TWO


def _composition(reading: Reading, args: Args) -> bool:
    """Three paragraphs between lines of `* * *` or `***`, of so many sentences, of so many words each."""
    parts: list[list[str]] = [[]]
    for line in reading.lines:
        if "".join(line.split()) == DIVIDER:
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) != THREE:
        return False
    for part in parts:
        found = [len(words(sentence)) for sentence in sentences.split(part)]
        if found != [args["n_words"]] * args["n_sent"]:
            return False
    return True


def _edit_brackets(draft: str, args: Args, rng: Random) -> str:
    return " ".join(f"[{word.rstrip('.')}]{'.' * word.endswith('.')}" for word in draft.split())


def _edit_bigrams(draft: str, args: Args, rng: Random) -> str:
    found = draft.split()
    return " ".join(f"<<{' '.join(found[place : place + 2])}>>" for place in range(0, len(found), 2))


def _edit_hyphens(draft: str, args: Args, rng: Random) -> str:
    return "-".join(drafts.split(draft, max(TWO, len(drafts.sentences(draft))), rng))


def _edit_composition(draft: str, args: Args, rng: Random) -> str:
    pool = [sentence.rstrip(".").split() for sentence in drafts.SENTENCES]

    def sentence() -> str:
        found: list[str] = []
        while len(found) < args["n_words"]:
            found += rng.choice(pool)
        return " ".join(found[: args["n_words"]]).capitalize() + "."

    parts = [" ".join(sentence() for _ in range(args["n_sent"])) for _ in range(THREE)]
    return "\n\n* * *\n\n".join(parts)


FAMILIES = (
    Instruction(
        "detectable_format:square_brackets",
        (),
        _brackets,
        lambda args: "Put each word in square brackets of its own.",
        _edit_brackets,
        95,
    ),
    Instruction(
        "detectable_format:bigram_wrapping",
        (),
        _bigrams,
        lambda args: "Put every two words in double angular brackets, as in <<we sing>> <<at night>>.",
        _edit_bigrams,
        95,
    ),
    Instruction(
        "detectable_format:sentence_hyphens",
        (),
        _hyphens,
        lambda args: "Join the sentences with hyphens, without a space between them.",
        _edit_hyphens,
        85,
    ),
    Instruction(
        "paragraphs:paragraphs",
        (),
        _divided_in_two,
        lambda args: f"Write two paragraphs, with a line of {DIVIDER} between them.",
        lambda draft, args, rng: f"\n\n{DIVIDER}\n\n".join(drafts.split(draft, TWO, rng)),
        30,
    ),
    Instruction(
        "paragraphs:paragraphs2",
        (),
        _two_paragraphs,
        lambda args: "Write two paragraphs, with a blank line between them.",
        lambda draft, args, rng: "\n\n".join(drafts.split(draft, TWO, rng)),
        30,
    ),
    Instruction(
        "count:counting_composition",
        (Argument("n_sent", whole(1)), Argument("n_words", whole(1))),
        _composition,
        lambda args: (
            f"Write three paragraphs with a line of * * * between two of them, each of exactly {counted(args['n_sent'], 'sentence')} "
            f"and each sentence of exactly {counted(args['n_words'], 'word')}."
        ),
        _edit_composition,
        5,
    ),
)
