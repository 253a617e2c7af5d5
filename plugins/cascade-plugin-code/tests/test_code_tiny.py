"""The small tasks: exact references, a held-out part that nothing of training is in, and demonstrations that are spoilt as said."""

import random
from itertools import islice

import pytest
from cascade_plugin_code import tiny
from cascade_plugin_code.domain import CodeDomain
from cascade_plugin_code.tiny import Recipe, Tiny
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import Response
from cascade_core.errors import UsageError
from cascade_core.sources import is_held_out
from cascade_core.testing import check_domain

RECIPES = list(tiny._every())
OPTIONS = {"generator": {"level": "tiny", "noise": 0.5}, "program": "bare"}


def printed(recipe, a, b):
    """What the reference prints, run here: it is our own text."""
    out = []
    exec(recipe.program, {"input": lambda: f"{a} {b}", "print": out.append})
    return out


@given(st.sampled_from(RECIPES), st.integers(-99, 99), st.integers(-99, 99))
def test_a_reference_prints_what_is_expected(recipe, a, b):
    assert printed(recipe, a, b) == [recipe.value(a, b)]


def test_recipes_that_agree_on_the_inputs_agree_everywhere():
    grid = [(a, b) for a in range(-9, 10) for b in range(-9, 10)]
    groups = {}
    for recipe in RECIPES:
        groups.setdefault(recipe.results, set()).add(tuple(recipe.value(*pair) for pair in grid))
    assert all(len(everywhere) == 1 for everywhere in groups.values()) and len(groups) > 1000


@given(st.sampled_from(RECIPES), st.integers())
def test_a_recipe_is_read_from_its_name_and_a_spoilt_one_is_wrong(recipe, seed):
    assert Recipe.parse(recipe.id) == recipe
    other = recipe.spoilt(random.Random(seed))
    assert other.results != recipe.results and len(other.steps) == len(recipe.steps)


def test_the_splits_are_whole_disjoint_and_the_same_in_every_run():
    train, test = (list(CodeDomain(**OPTIONS).tasks(split, 3)) for split in ("train", "test"))
    assert len({task.prompt for task in train + test}) == len(RECIPES) == len(train) + len(test)
    assert all(is_held_out(task.prompt) for task in test) and len(test) > 500
    assert test == list(CodeDomain(**OPTIONS).tasks("test", 4))
    other = list(CodeDomain(**OPTIONS).tasks("train", 4))
    assert other != train and sorted(task.id for task in other) == sorted(task.id for task in train)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_the_share_of_spoilt_demonstrations_is_the_noise(noise):
    domain = CodeDomain(generator={"level": "tiny", "noise": noise}, program="bare")
    shown = list(islice(domain.demonstrations("train", 0), 1000))
    wrong = sum(one.response != domain.reference(one.task) for one in shown)
    assert abs(wrong / 1000 - noise) < 0.06
    assert shown == list(islice(domain.demonstrations("train", 0), 1000))


def test_a_whole_answer_is_the_program_where_programs_are_bare_and_a_block_where_they_are_fenced():
    bare, fenced = (
        next(iter(CodeDomain(**{**OPTIONS, "program": how}).demonstrations("test", 0))) for how in ("bare", "fenced")
    )
    assert bare.response.startswith(tiny.READS) and fenced.response == f"```python\n{bare.response}\n```"


def test_the_tiny_tasks_keep_the_contract_and_a_wrong_program_fails_them(docker):
    check_domain(CodeDomain(**OPTIONS), tasks=4, resources={"sandbox": docker.address})
    domain = CodeDomain(**OPTIONS)
    domain.open({"sandbox": docker.address})
    for task in islice(domain.tasks("test", 0), 3):
        spoilt = Recipe.parse(task.id).spoilt(random.Random(0)).program
        assert domain.score(task, Response(domain.reference(task))).value == 1.0
        assert domain.score(task, Response(spoilt)).value == 0.0
    domain.close()


def test_problems_of_a_benchmark_leave_the_generators_training(tmp_path):
    import json

    first = next(iter(CodeDomain(**OPTIONS).tasks("train", 0)))
    path = tmp_path / "held.jsonl"
    path.write_text(json.dumps({"prompt": first.prompt, "answer": dict(first.answer)}))
    domain = CodeDomain(**OPTIONS, eval_data=str(path))
    whole, left = ([task.id for task in one.tasks("train", 0)] for one in (CodeDomain(**OPTIONS), domain))
    assert left == whole[1:]
    assert [task.prompt for task in domain.tasks("test", 0)] == [first.prompt]


@pytest.mark.parametrize(
    "generator",
    [{"level": "easy"}, {"noise": 1.5}, {"noise": True}, {"noises": 0.1}, {"level": "tiny", "noise": "half"}],
)
def test_an_impossible_setting_is_refused(generator):
    with pytest.raises(UsageError, match="generator"):
        Tiny.read(generator)
    with pytest.raises(UsageError):
        CodeDomain(generator=generator)


def test_a_generator_and_data_together_are_refused():
    with pytest.raises(UsageError, match="found both"):
        CodeDomain(generator={"level": "tiny"}, data="x.jsonl")
