"""The rules of the RLHF and IF stages and of thinking modes (arXiv 2512.13607, sections 3.1.2, 4.3, 4.4) through the real OpenRLHF and vLLM.

The tests are those of `tests/recipe_checks.py`, which stages that trl trains pass too. `witness` takes down from inside what vLLM reads and what OpenRLHF trains on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openrlhf_runs import Cascade, finished
from recipe_checks import *  # noqa: F403
from recipe_checks import Seen, slot_of
from recipe_plan import BIDDEN, LIKED, SAMPLES, SLOTS, STEPS, Wire, reward_model, spec, write

from cascade_core.advantages import grid
from cascade_core.pretrained import load_tokenizer

WITNESS = Path(__file__).parent / "witness"


class Witnessed:
    """What went through OpenRLHF in one stage, and the run that it was part of."""

    def __init__(self, cascade: Cascade, stage: str, noted: Path) -> None:
        self.rows = cascade.rollouts(stage)
        self.asked, self.trained = (
            [json.loads(line) for line in (noted / f"{name}.jsonl").read_text().splitlines()]
            for name in ("asked", "trained")
        )

    def samples(self) -> list[dict[tuple[int, int], dict[str, Any]]]:
        """OpenRLHF's samples of each step, by slot and by place in the slot's group."""
        found: list[dict[tuple[int, int], dict[str, Any]]] = []
        for step in self.trained:
            counts: Counter[int] = Counter()
            places = {}
            for sample in sorted(step, key=lambda one: one["index"]):
                places[sample["slot"], counts[sample["slot"]]] = sample
                counts[sample["slot"]] += 1
            found.append(places)
        return found

    def seen(self, modes: str, wire: Wire, place: Path) -> Seen:
        size = SLOTS * SAMPLES
        rows = [[row for row in self.rows if row["step"] == step] for step in range(STEPS)]
        asked = [self.asked[start : start + size] for start in range(0, len(self.asked), size)]
        trained = [{where: one["advantages"] for where, one in step.items()} for step in self.samples()]
        return Seen(modes, rows, asked, trained, wire.scores, load_tokenizer(place / "start"))


def trained(text: str, stage: str, place: Path, wire: Wire, python: Path) -> Witnessed:
    """Runs a spec of the plan with OpenRLHF."""
    path, noted = place / f"{stage}.yaml", place / f"noted-{stage}"
    noted.mkdir()
    path.write_text(spec(text, place, "openrlhf", wire.address, f"{{python: {python}, cpu: true, stall_seconds: 600}}"))
    wire.scores = {}
    cascade = finished(path, place / stage, PYTHONPATH=str(WITNESS), CASCADE_WITNESS=str(noted))
    return Witnessed(cascade, stage, noted)


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
def rlhf(place: Path, wire: Wire, engine: Path) -> tuple[Witnessed, Seen]:
    found = trained(LIKED, "rlhf", place, wire, engine)
    return found, found.seen("flags", wire, place)


@pytest.fixture(scope="module")
def following(place: Path, wire: Wire, engine: Path, rlhf: object) -> tuple[Witnessed, Seen]:
    (place / "taught").symlink_to(place / "rlhf/stages/01-sft/checkpoint")
    found = trained(BIDDEN, "if", place, wire, engine)
    return found, found.seen("prefill", wire, place)


@pytest.fixture(scope="module")
def liked(rlhf: tuple[Witnessed, Seen]) -> Seen:
    return rlhf[1]


@pytest.fixture(scope="module")
def bidden(following: tuple[Witnessed, Seen]) -> Seen:
    return following[1]


def test_vllm_was_asked_once_for_every_response_and_openrlhf_trained_on_each(
    rlhf: tuple[Witnessed, Seen], following: tuple[Witnessed, Seen]
) -> None:
    for found, _ in (rlhf, following):
        assert len(found.asked) == len(found.rows) == STEPS * SLOTS * SAMPLES
        every = {(slot, sample) for slot in range(SLOTS) for sample in range(SAMPLES)}
        assert [set(step) for step in found.samples()] == [every] * STEPS


def test_openrlhf_trains_on_what_vllm_read_and_said(
    rlhf: tuple[Witnessed, Seen], following: tuple[Witnessed, Seen]
) -> None:
    for found, seen in (rlhf, following):
        for row in found.rows:
            sample = found.samples()[row["step"]][slot_of(row), row["sample"]]
            read = sample["tokens"][: -row["tokens"]]
            assert read in seen.asked[row["step"]]
            said = seen.tokenizer.decode(sample["tokens"][-row["tokens"] :], skip_special_tokens=True)
            assert said == row["response"]


def test_openrlhfs_own_rewards_are_the_finished_advantages(
    rlhf: tuple[Witnessed, Seen], following: tuple[Witnessed, Seen]
) -> None:
    for found, seen in (rlhf, following):
        for group in seen.groups():
            handed = grid([row["advantage"] for row in group])
            samples = [found.samples()[row["step"]][slot_of(row), row["sample"]] for row in group]
            assert [sample["reward"] for sample in samples] == handed
            assert [set(sample["advantages"]) for sample in samples] == [{one} for one in handed]
