"""The run folder: locks that go with their process, fingerprints that see every byte."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cascade_core.errors import CheckpointError, RunError, RunLocked
from cascade_core.folder import StageFolder, check_checkpoint, fingerprint, load_json, locked


def test_a_lock_is_gone_when_its_process_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from cascade_core.folder import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with locked(tmp_path):
        pass


def test_a_lock_that_is_held_names_the_folder(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(RunLocked, match=str(tmp_path)), locked(tmp_path):
        pass


@pytest.mark.parametrize("change", ["content", "name", "more"])
def test_a_fingerprint_sees_contents_names_and_further_files(change: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = fingerprint(tmp_path)
    if change == "content":
        (tmp_path / "a").write_text("2")
    elif change == "name":
        (tmp_path / "a").rename(tmp_path / "b")
    else:
        (tmp_path / "c").write_text("")
    assert fingerprint(tmp_path) != before


def test_a_finished_stage_whose_checkpoint_was_removed_says_what_to_do(tmp_path: Path) -> None:
    stage = StageFolder(tmp_path, 1, "if")
    stage.path.mkdir(parents=True)
    stage.metrics.write_text(json.dumps({"checkpoint": "x"}))
    with pytest.raises(CheckpointError, match="restore it, or remove .*01-if to train the stage again"):
        check_checkpoint(stage)


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_json_file_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(text)
    with pytest.raises(RunError, match=r"metrics\.json is damaged"):
        load_json(path)
