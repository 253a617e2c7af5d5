"""The generator: references that are right, instructions that do not conflict, splits that share nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest
from cascade_plugin_if.composer import choose, write
from cascade_plugin_if.conflicts import CONFLICTS, agree
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.drafts import opening
from cascade_plugin_if.draws import DRAWS, EASY
from cascade_plugin_if.instructions import REGISTRY
from cascade_plugin_if.prompts import Base, draw
from cascade_plugin_if.verdict import calls, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core import Response, Task
from cascade_core.errors import UsageError

LEVELS = ("tiny", "easy", "full")


def first(count: int, level: str, split: str = "train", seed: int = 0, **options: object) -> list[Task]:
    return list(itertools.islice(IFDomain(generator={"level": level, **options}).tasks(split, seed), count))


@pytest.mark.parametrize("level", LEVELS)
def test_every_reference_follows_every_instruction(level: str) -> None:
    domain = IFDomain(generator={"level": level})
    for split in ("train", "test"):
        for task in itertools.islice(domain.tasks(split, 3), 200):
            reference = domain.reference(task)
            assert reference is not None
            assert domain.score(task, Response(reference)).value == 1.0, (task.prompt, reference)


@given(level=st.sampled_from(LEVELS), seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_the_same_seed_gives_the_same_tasks_and_another_seed_others(level: str, seed: int) -> None:
    assert first(20, level, seed=seed) == first(20, level, seed=seed)
    assert first(20, level, seed=seed) != first(20, level, seed=seed + 1)


@pytest.mark.parametrize("level", LEVELS)
def test_the_test_split_is_the_same_whatever_the_seed(level: str) -> None:
    assert first(100, level, "test", seed=1) == first(100, level, "test", seed=2)


@pytest.mark.parametrize("level", LEVELS)
def test_no_prompt_is_in_both_splits_and_no_id_comes_twice(level: str) -> None:
    train = first(800, level, seed=5)
    test = first(400, level, "test")
    assert len(test) == 400
    assert not {task.prompt for task in train} & {task.prompt for task in test}
    everything = [*train, *test]
    assert len({task.id for task in everything}) == len({str(task.prompt) for task in everything}) == len(everything)


@pytest.mark.parametrize("level", ["easy", "full"])
def test_no_task_has_instructions_that_conflict(level: str) -> None:
    for task in first(400, level):
        ids = task.answer["instruction_id_list"]
        for place, name in enumerate(ids):
            assert agree(name, ids[:place])


def test_the_table_of_conflicts_is_symmetric_and_every_family_conflicts_with_itself() -> None:
    for one, others in CONFLICTS.items():
        assert one in others
        assert all(one in CONFLICTS[other] for other in others)


PAIRS = [pair for pair in itertools.combinations(sorted(REGISTRY), 2) if pair[1] not in CONFLICTS[pair[0]]]


def test_every_pair_that_is_allowed_can_be_followed_together() -> None:
    rng = Random(7)
    stuck = []
    for pair in PAIRS:
        for _ in range(40):
            base = draw(rng)
            asked = calls({"instruction_id_list": pair, "kwargs": [DRAWS[name](rng, base, True) for name in pair]})
            if all(judge(asked, write(asked, opening(base.topic, rng, 4), rng)).strict):
                break
        else:
            stuck.append(pair)
    assert len(PAIRS) > 150
    assert stuck == []


def test_full_draws_every_family_and_one_to_ten_instructions() -> None:
    tasks = first(1000, "full")
    counts = Counter(len(task.answer["kwargs"]) for task in tasks)
    families = Counter(name for task in tasks for name in task.answer["instruction_id_list"])
    assert set(counts) == set(range(1, 11))
    assert set(families) == set(REGISTRY)


def test_constraints_and_families_are_kept_to() -> None:
    for task in first(200, "full", constraints=[2, 3], families=["keywords", "punctuation:no_comma"]):
        ids = task.answer["instruction_id_list"]
        assert 2 <= len(ids) <= 3
        assert all(name.startswith("keywords:") or name == "punctuation:no_comma" for name in ids)


def test_size_bounds_a_split() -> None:
    assert len(first(500, "easy", size=7)) == len(first(500, "tiny", size=7)) == 7


@given(st.integers(1, 10), st.integers(0, 2**32))
def test_chosen_families_always_agree(count: int, seed: int) -> None:
    chosen = choose(tuple(REGISTRY), count, Random(seed))
    assert 1 <= len(chosen) <= count
    assert all(agree(name, chosen[:place]) for place, name in enumerate(chosen))


@given(st.sampled_from(sorted(REGISTRY)), st.integers(0, 2**32), st.booleans())
@settings(max_examples=200)
def test_every_draw_is_a_valid_argument(name: str, seed: int, full: bool) -> None:
    REGISTRY[name].read(DRAWS[name](Random(seed), Base("Write about rain.", "rain"), full))


def test_the_prompt_says_what_is_asked() -> None:
    for task in first(100, "full"):
        for call in calls(task.answer):
            assert call.instruction.describe(call.args) in task.prompt


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_is_the_share_of_demonstrations_that_are_wrong(level: str, noise: float) -> None:
    domain = IFDomain(generator={"level": level}, noise=noise)
    shown = list(itertools.islice(domain.demonstrations("train", 4), 300))
    wrong = sum(domain.score(one.task, Response(one.response)).value == 0.0 for one in shown) / len(shown)
    assert abs(wrong - noise) < (0.09 if 0 < noise < 1 else 0.001)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": "hard"}, "tiny, easy, full"),
        ({"levl": "easy"}, "nearest is 'level'"),
        ({"constraints": [0, 3]}, r"\[1, 10\]"),
        ({"constraints": [3, 2]}, r"\[1, 10\]"),
        ({"constraints": 3}, r"\[1, 10\]"),
        ({"constraints": [1, 11]}, r"\[1, 10\]"),
        ({"families": ["keyword"]}, "keywords"),
        ({"families": "keywords"}, "list of ids"),
        ({"size": -1}, "at least 0"),
        ({"size": True}, "whole number"),
    ],
)
def test_a_wrong_setting_is_refused_and_the_message_helps(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        IFDomain(generator=options)


def test_easy_draws_only_short_families() -> None:
    names = {name for task in first(600, "easy") for name in task.answer["instruction_id_list"]}
    assert names == set(EASY)
