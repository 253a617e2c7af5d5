"""An sft stage as a job of OpenRLHF's: all updates or a reason, nothing left behind, whichever way it ends."""

from pathlib import Path
from typing import Any

import openrlhf_pass_rig as rig
import pytest
import tiny_stage as tiny
from openrlhf_pass_rig import events

from cascade_core.errors import CheckpointError, TrainerError
from cascade_core.rows import write
from cascade_core.settings import Engine
from cascade_core.trainers import Job
from cascade_core.trainers.openrlhf import OpenRlhfTrainer


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return rig.engine_in(tmp_path)


def demonstrations(count: int) -> list[dict[str, Any]]:
    """The n-th has n + 2 response tokens, its end among them."""
    return [{"domain": "tiny", "id": f"d{n}", "prompt": "a", "response": "b" * (n + 1)} for n in range(count)]


def train(folder: Path, engine: Engine, **changes: Any) -> Job:
    return rig.train("sft", folder, engine, demonstrations(24), **changes)


def test_a_stage_is_trained_for_exactly_its_steps_on_its_own_demonstrations(tmp_path: Path, engine: Engine) -> None:
    made = train(tmp_path / "stage", engine)
    told = events(made.folder, "step")
    assert [event["step"] for event in told] == list(range(6))
    assert [event["loss"] for event in told] == [4 * step + 3.5 for step in range(6)]
    assert [event["lr"] for event in told] == pytest.approx([1e-2, *(1e-2 / (step + 1) for step in range(1, 6))])
    assert [event["step"] for event in events(made.folder, "checkpoint")][-1] == 6
    files = {path.name for path in made.output.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= files
    assert (made.output / "tokenizer.json").read_text() == (made.model / "tokenizer.json").read_text()
    assert list((made.folder / "tensorboard").iterdir())


@pytest.mark.drill
@pytest.mark.parametrize("last", [1, 3, 4, 6])
def test_a_job_that_was_killed_goes_on_from_its_checkpoint(
    last: int, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", f"die {last}")
    with pytest.raises(TrainerError, match=r"ended with status 137 at step \d of 6"):
        train(folder, engine)
    assert OpenRlhfTrainer().resume_step(folder) == last // 2 * 2
    (folder / "trainer" / "checkpoints" / "global_step7").mkdir(parents=True, exist_ok=True)  # was being written
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    train(folder, engine)
    told = {event["step"]: event["loss"] for event in events(folder, "step")}
    assert told == {step: 4 * step + 3.5 for step in range(6)}
    assert not (folder / "trainer" / "checkpoints" / "global_step7").exists()
    assert (folder / "checkpoint").is_dir()


@pytest.mark.drill
def test_updates_that_a_killed_run_did_not_come_to_tell_are_told_by_the_next(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", "die 4")
    with pytest.raises(TrainerError):
        train(folder, engine)
    first, *_ = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text(first)
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    train(folder, engine)
    assert [(event["step"], event["loss"]) for event in events(folder, "step")] == [(n, 4 * n + 3.5) for n in range(6)]


@pytest.mark.drill
def test_checkpoints_of_other_demonstrations_are_refused(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stage"
    monkeypatch.setenv("FAKE_OPENRLHF", "die 3")
    with pytest.raises(TrainerError):
        train(folder, engine)
    settings = tiny.stage("sft", batch_size=4)
    other = [{**row, "response": "b"} for row in demonstrations(24)]
    made = tiny.job(folder, settings, rows=other)
    trainer = OpenRlhfTrainer()
    trainer.engine = engine
    with pytest.raises(CheckpointError, match="other rows than .* remove .* from its beginning"):
        trainer.train(made)
    write(folder / "prompts.jsonl", demonstrations(24))
    monkeypatch.setenv("FAKE_OPENRLHF", "")
    trainer.train(made)


@pytest.mark.drill
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (
            "say torch.OutOfMemoryError: CUDA out of memory",
            "ended with status 1 at step 0 of 6: a GPU ran out of memory",
        ),
        ("say No module named openrlhf", "OpenRLHF is not installed in the environment of"),
        ("short", "ended at step 5 of 6; see"),
        ("nan 2", "the gradient of step 2 is not finite; lower optim.lr"),
    ],
)
def test_a_job_that_fails_says_why(
    mode: str, told: str, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", mode)
    with pytest.raises(TrainerError, match=told):
        train(tmp_path / "stage", engine)
    assert not (tmp_path / "stage" / "checkpoint").exists()


@pytest.mark.drill
def test_a_job_that_stands_still_is_ended(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_OPENRLHF", "hang")
    with pytest.raises(
        TrainerError, match=r"made no progress for 3 s \(engine\.stall_seconds\) and was ended at step 0"
    ):
        train(tmp_path / "stage", engine.model_copy(update={"stall_seconds": 3.0}))
