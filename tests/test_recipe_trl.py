"""The rules of the RLHF and IF stages and of thinking modes (arXiv 2512.13607, sections 3.1.2, 4.3, 4.4) in stages that trl trains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recipe_checks import *  # noqa: F403
from recipe_checks import Seen
from recipe_plan import BIDDEN, LIKED, SAMPLES, Wire, reward_model, spec, write

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


def trained(text: str, place: Path, wire: Wire, modes: str) -> Seen:
    """Runs a spec of the plan with trl in this process; its last stage."""
    path = place / f"{modes}.yaml"
    path.write_text(spec(text, place, "trl", wire.address, "{}"))
    wire.scores = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        watched = Watched(monkeypatch)
        run(load(path), place / modes, say=lambda line: None)
    stage = sorted((place / modes / "stages").iterdir())[-1]
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
