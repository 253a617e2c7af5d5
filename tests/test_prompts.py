"""Drawing a stage's tasks: exact shares, no benchmark prompt, no task twice in a step, the same every time."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_core import Demonstration, Domain, Response, Score, Task
from cascade_core.errors import SpecError
from cascade_core.prompts import draw, prompt_key
from cascade_core.settings import Stage


@dataclass
class Counting(Domain):
    """`size` tasks whose prompts are the numbers below it."""

    name = "counting"
    size: int = 50
    label: str = "c"

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        return [Task(f"{self.label}{i}", f"{self.label} {i}") for i in range(self.size)]

    def score(self, task: Task, response: Response) -> Score:
        return Score(1.0)

    def demonstrations(self, split: str, seed: int) -> Iterable[Demonstration]:
        return [Demonstration(task, "yes") for task in self.tasks(split, seed)]


def stage(domains: dict[str, float], steps: int, size: int, kind: str = "rl") -> Stage:
    sizes = {"batch_size": size} if kind == "sft" else {"rollout": {"prompts_per_step": size}}
    return Stage.model_validate({"name": "s", "kind": kind, "domains": domains, "steps": steps, **sizes})


@given(
    st.dictionaries(st.sampled_from("abc"), st.floats(0.1, 9.0), min_size=1),
    st.integers(1, 8),
    st.integers(1, 17),
)
@settings(deadline=None)
def test_shares_are_exact_to_one_row_after_every_step(shares: dict[str, float], steps: int, size: int) -> None:
    domains: dict[str, Domain] = {name: Counting(label=name) for name in shares}
    rows = list(draw(stage(shares, steps, size), domains, 0, frozenset()))
    assert len(rows) == steps * size
    for step in range(1, steps + 1):
        taken = Counter(row["domain"] for row in rows[: step * size])
        for name, share in shares.items():
            assert abs(taken[name] - step * size * share / sum(shares.values())) < len(shares)


def test_no_prompt_comes_twice_in_a_step_while_the_domain_has_enough() -> None:
    rows = iter(draw(stage({"c": 1.0}, 20, 40), {"c": Counting(size=50)}, 0, frozenset()))
    for _ in range(20):
        assert len({row["prompt"] for row in islice(rows, 40)}) == 40


def test_a_domain_smaller_than_a_step_gives_its_tasks_again() -> None:
    rows = list(draw(stage({"c": 1.0}, 2, 10), {"c": Counting(size=4)}, 0, frozenset()))
    assert len(rows) == 20
    assert {row["prompt"] for row in rows} == {f"c {i}" for i in range(4)}


def test_prompts_of_a_benchmark_are_left_out_whatever_their_white_space() -> None:
    held_out = frozenset(prompt_key(f" c\n{i}") for i in range(40))
    rows = draw(stage({"c": 1.0}, 3, 5), {"c": Counting(size=50)}, 0, held_out)
    assert all(int(row["prompt"].split()[1]) >= 40 for row in rows)


def test_a_domain_whose_every_task_is_a_benchmark_prompt_is_refused() -> None:
    held_out = frozenset(f"c {i}" for i in range(50))
    with pytest.raises(
        SpecError, match="no task of the split 'train' to train on; all that it has are benchmark prompts"
    ):
        list(draw(stage({"c": 1.0}, 1, 5), {"c": Counting(size=50)}, 0, held_out))


def test_benchmark_prompts_at_the_end_of_a_loader_do_not_end_the_drawing() -> None:
    held_out = frozenset(f"c {i}" for i in range(40, 50))
    rows = list(draw(stage({"c": 1.0}, 6, 20), {"c": Counting(size=50)}, 0, held_out))
    assert {row["prompt"] for row in rows} == {f"c {i}" for i in range(40)}


def test_a_domain_without_tasks_is_refused() -> None:
    with pytest.raises(SpecError, match="domain 'c' has no task of the split 'train'"):
        list(draw(stage({"c": 1.0}, 1, 5), {"c": Counting(size=0)}, 0, frozenset()))


def test_rows_of_a_supervised_stage_carry_the_response_to_imitate() -> None:
    rows = list(draw(stage({"c": 1.0}, 2, 3, "sft"), {"c": Counting()}, 0, frozenset()))
    assert len(rows) == 6
    assert {row["response"] for row in rows} == {"yes"}


def test_the_same_seed_draws_the_same_rows_and_another_does_not() -> None:
    def rows(seed: int) -> list[object]:
        return [row["id"] for row in draw(stage({"c": 1.0}, 4, 8), {"c": Counting()}, seed, frozenset())]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_conversation_and_its_text_are_one_prompt() -> None:
    assert prompt_key([{"role": "user", "content": "a  b"}]) == prompt_key("a b")
