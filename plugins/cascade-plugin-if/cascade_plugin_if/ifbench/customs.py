"""The group `custom`, but for tables: tasks that are one prompt each, with an answer that the constraint fixes."""

from __future__ import annotations

import datetime
import itertools
import string

import regex

from cascade_plugin_if import markdown
from cascade_plugin_if.ifbench.places import CAPITALS, COUNTRIES
from cascade_plugin_if.ifbench.spellings import plain
from cascade_plugin_if.instructions.base import Args, Instruction
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.words import has_word, initial, words

MULTIPLES = [str(number) for number in range(14, 50, 7)]
QUESTIONS, CHOICES = 4, "abcde"
LEAST_COUNTRIES = 52  # a list of an older date, or with one slip, is still the list
FIRST_BATTLE, LAST_BATTLE = datetime.date(1793, 1, 1), datetime.date(1815, 12, 31)
_EAGLE = ("bald", "eagle")
_QUESTION = regex.compile(r"^[\s>#*_]*+Question\b(?:[\s*_]*+#?\d++)?+[\s*_.:)\-]*+", regex.IGNORECASE)
_CHOICE = regex.compile(r"^[\s>*_\-]*+\(?(?P<letter>[A-Ea-e])[.):][\s*_]*+(?=\S)")
_ANSWER_KEY = regex.compile(r"^[\s>*_]*+(?:correct\s|right\s)?answers?\b", regex.IGNORECASE)
_ITEM_NUMBER = regex.compile(r"^\s*+(?:\d{1,3}[.)]|[-*+•])\s++")
_BRACKETED = regex.compile(r"\s*+\([^()]*+\)")
_FORWARD = frozenset(
    ("the", "is", "of", "national", "symbol", "animal", "answer", "united", "states", "here", "sentence")
)
_NOT_LAST_WORD = frozenset(("the", "a", "an", "of", "is", "and", "bald", "in"))  # of a sentence read forwards


def _multiples(reading: Reading, args: Args) -> bool:
    return regex.findall(r"\d+", reading.text) == MULTIPLES


def _questions(reading: Reading, args: Args) -> bool:
    """Four questions with the label, longer from one to the next, with choices A to E, and nothing but those."""
    lines = [line for line in reading.lines if line.strip() and not markdown.is_rule(line)]
    if not lines or _QUESTION.match(lines[0]) is None:
        return False
    starts = [number for number, line in enumerate(lines) if _QUESTION.match(line)]
    if len(starts) != QUESTIONS:
        return False
    parts = [lines[start:end] for start, end in itertools.pairwise([*starts, len(lines)])]
    lengths = [_question_length(part) for part in parts]
    return lengths[0] > 0 and all(one < other for one, other in itertools.pairwise(lengths))


def _question_length(lines: list[str]) -> int:
    """How many characters a question has without its label; 0 if it is not well formed."""
    matches = [_CHOICE.match(line) for line in lines]
    letters = [match["letter"].lower() for match in matches if match]
    first = next((number for number, match in enumerate(matches) if match), 0)
    last = len(lines) - 1 - next((number for number, match in enumerate(reversed(matches)) if match), 0)
    is_bare = all(_ANSWER_KEY.match(line) or not has_word(line) for line in lines[last + 1 :])
    question = " ".join([_QUESTION.sub("", lines[0], count=1), *lines[1:first]]).strip()
    return len(question) if "".join(letters) == CHOICES and is_bare and has_word(question) else 0


def _africa(reading: Reading, args: Args) -> bool:
    """A country a line from Z to A, 52 at least; one line may introduce the list, nothing follows it."""
    lines = [_ITEM_NUMBER.sub("", line).strip(" \t*_.,;") for line in reading.lines if line.strip()]
    names = [plain(line).replace("’", "'") for line in lines]
    known = [COUNTRIES.get(name) or COUNTRIES.get(_country(name)) for name in names]
    if known and known[0] is None:
        known, names = known[1:], names[1:]
    keys = [name.removeprefix("the ") for name in names]
    is_sorted = all(one >= other for one, other in itertools.pairwise(keys))
    return None not in known and len(set(known)) == len(known) >= LEAST_COUNTRIES and is_sorted


