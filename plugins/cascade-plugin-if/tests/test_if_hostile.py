"""Hostile text: long, deep, broken, degenerate. No check may crash, hang, or change its mind."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest
from cascade_plugin_if.draws import DRAWS
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.prompts import Base
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.verdict import Call, calls, judge
from cascade_plugin_if.words import listed
from hypothesis import given, settings
from hypothesis import strategies as st

FUZZ = settings(max_examples=4 * settings.default.max_examples, deadline=None)  # the profile `deep` makes it a long run
BASE = Base("Write a poem.", "a poem")
UNITS = [
    *sorted(listed(r"""
    a * ** _ ` ~ [ [a [a] < << <<a >> " “ ” ' a' a. A. . .. ! ? - -- ( (( () , 1, 1. # > \ \* *a *a* a* a** { {"a":
    "\ 你 。 ß İ ﷺ 😀 & a& @ a@ http:// www. a/ 1/ $ $5 C++ bad a- ‑ • | <s> </s> <|im_end|> x' été (a+)+ \u <think>
    """)),
    "a ", "* ", " ", "\t", "\n", "\r", "\r\n", "\n\n", "a\n\n", "***\n", "****** ", "```\n", "* a\n", "  * a\n", "1.\n",
    "P.S. a\n", "P.S.\n\na b c\n\n", "P.P.S\n\na b c\n\n", "SECTION 1\na\n", "Dr. ", ". ", "My answer is ", "Write a poem. ", "\u0301", "\u0316\u0301", "\u200b",
    "\ufeff", "\x00", "\ud800", "\xa0", "\u2028", "a\u0301", "\U0001f468\u200d\U0001f469", "it's ", "e.g. ",
]  # fmt: skip


def one(name: str, seed: int = 1) -> tuple[Call, ...]:
    return calls({"instruction_id_list": [name], "kwargs": [DRAWS[name](Random(seed), BASE, True)]})


ASKED = {name: one(name) for name in REGISTRY}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_time_grows_in_proportion_to_the_text(name: str) -> None:
    """A quadratic check would take 64 times as long for eight times the text; the bound is far below that."""

    def seconds(unit: str, size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        ASKED[name][0].holds(Reading(text))
        return time.process_time() - start

    def is_slow(unit: str) -> bool:
        """Measured again where it looks slow: the machine may have been busy."""
        return all((long := seconds(unit, 40_000)) > 0.1 and long > 24 * seconds(unit, 5_000) for _ in range(5))

    seconds("a", 100)
    assert [unit for unit in UNITS if is_slow(unit)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_megabyte_is_judged_in_seconds(name: str) -> None:
    for unit in ("a ", "* a\n", "A. "):
        reading = Reading((unit * 1_000_000)[:1_000_000])
        start = time.process_time()
        ASKED[name][0].holds(reading)
        assert time.process_time() - start < 5.0, repr(unit)


@pytest.mark.parametrize("depth", [200, 300, 1_000, 100_000])
def test_json_is_json_at_any_depth_of_it_and_of_the_stack(depth: int) -> None:
    text = "[" * depth + "]" * depth

    def at(level: int, text: str) -> bool:
        return at(level - 1, text) if level else judge(ASKED["detectable_format:json_format"], text).strict[0]

    assert at(0, text) and at(300, text)
    assert not at(0, text[:-1]) and not at(300, "[" + text)


def test_a_number_longer_than_python_converts_is_json() -> None:
    assert judge(ASKED["detectable_format:json_format"], "9" * 100_000).strict == (True,)


def test_a_keyword_is_never_a_pattern() -> None:
    hostile = calls({"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": ["(a+)+$", "[z", "\\"]}]})
    start = time.process_time()
    assert judge(hostile, "a" * 100_000 + "b").strict == (False,)
    assert judge(hostile, "(a+)+$ and [z and \\ too").strict == (True,)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("word", ["a" * 200_000, "a a", "* " * 1_000 + "b"])
def test_a_keyword_that_nearly_occurs_everywhere_takes_no_longer(word: str) -> None:
    asked = calls({"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": [word]}]})
    start = time.process_time()
    for text in ("a" * 400_000, "a " * 200_000, "* " * 200_000):
        asked[0].holds(Reading(text))
    assert time.process_time() - start < 4.0


@given(st.sampled_from(sorted(REGISTRY)), st.text(st.characters(codec=None), max_size=300), st.integers(0, 5))
@FUZZ
def test_any_text_gets_a_verdict_and_the_same_one_twice(name: str, text: str, seed: int) -> None:
    asked = one(name, seed)
    first, second = judge(asked, text), judge(asked, text)
    assert first == second
    assert not (first.strict[0] and not first.loose[0])


@given(st.lists(st.sampled_from(UNITS), max_size=40).map("".join), st.sampled_from(sorted(REGISTRY)))
@FUZZ
def test_any_mix_of_marks_gets_a_verdict(text: str, name: str) -> None:
    assert judge(ASKED[name], text).ids == (name,)


def test_threads_get_the_verdicts_that_one_thread_gets() -> None:
    texts = ["THIS IS ENGLISH.", "Bonjour à tous et merci.", "Привіт, як справи?", "今天天气很好。", "ok", "Guten Tag!"]
    asked = [calls({"instruction_id_list": ["language:response_language"], "kwargs": [{"language": code}]})
             for code in ("en", "fr", "uk", "zh", "de")]  # fmt: skip
    expected = [[judge(one, text).strict for one in asked] for text in texts]
    found: list[object] = []

    def work() -> None:
        found.extend([[judge(one, text).strict for one in asked] for text in texts] == expected for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_no_check_opens_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a check tried to reach the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    from cascade_plugin_if.languages import _load

    _load.cache_clear()
    for asked in ASKED.values():
        judge(asked, "A plain answer. It has two sentences.")
