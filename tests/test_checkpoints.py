"""Checkpoints inside a stage, whole or not at all."""

import pytest

from cascade_core.errors import CheckpointError
from cascade_core.trainers import checkpoints


def write(folder, steps, content=b"weights"):
    path = checkpoints.staging(folder) / f"checkpoint-{steps}"
    (path / "inner").mkdir(parents=True)
    (path / "model").write_bytes(content)
    (path / "inner" / "state").write_bytes(b"state")
    return path


def publish(folder, steps):
    path = write(folder, steps)
    checkpoints.seal(path)
    return checkpoints.publish(path, folder)


def test_without_checkpoints_a_stage_begins_at_step_0(tmp_path):
    assert checkpoints.newest(tmp_path / "absent") is None
    assert checkpoints.steps(tmp_path / "absent") == 0


def test_the_newest_is_the_one_with_the_most_steps(tmp_path):
    publish(tmp_path, 9)
    place = publish(tmp_path, 10)
    assert checkpoints.newest(tmp_path) == (10, place)
    assert checkpoints.steps(tmp_path) == 10


def test_only_the_newest_two_are_kept(tmp_path):
    for steps in (2, 4, 6, 8):
        publish(tmp_path, steps)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-6", "checkpoint-8"]


def test_one_that_was_never_sealed_is_passed_over(tmp_path):
    place = publish(tmp_path, 2)
    write(tmp_path, 4).rename(tmp_path / "checkpoint-4")
    assert checkpoints.newest(tmp_path) == (2, place)
    assert checkpoints.steps(tmp_path) == 2


def test_one_that_was_sealed_and_never_moved_into_place_is_passed_over(tmp_path):
    checkpoints.seal(write(tmp_path, 4))
    assert checkpoints.newest(tmp_path) is None


def test_what_a_kill_left_behind_does_not_disturb_the_next(tmp_path):
    write(tmp_path, 4)
    write(tmp_path, 4).rename(tmp_path / "checkpoint-4")
    assert checkpoints.newest(tmp_path) is None
    assert publish(tmp_path, 4).name == "checkpoint-4"
    assert checkpoints.steps(tmp_path) == 4


@pytest.mark.parametrize("damage", [b"weightz", b"weight", b""])
def test_a_file_that_changed_after_the_seal_is_refused_by_name(tmp_path, damage):
    publish(tmp_path, 2)
    (publish(tmp_path, 4) / "model").write_bytes(damage)
    with pytest.raises(CheckpointError, match=r"checkpoint-4/model differs.*remove .*checkpoint-4"):
        checkpoints.newest(tmp_path)


def test_a_file_that_is_gone_is_refused_by_name(tmp_path):
    (publish(tmp_path, 4) / "inner" / "state").unlink()
    with pytest.raises(CheckpointError, match=r"inner/state is missing"):
        checkpoints.newest(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"model": 3}', '{"model": {"bytes": 7}}'])
def test_a_damaged_seal_is_refused_and_not_taken_for_none(tmp_path, text):
    (publish(tmp_path, 4) / checkpoints.SEAL).write_text(text)
    with pytest.raises(CheckpointError, match=r"complete.json is damaged"):
        checkpoints.newest(tmp_path)


def test_removing_a_damaged_one_as_told_goes_on_from_the_one_before(tmp_path):
    import shutil

    before = publish(tmp_path, 2)
    (publish(tmp_path, 4) / "model").write_bytes(b"")
    shutil.rmtree(tmp_path / "checkpoint-4")
    assert checkpoints.newest(tmp_path) == (2, before)
