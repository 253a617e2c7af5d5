"""The quick ways through common texts find what the general rules find."""

from __future__ import annotations

import unicodedata
from random import Random

import regex
from cascade_plugin_if import languages, markdown, reading, words
from cascade_plugin_if.draws import DRAWS
from cascade_plugin_if.instructions import REGISTRY, cases, keywords
from cascade_plugin_if.instructions.content import _marker
from cascade_plugin_if.loose import variants
from cascade_plugin_if.prompts import Base
from cascade_plugin_if.reading import Reading, clean
from cascade_plugin_if.verdict import calls, judge
from hypothesis import example, given, settings
from hypothesis import strategies as st

BITS = [
    "a", "B", "s", "'", "'s", "-", "--", ".", ". ", ",", ":", "/", "&", "@", "_", "__", "*", "**", "***", "`", "~", "~~", "1",
    "23", " ", "\t", "\n", "\n\n", "\r", "\x0b", "\x1c", "\x00", "http://", "HTTPS://", "www.", "WWW.", "(", ")", "[", "]",
    "<", ">", "{", "\\", "|", "=", "#", ":)", ":D", "xD", "<3", "<b>", "](/x)", "1. ", "2) ", "\n3. ", "U.S.", "e.g.", "3.5",
    "P.S.", "p.s", "The ", "of ", "Rain", "NASA's", "node.js", "</s>", "<|im_end|>",
]  # fmt: skip
ASCII = st.one_of(st.lists(st.sampled_from(BITS), max_size=30).map("".join), st.text(st.characters(max_codepoint=127)))
ANY = st.lists(st.sampled_from([*BITS, "é", "’", "—", "你", "ß", "‚", "，", "\u0301", "\u200b"]), max_size=30).map(
    "".join
)
MANY = settings(max_examples=300, deadline=None)


@given(ASCII)
@MANY
def test_an_ascii_text_has_the_words_that_any_text_has(text: str) -> None:
    assert words._ASCII_WORD.findall(text) == words._WORD.findall(text)


@given(ASCII)
@MANY
def test_a_face_holds_one_of_its_marks(text: str) -> None:
    assert words._FACE.search(text) is None or any(mark in text for mark in (":", ";", "=", "xD", "XD", "<3"))


@given(ASCII)
@MANY
def test_a_plain_text_has_nothing_to_clean_but_end_tokens(text: str) -> None:
    cleaned = reading._LINE_END.sub("\n", reading._INVISIBLE.sub("", text))
    assert not reading._is_plain(text) or cleaned == text
    assert clean(text) == unicodedata.normalize("NFC", reading._without_end_tokens(cleaned))


@given(ASCII)
@MANY
def test_a_plain_text_is_exact_as_it_is_read(text: str) -> None:
    hidden = Reading(text + "\u200b")  # not plain, and reads the same
    assert Reading(text).exact == hidden.exact or not reading._is_plain(text)


@given(ANY)
@MANY
@example("a*_b_*c ~*~ x~~_y")
def test_marks_are_taken_away_as_if_at_once(text: str) -> None:
    at_once = regex.sub(r"\*++|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|`++|~~", "", text)
    assert markdown.unmarked(text) == at_once


def pattern(word: str) -> regex.Pattern[str]:
    """The whole keyword as one pattern."""
    parts = words.fold(unicodedata.normalize("NFC", word)).split()
    found = keywords.keyword(word)
    body = r"\s++".join(regex.escape(part, literal_spaces=True) for part in parts)
    return regex.compile(found.left.pattern + body + found.right.pattern)


KEYWORD = ["a", "aa", "Rain", "'", "s", "t", "U.S.", "3.5", "1", " ", "*", "_", "é", "’", "-", "C++", "你", "ก", "한"]


@given(
    st.lists(st.sampled_from([*KEYWORD, "\n", ".", ",", "b"]), max_size=25).map("".join),
    st.lists(st.sampled_from(KEYWORD), min_size=1, max_size=4).map("".join),
)
@MANY
def test_a_keyword_is_found_where_one_pattern_would_find_it(text: str, word: str) -> None:
    if word.strip():
        read, found = Reading(text), keywords.keyword(word.strip())
        folded = read.folded if found.has_marks else read.plain
        assert found.count(read) == len(pattern(word.strip()).findall(folded))


@given(st.lists(st.sampled_from([*BITS, *words._TYPOGRAPHIC]), max_size=30).map("".join))
@MANY
def test_typographic_marks_do_to_a_word_what_their_like_in_ascii_does(text: str) -> None:
    plain = words._in_ascii(text)
    assert plain.isascii() and len(plain) == len(text)
    assert [match.span() for match in words._ASCII_WORD.finditer(plain)] == [
        match.span() for match in words._WORD.finditer(text)
    ]


@given(st.one_of(ANY, st.text(max_size=60)))
@MANY
def test_case_and_commas_are_those_that_one_search_finds(text: str) -> None:
    read = Reading(text)
    small = {char for char in regex.findall(r"\p{Ll}", read.text) if len(char.upper()) == 1 and char.upper() != char}
    assert cases._has_small_letter(read) == bool(small)
    assert cases._has_capital(read) == bool(cases._UPPER.search(read.text))
    assert cases._no_comma(read, {}) == (cases._COMMA.search(read.text) is None)


