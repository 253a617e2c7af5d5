"""The hard cases for instruction verifiers, and our own rows of the same themes, judged by the real domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.instructions import REGISTRY

from cascade_core import Response, Task
from cascade_core.errors import CascadeError

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


CASES, OWN = rows("if_cases.jsonl"), rows("own_cases.jsonl")


def verdict(answer: dict[str, Any], response: Any, repeat: int = 1) -> str:
    """`accept`, `reject` or `error-clearly`; every call of several must say the same."""
    task = Task("t", "a prompt", answer)
    found = set()
    for _ in range(repeat):
        try:
            found.add("accept" if IFDomain().score(task, Response(response)).value == 1.0 else "reject")
        except CascadeError:
            found.add("error-clearly")
    assert len(found) == 1, f"{repeat} equal calls gave {found}"
    return found.pop()


def public_form(case: dict[str, Any]) -> dict[str, Any]:
    if "instructions" not in case:
        return {name: case[name] for name in ("instruction_id_list", "kwargs")}
    return {
        "instruction_id_list": [one["id"] for one in case["instructions"]],
        "kwargs": [one["kwargs"] for one in case["instructions"]],
    }


@pytest.mark.parametrize("row", CASES, ids=[row["id"] for row in CASES])
def test_a_hard_case_is_judged_as_a_reader_would(row: dict[str, Any]) -> None:
    case = row["input"]
    repeat = case.get("policy", {}).get("repeat", 1)
    assert verdict(public_form(case), case["response"], repeat) == row["expected"], row["why"]


@pytest.mark.parametrize("row", OWN, ids=[row["id"] for row in OWN])
def test_a_case_of_our_own_is_judged_as_a_reader_would(row: dict[str, Any]) -> None:
    answer = {"instruction_id_list": [row["instruction"]], "kwargs": [row["kwargs"]]}
    assert verdict(answer, row["response"]) == row["expected"], row["why"]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_family_has_own_cases_that_it_accepts_and_rejects(name: str) -> None:
    expected = {row["expected"] for row in OWN if row["instruction"] == name}
    assert {"accept", "reject"} <= expected


def test_the_registry_holds_the_25_public_families() -> None:
    assert len(REGISTRY) == 25
    assert all(name == family.id for name, family in REGISTRY.items())


def test_fifty_equal_calls_give_fifty_equal_verdicts() -> None:
    answer = {"instruction_id_list": ["language:response_language"], "kwargs": [{"language": "en"}]}
    assert verdict(answer, "THIS IS A PLAIN ENGLISH SENTENCE.", repeat=50) == "accept"


def test_an_instruction_without_its_bounds_is_an_error_of_the_task() -> None:
    answer = {"instruction_id_list": ["count:word_count_range"], "kwargs": [{}]}
    assert verdict(answer, "one two three", repeat=2) == "error-clearly"
