"""The 112 instructions: which set each is in, what training may never ask, and rows of our own for the newer 87."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cascade_plugin_if.composer import DRAWS, choose, write
from cascade_plugin_if.conflicts import CONFLICTS, agree
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.drafts import opening
from cascade_plugin_if.prompts import Base, draw
from cascade_plugin_if.registry import EVALUATION, IFEVAL, REGISTRY, TRAINING, lookup
from cascade_plugin_if.verdict import calls, judge
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import Response, Task
from cascade_core.errors import TaskError, UsageError
from cascade_core.testing import check_domain

DATA = Path(__file__).parent / "data"
OWN: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("ifbench_cases.jsonl", "training_cases.jsonl")
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()
]
NEWER = sorted(set(REGISTRY) - set(IFEVAL))
WIDE = IFDomain(generator={"level": "wide"})


def asked(name: str, kwargs: Any) -> dict[str, Any]:
    return {"instruction_id_list": [name], "kwargs": [kwargs]}


def test_no_instruction_of_the_evaluation_is_in_the_training_set() -> None:
    assert not set(EVALUATION) & set(TRAINING)
    assert (len(IFEVAL), len(TRAINING), len(EVALUATION), len(REGISTRY)) == (25, 54, 58, 112)
    assert all(name == family.id for name, family in REGISTRY.items())


def test_no_instruction_of_the_evaluation_can_be_written_into_a_task() -> None:
    assert all(family.edit is None for family in EVALUATION.values())
    assert all(family.edit is not None for family in TRAINING.values())
    assert set(DRAWS) == set(CONFLICTS) == set(TRAINING)
    evaluated = calls(asked("format:newline", {}))
    with pytest.raises(TaskError, match="'format:newline' is for evaluation only"):
        write(evaluated, "A draft.", Random(0))


@pytest.mark.parametrize("row", OWN, ids=[row["id"] for row in OWN])
def test_a_row_of_our_own_is_judged_as_a_reader_would(row: dict[str, Any]) -> None:
    score = IFDomain().score(Task("t", "", asked(row["instruction"], row["kwargs"])), Response(row["response"]))
    assert ("accept" if score.value == 1.0 else "reject") == row["expected"], row["why"]


def test_every_newer_family_has_rows_that_it_accepts_and_rejects() -> None:
    found = {name: {row["expected"] for row in OWN if row["instruction"] == name} for name in NEWER}
    assert {name for name, expected in found.items() if expected != {"accept", "reject"}} == set()


KWARGS = {row["instruction"]: row["kwargs"] for row in OWN}


@pytest.mark.parametrize("name", NEWER)
def test_a_broken_argument_of_a_newer_family_is_an_error_of_the_task(name: str) -> None:
    arguments = [argument.name for argument in REGISTRY[name].arguments]
    broken: list[Any] = [{**KWARGS[name], "no_such": 1}, "x", [1]]
    broken += [
        {**KWARGS[name], one: junk} for one in arguments for junk in (None, [], {"a": 1}, -7, float("nan"), "", b"x")
    ]
    for kwargs in broken:
        with pytest.raises(TaskError, match=name):
            calls(asked(name, kwargs))


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_family_describes_itself_with_its_arguments(name: str) -> None:
    (call,) = calls(asked(name, KWARGS[name]))
    sentence = call.instruction.describe(call.args)
    assert sentence[0].isupper()
    for value in call.args.values():
        assert str(value).casefold() in sentence.casefold()


@pytest.mark.parametrize("name", NEWER)
def test_nothing_to_read_follows_no_newer_family(name: str) -> None:
    one = calls(asked(name, KWARGS[name]))
    assert [judge(one, text).loose for text in ("", " \n", "\u200b", "<|im_end|>")] == [(False,)] * 4


@pytest.mark.parametrize(
    ("name", "kwargs", "said"),
    [
        ("count:word_count_range", {"min_words": 9, "max_words": 5}, "at most 'max_words', found 9 and 5"),
        ("count:conjunctions", {"small_n": 8}, "from 1 to 7, found '8'"),
        ("count:person_names", {"N": 51}, "from 1 to 50"),
        ("ratio:stop_words", {"percentage": 101}, "from 0 to 100"),
        ("count:count_increment_word", {"keyword1": "Rain", "keyword2": "rain"}, "must differ"),
        ("count:keywords_multiple", {f"keyword{place}": "rain" for place in range(1, 6)}, "must differ"),
        ("copy:repeat_phrase", {"phrase": "two words", "small_n": 2}, "three words or more"),
        ("repeat:repeat_span", {"prompt_to_repeat": "short", "n_start": 4, "n_end": 2}, "found 4 and 2"),
        ("new:copy_span_idx", {"prompt_to_repeat": "short", "n_start": 1, "n_end": 99}, "5 characters"),
    ],
)
def test_arguments_that_cannot_be_followed_are_an_error_of_the_task(name: str, kwargs: Any, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        calls(asked(name, kwargs))


def test_a_mistyped_id_of_ifbench_is_answered_with_the_nearest() -> None:
    with pytest.raises(TaskError, match="count:word_count_range"):
        lookup("count:word_count_rang")
    with pytest.raises(TaskError, match="known are 112"):
        lookup(7)


def first(count: int, split: str = "train", **options: Any) -> list[Task]:
    domain = IFDomain(generator={"level": "wide", **options}) if options else WIDE
    return list(itertools.islice(domain.tasks(split, 0), count))


def test_wide_draws_every_training_family_and_none_of_the_evaluation() -> None:
    tasks = first(700)
    names = Counter(name for task in tasks for name in task.answer["instruction_id_list"])
    counts = Counter(len(task.answer["kwargs"]) for task in tasks)
    assert set(names) == set(TRAINING)
    assert set(range(1, 8)) <= set(counts) <= set(range(1, 11))


@pytest.mark.parametrize("count", [1, 5, 10])
def test_wide_gives_as_many_instructions_as_are_asked_for(count: int) -> None:
    tasks = first(20, constraints=[count, count])
    assert {len(task.answer["kwargs"]) for task in tasks} == {count}
    assert all(WIDE.score(task, Response(str(WIDE.reference(task)))).value == 1.0 for task in tasks)


def test_the_wide_level_keeps_the_domains_contract() -> None:
    check_domain(WIDE, tasks=2)


def test_every_pair_of_training_families_that_is_allowed_can_be_followed_together() -> None:
    rng = Random(7)
    pairs = [pair for pair in itertools.combinations(sorted(TRAINING), 2) if pair[1] not in CONFLICTS[pair[0]]]

    def works(pair: tuple[str, str]) -> bool:
        base = draw(rng)
        one = calls({"instruction_id_list": pair, "kwargs": [DRAWS[name](rng, base, True) for name in pair]})
        return all(judge(one, write(one, opening(base.topic, rng, 4), rng)).strict)

    assert len(pairs) > 600
    assert [pair for pair in pairs if not any(works(pair) for _ in range(40))] == []


@given(st.sampled_from(sorted(TRAINING)), st.integers(0, 2**32))
def test_every_draw_of_a_training_family_is_a_valid_argument(name: str, seed: int) -> None:
    TRAINING[name].read(DRAWS[name](Random(seed), Base("Write about rain.", "rain"), True))


@given(st.integers(1, 10), st.integers(0, 2**32))
def test_chosen_training_families_always_agree(count: int, seed: int) -> None:
    chosen = choose(tuple(TRAINING), count, Random(seed))
    assert 1 <= len(chosen) <= count
    assert all(agree(name, chosen[:place]) for place, name in enumerate(chosen))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": "wide", "families": ["count:numbers"]}, "evaluation only"),
        ({"level": "full", "families": ["copy:copy"]}, "level 'wide' draws from"),
        ({"level": "wide", "families": ["copi"]}, "nearest is 'copy'"),
    ],
)
def test_families_beyond_a_level_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        IFDomain(generator=options)
