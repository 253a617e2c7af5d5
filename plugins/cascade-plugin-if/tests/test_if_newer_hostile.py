"""Hostile text for the instructions of IFBench and its training set: long, nested, degenerate. No crash, no hang, one verdict."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_if.ifbench.syllables import counts
from cascade_plugin_if.reading import Reading
from cascade_plugin_if.registry import IFEVAL, REGISTRY
from cascade_plugin_if.verdict import Call, calls, judge
from hypothesis import given, settings
from hypothesis import strategies as st

DATA = Path(__file__).parent / "data"
KWARGS: dict[str, Any] = {
    row["instruction"]: row["kwargs"]
    for name in ("ifbench_cases.jsonl", "training_cases.jsonl")
    for row in map(json.loads, (DATA / name).read_text(encoding="utf-8").splitlines())
}
NEWER = sorted(set(REGISTRY) - set(IFEVAL))


def one(name: str) -> tuple[Call, ...]:
    return calls({"instruction_id_list": [name], "kwargs": [KWARGS[name]]})


ASKED = {name: one(name) for name in NEWER}
UNITS = ["a", "A. ", "? ", " a\n\n", "([{", "'\"", '"a" ', "* a\n - a\n", '"a,', "1,", "[a] ", "<i>a", "😀. 東京 ", "-A.", "aire",
         "Question 1: a\n", "a\u0301", "<<a b>> ", "14 the cat ", "\ud800\t"]  # fmt: skip
FUZZ = settings(max_examples=2 * settings.default.max_examples, deadline=None)


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_in_proportion_to_the_text(unit: str) -> None:
    """A quadratic check takes 64 times as long for eight times the text; the bound is far below that."""

    def text(size: int) -> str:
        return (unit * (size // len(unit) + 1))[:size]

    def seconds(name: str, reading: Reading) -> float:
        start = time.process_time()
        ASKED[name][0].holds(reading)
        return time.process_time() - start

    def is_slow(name: str) -> bool:
        """Measured again where it looks slow: the machine may have been busy."""
        return all(
            (long := seconds(name, Reading(text(16_000)))) > 0.06 and long > 24 * seconds(name, Reading(text(2_000)))
            for _ in range(5)
        )

    shared = Reading(text(16_000))
    for name in NEWER:
        assert seconds(name, shared) <= 0.06 or not is_slow(name), name


@pytest.mark.parametrize("unit", [",", "a\n", " ,", '"",', "\t"])
@pytest.mark.parametrize("name", ["custom:csv_city", "custom:csv_special_character", "custom:csv_quotes"])
def test_a_table_of_nothing_but_fields_costs_its_length(name: str, unit: str) -> None:
    """Where each field was looked for in all the rest of the text, 300,000 of them took more than ten seconds."""
    reading = Reading(unit * 300_000)
    start = time.process_time()
    assert not ASKED[name][0].holds(reading)
    assert time.process_time() - start < 5.0


@given(st.sampled_from(NEWER), st.text(st.characters(codec=None), max_size=300))
@FUZZ
def test_any_text_gets_a_verdict_and_the_same_one_twice(name: str, text: str) -> None:
    first, second = judge(ASKED[name], text), judge(ASKED[name], text)
    assert first == second
    assert not (first.strict[0] and not first.loose[0])


@given(st.lists(st.sampled_from(UNITS), max_size=40).map("".join), st.sampled_from(NEWER))
@FUZZ
def test_any_mix_of_marks_gets_a_verdict(text: str, name: str) -> None:
    assert judge(ASKED[name], text).ids == (name,)


@given(st.text(min_size=1, max_size=60))
def test_every_word_has_a_syllable(word: str) -> None:
    assert all(1 <= count <= 200 for count in counts(word))


def test_no_check_opens_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a check tried to reach the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for asked in ASKED.values():
        judge(asked, "A plain answer. It has two sentences.")
