"""A stage with a composed reward, run as people run it: what is stored, told and drawn, and what `cascade score` says of it afterwards."""

from pathlib import Path

import pytest
from small_run import SPEC

from cascade_core.events import Events
from cascade_core.plugins import registry
from cascade_core.rows import Row, read
from cascade_core.run import run
from cascade_core.score_file import score_file
from cascade_core.scoring import Scorer
from cascade_core.settings import Scoring, Stage
from cascade_core.spec import load

COMPOSED = "    reward: {gate: math, sum: [math, again], weights: {again: 0.5}}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one stage, `again` being the same verifier under another name."""
    place = tmp_path_factory.mktemp("composed")
    text = SPEC.replace("stages:\n", "  again: {math: {generator: {name: arithmetic, max_a: 3, max_b: 3}}}\nstages:\n")
    text = text.replace("    steps: 5\n", "    steps: 2\n" + COMPOSED)
    text = "".join(line for line in text.splitlines(keepends=True) if "kind: sft" not in line)
    (place / "spec.yaml").write_text(text.replace("limit: 10, samples: 2", "limit: 2"))
    run(load(place / "spec.yaml"), place / "run", say=lambda line: None)
    return place / "run"


def rollouts(folder: Path) -> list[Row]:
    return [row for path in sorted(folder.glob("stages/01-rl/rollouts/*.jsonl")) for row in read(path)]


def test_every_stored_row_has_its_components_and_the_reward_that_they_make(folder: Path) -> None:
    rows = rollouts(folder)
    assert len(rows) == 16
    for row in rows:
        assert list(row["components"]) == ["math", "again"] and row["components"]["again"]["weighted"] >= 0
        own = row["score"]["value"]
        assert row["components"]["math"]["value"] == own
        assert row["truncated"] or row["reward"] == 1.5 * own


def test_components_are_among_the_events_and_drawn(folder: Path) -> None:
    steps = [event for event in Events(folder / "events.jsonl").read() if event["kind"] == "step"]
    assert all("component/again/weighted_mean" in step for step in steps) and len(steps) == 2
    assert "reward by component, weighted" in (folder / "report.html").read_text("utf-8")


def test_a_scorer_under_a_name_of_its_own_is_not_measured(folder: Path) -> None:
    assert [path.name for path in (folder / "stages/01-rl/eval").iterdir()] == ["math"]


def test_rollouts_that_are_scored_again_get_the_verdict_of_their_own_domain(folder: Path, tmp_path: Path) -> None:
    source, out = folder / "stages/01-rl/rollouts/step-00000.jsonl", tmp_path / "scored.jsonl"
    with Scorer({"math": registry().reference("math")}, Scoring(workers=1)) as scorer:
        score_file(source, out, scorer)
    before, after = list(read(source)), list(read(out))
    assert [row["score"] for row in after] == [row["score"] for row in before]
    assert [row["components"] for row in after] == [row["components"] for row in before]


def test_a_stage_reaches_another_process_whole(folder: Path) -> None:
    (stage,) = load(folder / "spec.yaml").stages
    assert stage.reward and Stage.model_validate_json(stage.model_dump_json()) == stage
