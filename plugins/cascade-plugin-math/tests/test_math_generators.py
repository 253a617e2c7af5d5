"""The generators: deterministic, split by the problem's text, and every reference scores 1."""

from itertools import islice

import pytest
from cascade_plugin_math.arithmetic import Arithmetic
from cascade_plugin_math.domain import MathDomain
from cascade_plugin_math.gym import NAMES, Gym

from cascade_core import Response
from cascade_core.errors import UsageError
from cascade_core.sources import is_held_out

GENERATORS = [
    {"name": "arithmetic"},
    {"name": "arithmetic", "max_a": 49, "max_b": 9, "operations": "+-*", "prompt": "{a} {op} {b} = "},
    {"name": "arithmetic", "min_a": -30, "max_a": 30, "max_b": 30, "negatives": False},
    {"name": "chain_sum", "min_terms": 2, "max_terms": 3, "test_tasks": 60},
    {"name": "fraction_simplification", "test_tasks": 60},
]


def domain_of(options):
    return MathDomain(generator=options)


@pytest.mark.parametrize("options", GENERATORS, ids=str)
def test_the_splits_share_no_prompt_and_ids_are_unique(options):
    domain = domain_of(options)
    held_out, train = list(domain.tasks("test", 0)), list(islice(domain.tasks("train", 5), 2000))
    assert len({task.id for task in held_out}) == len({task.prompt for task in held_out}) == len(held_out) > 0
    assert not {task.prompt for task in held_out} & {task.prompt for task in train}
    names = {task.prompt: task.id for task in train}
    assert all(names[task.prompt] == task.id for task in train)


@pytest.mark.parametrize("options", GENERATORS, ids=str)
def test_a_generator_is_deterministic(options):
    first, again = domain_of(options), domain_of(options)
    assert list(first.tasks("test", 0)) == list(again.tasks("test", 7))
    assert list(islice(first.tasks("train", 1), 100)) == list(islice(again.tasks("train", 1), 100))
    assert list(islice(first.tasks("train", 1), 100)) != list(islice(again.tasks("train", 2), 100))


@pytest.mark.parametrize("options", GENERATORS, ids=str)
def test_every_reference_scores_one_and_its_neighbour_nothing(options):
    domain = domain_of(options)
    for task in islice(domain.tasks("test", 0), 60):
        assert domain.score(task, Response(domain.reference(task))).value == 1.0
        assert domain.score(task, Response("\\boxed{123456789}")).value == 0.0


def test_the_quickstarts_space_holds_out_more_than_400_problems():
    settings = Arithmetic(max_a=99, max_b=19)
    assert len(list(settings.problems("test", 0))) > 400
    assert settings.size == 4000


@pytest.mark.parametrize("name", NAMES)
def test_every_generator_of_reasoning_gym_that_is_offered_has_readable_labels(name):
    domain = domain_of({"name": name, "test_tasks": 6})
    tasks = list(domain.tasks("test", 0))
    assert len(tasks) == 6
    for task in tasks:
        assert is_held_out(task.meta["problem"])
        assert domain.score(task, Response(domain.reference(task))).value == 1.0, task
        assert domain.score(task, Response("\\boxed{(8,9,1234567)}")).value == 0.0


def test_a_generators_settings_reach_reasoning_gym():
    task = next(
        iter(
            domain_of({"name": "chain_sum", "min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}).tasks(
                "train", 0
            )
        )
    )
    assert len(task.meta["problem"]) < 70


def test_settings_that_reasoning_gym_refuses_are_a_clear_error():
    with pytest.raises(UsageError, match="chain_sum"):
        next(iter(domain_of({"name": "chain_sum", "min_terms": -3}).tasks("train", 0)))
    with pytest.raises(UsageError, match="chain_sum"):
        next(iter(domain_of({"name": "chain_sum", "terms": 3}).tasks("train", 0)))


def test_a_tiny_space_ends_instead_of_searching_for_ever():
    options = {"name": "chain_sum", "min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
    assert 0 < len(list(Gym(options).problems("test", 0))) < 500


def test_an_unknown_generator_names_the_nearest():
    with pytest.raises(UsageError, match="chain_sum"):
        domain_of({"name": "chain_summ"})
