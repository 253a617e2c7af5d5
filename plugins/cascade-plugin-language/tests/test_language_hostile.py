"""Hostile text: long, degenerate, invisible. The detector never raises, and its time grows with the length of the text."""

from __future__ import annotations

import time

import pytest
from cascade_plugin_language.detector import find
from cascade_plugin_language.domain import CodeSwitch
from cascade_plugin_language.prompt import leave
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core import Response, Task

TASK = Task("t", "Explain your answer.")
# fmt: off
UNITS = [
    "д", "д ", "因", "因 ", "des les und ", "`", "``` ", "~~~\n", "$", "$a", '"', '" a', "(", "A (", "A (д", "[", "[a-", "<", "<a", "\\[",
    "\\(", "\\begin{a}", "*", "*a", "_a", "a\u0301", "\u0301", "\u0316\u0301", "\x00", "\ud800", "п\u200dр", "aа", "aаα", "\u202eп",
    "👨‍👩‍👧д", "@a", "a@", "a.", "a/", "1", "1 m", "word 因, ", "Chinese 因", "Chinese ", "ಠ_ಠ ", "ಠ_", "λ", "λό ", "> ", "    {\n",
    "'", "'a ", "l'", "\n", "「", "« a", "İ", "ß", "die Straße ist ", "DIE STRASSE ", "a-", "www.", "http://", "ー", " ", "\t",
]
# fmt: on


def seconds(text: str) -> float:
    start = time.process_time()
    find(text)
    return time.process_time() - start


@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_time_grows_in_proportion_to_the_text(unit: str) -> None:
    """A quadratic rule would take 64 times as long for eight times the text; the bound is far below that."""

    def is_slow() -> bool:
        short, long = ((unit * (size // len(unit) + 1))[:size] for size in (5_000, 40_000))
        return (took := seconds(long)) > 0.15 and took > 24 * seconds(short)

    assert not all(is_slow() for _ in range(3))


@pytest.mark.parametrize("unit", ["因", "ש "], ids=ascii)
def test_a_megabyte_is_judged_in_seconds(unit: str) -> None:
    text = (unit * (2**20 // len(unit) + 1))[: 2**20]
    start = time.process_time()
    score = CodeSwitch().score(TASK, Response(text))
    assert time.process_time() - start < 8
    assert score.value == 0.0
    assert len(score.note) < 300


@settings(deadline=None)
@given(st.lists(st.sampled_from(UNITS) | st.text(max_size=20), max_size=12))
def test_any_text_is_judged_twice_alike(parts: list[str]) -> None:
    text = "".join(parts)
    task = Task("t", text or "x")
    first = CodeSwitch().score(task, Response(text))
    assert first == CodeSwitch().score(task, Response(text))
    assert CodeSwitch().explain(TASK, Response(text))["foreign_words"] == len(find(text, leave(TASK.prompt, "")).words)


@pytest.mark.parametrize(
    "hidden", ["п\u200dр\u200cи\u2060в\ufeffет", "при\x00вет", "п\u202eривет", "при\u00adвет"], ids=ascii
)
def test_invisible_characters_hide_no_word(hidden: str) -> None:
    assert [word.text for word in find(f"We say {hidden} here.").words] == ["привет"]


def test_a_right_to_left_mark_in_english_is_nothing() -> None:
    assert find("The \u200fanswer\u200e is 4.").words == ()


@pytest.mark.parametrize("word", ["pаssword", "Οrdinary", "hellο", "сomplete"])
def test_a_letter_of_another_alphabet_inside_an_english_word_is_foreign(word: str) -> None:
    assert [found.text for found in find(f"The {word} is here.").words] == [word]
