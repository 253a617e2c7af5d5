"""The rules of the RLHF and IF stages and of thinking modes (arXiv 2512.13607, sections 3.1.2, 4.3, 4.4) in stages that trl trains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recipe_checks import *  # noqa: F403
from recipe_checks import Seen, assert_trained_on, mixes
from recipe_plan import ASSIGNED, BIDDEN, LIKED, SAMPLES, Wire, reward_model, spec, write

from cascade_core.pretrained import load_tokenizer
from cascade_core.rows import read
from cascade_core.run import run
from cascade_core.spec import load


class Watched:
    """What trl was seen to do, stage by stage."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from cascade_core.trainers import trl_rl

        self.asked: list[list[list[int]]] = []
        self.trained: list[dict[tuple[int, int], list[float]]] = []
        draw, made = trl_rl.draw, trl_rl.OnPolicyTrainer._generate_and_score_completions

        def asked(model: Any, prompts: Any, *rest: Any, **more: Any) -> Any:
            self.asked.append([ids for ids in prompts for _ in range(SAMPLES)])
            return draw(model, prompts, *rest, **more)

        def trained(trainer: Any, inputs: Any) -> Any:
            output = made(trainer, inputs)
            both = zip(output["advantages"], output["tool_mask"], strict=True)
            numbers = [[float(advantage)] * int((mask > 0).sum()) for advantage, mask in both]
            self.trained.append({(i // SAMPLES, i % SAMPLES): one for i, one in enumerate(numbers)})
            return output

        monkeypatch.setattr(trl_rl, "draw", asked)
        monkeypatch.setattr(trl_rl.OnPolicyTrainer, "_generate_and_score_completions", trained)


def trained(text: str, place: Path, wire: Wire, modes: str, name: str = "") -> Seen:
    """Runs a spec of the plan with trl in this process, in a folder that is named by its modes, or by `name`; its last stage."""
    name = name or modes
    path = place / f"{name}.yaml"
    path.write_text(spec(text, place, "trl", wire.address, "{}"))
    wire.scores = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        watched = Watched(monkeypatch)
        run(load(path), place / name, say=lambda line: None)
    stage = sorted((place / name / "stages").iterdir())[-1]
    rows = [list(read(file)) for file in sorted((stage / "rollouts").iterdir())]
    return Seen(modes, rows, watched.asked, watched.trained, wire.scores, load_tokenizer(place / "start"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recipe")
    write(made)
    return made


@pytest.fixture(scope="module")
def wire(place: Path) -> Iterator[Wire]:
    with reward_model(place / "rm") as found:
        yield found


@pytest.fixture(scope="module")
def liked(place: Path, wire: Wire) -> Seen:
    return trained(LIKED, place, wire, "flags")


@pytest.fixture(scope="module")
def bidden(place: Path, wire: Wire, liked: Seen) -> Seen:
    (place / "taught").symlink_to(place / "flags/stages/01-sft/checkpoint")
    return trained(BIDDEN, place, wire, "prefill")


@pytest.fixture(scope="module")
def assigned(place: Path, wire: Wire, bidden: Seen) -> Seen:
    return trained(ASSIGNED, place, wire, "prefill", "assigned")


def test_two_languages_take_the_reward_of_a_rule_for_one_that_the_stage_names(assigned: Seen) -> None:
    """Section 4.5 has -1 for it; a kept instruction saves no such response."""
    for row in assigned.every:
        assert row["reward"] == (-1 if mixes(row) else row["score"]["value"])
    switched = [row for row in assigned.every if "所以" in row["response"]]
    assert {row["reward"] for row in switched} == {-1}
    assert {row["score"]["value"] for row in switched} == {0.0, 1.0}
    assert {row["reward"] for row in assigned.every} == {-1.0, 0.0, 1.0}


def test_the_trainer_multiplies_every_token_with_what_the_assigned_rewards_make(assigned: Seen) -> None:
    for group in assigned.groups():
        assert_trained_on(assigned, group, [-1.0 if mixes(row) else row["score"]["value"] for row in group])