@given(st.one_of(ANY, st.text(max_size=60), st.text("aⱥȺя你é1 '", max_size=20)))
@MANY
def test_a_text_mostly_of_other_letters_than_latin_is_foreign(text: str) -> None:
    read = Reading(text)
    letters = regex.findall(r"\p{L}", languages.plain(read))
    if sum(letter < "\u0250" for letter in letters) < len(letters) / 2:
        assert languages.is_foreign(read)


@given(ANY)
@MANY
def test_capital_words_are_counted_without_their_possessive(text: str) -> None:
    read = Reading(text)
    bare = [regex.sub(r"['’]s?$", "", word) for word in read.words]
    assert cases.capital_words(read) == sum(word.isupper() for word in bare)


@given(ASCII)
@MANY
def test_an_ascii_text_is_stripped_for_the_language_as_any_text_is(text: str) -> None:
    kept = " ".join(part for part in text.split() if "@" not in part and not languages._ADDRESS.match(part))
    spaced = regex.sub(r"`[^`\n]++`|[*_#>|~=<\[\]{}\\]++|\d++", " ", kept)
    read = Reading(text)
    if read.prose.split() == text.split():
        assert languages.plain(read) == " ".join(spaced.lower().split())


@given(ASCII)
@MANY
def test_an_address_holds_one_of_its_marks(text: str) -> None:
    is_address = "@" in text or languages._ADDRESS.search(text) is not None
    assert not is_address or any(mark in text for mark in languages._ADDRESS_MARKS)


def plainly(text: str, marker: str) -> bool:
    """The rule for postscripts as it is said, marker by marker from the front."""
    lines = Reading(text).prose_lines
    counts = [len(words.words(line)) for line in lines]
    for number, line in enumerate(lines):
        if (match := _marker(marker)[1].search(line)) is None:
            continue
        ahead = sum(counts[:number]) + len(words.words(line[: match.start()]))
        has_text, own, later = words.has_word(line[match.end() :]), True, 0
        for place in range(number + 1, len(lines)):
            if not lines[place].strip():
                own = own and not has_text
            elif own or regex.match(r"[*_]{0,3}(?:p\.?\s?){1,3}s\b", lines[place].strip(), regex.IGNORECASE):
                has_text, own = has_text or bool(counts[place]), True
            else:
                later += counts[place]
        if has_text and ahead and later <= ahead:
            return True
    return False


@given(
    st.lists(
        st.sampled_from(["P.S.", "P.P.S", "p. s.", "ps", " ", "\n", "\n\n", "a", "b c. ", "d e f", "*", "- "])
    ).map("".join)
)
@MANY
def test_postscripts_read_from_the_end_are_those_read_from_the_front(text: str) -> None:
    asked = calls({"instruction_id_list": ["detectable_content:postscript"], "kwargs": [{"postscript_marker": "P.S."}]})
    assert judge(asked, text).strict[0] == plainly(text, "P.S.")


@given(ANY)
@MANY
@example("e*\u0301 a*b\nx</s>\ny *z*")
def test_a_part_of_an_answer_is_read_as_it_is_read_alone(text: str) -> None:
    whole = Reading(text)
    for name in ("words", "sentence_words"):  # filled before the parts ask
        getattr(whole, name)
    for variant in variants(whole.text):
        part, alone = Reading(variant, whole), Reading(variant)
        for name in (
            "text",
            "exact",
            "is_blank",
            "words",
            "folded_words",
            "initials",
            "sentences",
            "sentence_words",
            "sentence_count",
        ):
            assert getattr(part, name) == getattr(alone, name), name


@given(ANY)
@MANY
def test_the_words_of_a_text_are_those_of_its_lines(text: str) -> None:
    read = Reading(text)
    assert read.words == words.words(read.text)
    assert read.words[: len(read.opening)] == read.opening and bool(read.words) == bool(read.opening)
    assert read.folded_words == [words.fold(word) for word in read.words]
    assert read.initials == [words.initial(word) for word in read.words]


@given(ANY)
@MANY
def test_the_trigrams_of_a_text_are_its_runs_of_three_characters(text: str) -> None:
    read = Reading(text)
    assert read.trigrams == {read.text[at : at + 3] for at in range(len(read.text) - 2)}


@given(ANY, st.lists(st.sampled_from(sorted(REGISTRY)), min_size=2, max_size=4), st.integers(0, 3))
@MANY
def test_instructions_judged_together_are_judged_as_alone(text: str, names: list[str], seed: int) -> None:
    kwargs = [DRAWS[name](Random(seed), Base("Write a poem.", "a poem"), True) for name in names]
    together = calls({"instruction_id_list": names, "kwargs": kwargs})
    alone = [judge([call], text) for call in together]
    verdict = judge(together, text)
    assert verdict.strict == tuple(one.strict[0] for one in alone)
    assert verdict.loose == tuple(one.loose[0] for one in alone)
