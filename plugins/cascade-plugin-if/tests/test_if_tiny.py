"""Level `tiny`: short, many, held out, and not to be had by a policy that ignores the prompt."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from cascade_plugin_if.domain import IFDomain
from cascade_plugin_if.tiny import Recipe, recipes

from cascade_core import Response, Task

TASKS = list(itertools.islice(IFDomain(generator={"level": "tiny"}).tasks("test", 0), 1000))


def word(task: Task) -> str:
    return Recipe.parse(task.id).word


POLICIES: dict[str, Callable[[Task], str]] = {
    "nothing": lambda task: "",
    "the prompt": lambda task: task.question,
    "the word": word,
    "the word in capitals": lambda task: word(task).upper(),
    "the word twice": lambda task: f"{word(task)} {word(task)}",
    "the word twice in capitals and quotes": lambda task: f'"{word(task)} {word(task)}"'.upper(),
    "the word three times in quotes": lambda task: f'"{word(task)} {word(task)} {word(task)}"',
    "the word without end": lambda task: " ".join([word(task)] * 40),
    "the word and ok": lambda task: f"{word(task)} ok",
    "the word twice and done": lambda task: f"{word(task)} {word(task)} done",
    "the word and every last word": lambda task: f"{word(task)} ok bye done",
    "another word": lambda task: "bok bok ok",
    "a quotation mark": lambda task: '"',
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_fixed_policy_scores_below_15_percent(name: str) -> None:
    domain = IFDomain(generator={"level": "tiny"})
    right = sum(domain.score(task, Response(POLICIES[name](task))).value for task in TASKS) / len(TASKS)
    print(f"{name}: {right:.3f}")
    assert right < 0.15


def test_there_are_thousands_of_prompts_and_hundreds_held_out() -> None:
    train, test = list(recipes("train", 0)), list(recipes("test", 0))
    assert len(train) > 20_000
    assert len(test) > 4_000
    assert len({one.prompt for one in train + test}) == len(train) + len(test)


def test_prompts_and_references_are_short() -> None:
    for recipe in recipes("train", 0):
        assert len(recipe.prompt) <= 64
        assert len(recipe.write()) <= 20


def test_an_id_says_what_the_task_is() -> None:
    for recipe in itertools.islice(recipes("train", 1), 2000):
        assert Recipe.parse(recipe.id) == recipe


def test_families_choose_what_is_asked_beside_the_word() -> None:
    domain = IFDomain(generator={"level": "tiny", "families": ["startend:end_checker"]})
    names = {
        name for task in itertools.islice(domain.tasks("train", 0), 300) for name in task.answer["instruction_id_list"]
    }
    assert "startend:end_checker" in names
    assert "startend:quotation" not in names


def test_constraints_choose_tasks_of_so_many_instructions() -> None:
    domain = IFDomain(generator={"level": "tiny", "constraints": [3, 3]})
    assert {len(task.answer["kwargs"]) for task in itertools.islice(domain.tasks("train", 0), 300)} == {3}