def _country(name: str) -> str:
    """A country's name without what stands in brackets, which may be the rest of it: `congo (republic of the)`."""
    if name.startswith("congo") and "democratic" in name:
        return "democratic republic of the congo"
    return _BRACKETED.sub("", name)


def _word_reverse(reading: Reading, args: Args) -> bool:
    """Read from its last word to its first the answer names the bald eagle, and begins as sentences do."""
    found = [plain(word) for word in reading.words][::-1]
    pairs = list(itertools.pairwise(found))
    return _EAGLE in pairs and _EAGLE[::-1] not in pairs and found[-1] not in _NOT_LAST_WORD


def _character_reverse(reading: Reading, args: Args) -> bool:
    """Read from its last letter to its first the answer names the bald eagle; no part of it reads forwards."""
    text = " ".join(plain(reading.text).split())
    return "bald eagle" in text[::-1] and "bald eagle" not in text and _FORWARD.isdisjoint(words(text))


def _sentence_alphabet(reading: Reading, args: Args) -> bool:
    initials = [initial(sentence[0]) for sentence in reading.sentence_words]
    return "".join(initials) == string.ascii_lowercase


def _capitals(reading: Reading, args: Args) -> bool:
    names = [plain(name).strip(" \t*_.").removeprefix("and ") for name in reading.text.split(",")]
    return len(names) == len(CAPITALS) and all(name in known for name, known in zip(names, CAPITALS, strict=True))


def _dates(reading: Reading, args: Args) -> bool:
    """Dates of the calendar from Napoleon's years of war, two at least, and commas between them."""
    dates = [date.strip() for date in reading.text.strip(" .").split(",")]
    return len(dates) > 1 and all(map(_is_battle_date, dates))


def _is_battle_date(date: str) -> bool:
    if not regex.fullmatch(r"\d{4}-\d\d-\d\d", date, regex.ASCII):
        return False
    try:
        return FIRST_BATTLE <= datetime.date.fromisoformat(date) <= LAST_BATTLE
    except ValueError:
        return False


FAMILIES = (
    Instruction(
        "custom:multiples", (), _multiples, lambda args: "Print only the multiples of 7 between 10 and 50, in order."
    ),
    Instruction(
        "custom:mcq_count_length",
        (),
        _questions,
        lambda args: (
            'Write four questions on the art of the twentieth century, each with the label "Question", five choices, and more text '
            "than the one before. Explain nothing."
        ),
    ),
    Instruction(
        "custom:reverse_newline",
        (),
        _africa,
        lambda args: "Name the countries of Africa from Z to A, one on each line.",
    ),
    Instruction(
        "custom:word_reverse",
        (),
        _word_reverse,
        lambda args: (
            "Say which animal is the national symbol of the US, in a sentence whose words stand in reverse order."
        ),
    ),
    Instruction(
        "custom:character_reverse",
        (),
        _character_reverse,
        lambda args: (
            "Say which animal is the national symbol of the US, in a sentence whose letters stand in reverse order."
        ),
    ),
    Instruction(
        "custom:sentence_alphabet",
        (),
        _sentence_alphabet,
        lambda args: "Tell a story in 26 sentences that begin with the letters of the alphabet in their order.",
    ),
    Instruction(
        "custom:european_capitals_sort",
        (),
        _capitals,
        lambda args: (
            "Name the capitals of Europe north of 45 degrees from north to south, and only them, with commas between them."
        ),
    ),
    Instruction(
        "custom:date_format_list",
        (),
        _dates,
        lambda args: "Give only the dates on which Napoleon's battles began, as YYYY-MM-DD, with commas between them.",
    ),
)
