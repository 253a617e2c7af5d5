"""Counting as a reader counts: what must not change a count, and what must."""

from __future__ import annotations

from cascade_plugin_if.drafts import SENTENCES
from cascade_plugin_if.emphasis import highlight_count
from cascade_plugin_if.instructions.formats import bullet_count
from cascade_plugin_if.reading import Reading, clean
from cascade_plugin_if.words import words
from hypothesis import given
from hypothesis import strategies as st

WORD = st.sampled_from(
    [
        "rain",
        "don't",
        "state-of-the-art",
        "3.5",
        "1,250.75",
        "café",
        "e.g.",
        "U.S.",
        "naïve",
        "data_frame",
        "Straße",
        "12:30",
    ]
)
TEXT = st.lists(WORD, min_size=1, max_size=12)


@given(TEXT)
def test_words_are_what_was_joined(parts: list[str]) -> None:
    assert [word.rstrip(".") for word in words(" ".join(parts))] == [part.rstrip(".") for part in parts]


@given(TEXT, st.sampled_from(["**", "*", "_", "`", '"', "“", "(", "~~"]), st.data())
def test_a_markdown_mark_changes_no_word_count(parts: list[str], mark: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parts) - 1))
    closing = {"(": ")", "“": "”"}.get(mark, mark)
    marked = [*parts[:place], f"{mark}{parts[place]}{closing}", *parts[place + 1 :]]
    assert len(words(" ".join(marked))) == len(parts)


@given(TEXT, st.sampled_from(["\n", "\r\n", "\t", "\u00a0", "  ", " - ", " — ", " … ", " 😀 "]))
def test_what_stands_between_words_changes_no_count(parts: list[str], gap: str) -> None:
    assert len(Reading(gap.join(parts)).words) == len(parts)


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8), st.sampled_from([" ", "\n", "\n\n"]))
def test_sentences_are_counted_across_lines(parts: list[str], gap: str) -> None:
    assert Reading(gap.join(parts)).sentence_count == len(parts)


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8))
def test_capitals_change_no_sentence_count(parts: list[str]) -> None:
    text = " ".join(parts)
    assert Reading(text.upper()).sentence_count == Reading(text.lower()).sentence_count == len(parts)


@given(st.integers(1, 9), st.sampled_from("*-+•"), st.sampled_from(["", " ", "   ", "\t"]))
def test_bullets_are_counted_at_any_indentation(count: int, mark: str, indent: str) -> None:
    assert bullet_count([f"{indent}{mark} item"] * count) == count


@given(st.integers(1, 9), st.sampled_from(["*", "**", "***", "_", "__"]))
def test_highlights_are_counted_once_each(count: int, mark: str) -> None:
    assert highlight_count([" and ".join([f"{mark}so{mark}"] * count)]) == count


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet="abc .,!\n"), st.sampled_from(["\u200b", "\ufeff", "\u00ad", "\x00"]), st.integers(0, 50))
def test_what_no_reader_sees_changes_nothing(text: str, hidden: str, place: int) -> None:
    assert clean(text[:place] + hidden + text[place:]) == clean(text)
