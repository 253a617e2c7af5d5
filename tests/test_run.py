"""The run: killed anywhere and given again it ends with the same files; what changed underneath it is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import SPEC, child, contents

from cascade_core.errors import CheckpointError, RunChanged, RunError, RunLocked, SpecError
from cascade_core.folder import locked
from cascade_core.run import run
from cascade_core.spec import load


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "spec.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def whole(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert child("none", spec, folder) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("place", ["data", "training-step", "checkpoint", "evaluation"])
def test_a_run_killed_in_and_given_again_ends_with_the_same_files(
    place: str, spec: Path, whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert child(place, spec, folder) == -9
    assert not (folder / "stages" / "02-rl" / "metrics.json").exists()
    assert child("none", spec, folder) == 0
    expected, found = contents(whole), contents(folder)
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.fixture(scope="module")
def finished(whole: Path) -> Path:
    return whole


def test_a_finished_run_given_again_changes_nothing(spec: Path, finished: Path) -> None:
    before = contents(finished)
    said: list[str] = []
    run(load(spec), finished, say=said.append)
    assert contents(finished) == before
    assert all("finished before" in line for line in said)


def test_metrics_of_every_stage_have_counts_beside_the_mean(finished: Path) -> None:
    for stage in ("00-start", "01-sft", "02-rl"):
        result = json.loads((finished / "stages" / stage / "metrics.json").read_text())["benchmarks"]["math/test"]
        assert result["scored"] + result["failed"] == result["total"] == 20
        assert set(result["estimates"][result["primary"]]) == {"value", "stderr", "n"}


def test_no_benchmark_prompt_is_trained_on(finished: Path) -> None:
    def prompts(path: str) -> set[str]:
        return {json.loads(line)["prompt"] for line in (finished / "stages" / path).read_text().splitlines()}

    assert not prompts("02-rl/prompts.jsonl") & prompts("02-rl/eval/math/test.jsonl")


def test_a_changed_spec_is_refused_and_the_change_is_named(spec: Path, finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SPEC.replace("steps: 5", "steps: 7"))
    with pytest.raises(RunChanged, match=r"spec\.stages\[1\]\.steps was 5 and is 7"):
        run(load(other), finished)


def test_a_changed_plugin_is_refused_and_named(spec: Path, finished: Path) -> None:
    path = finished / "lock.json"
    text = path.read_text()
    locked = json.loads(text)
    locked["plugins"]["domain math"]["source"] = "0" * 64
    path.write_text(json.dumps(locked))
    try:
        with pytest.raises(RunChanged, match="domain math.source was 0000"):
            run(load(spec), finished)
    finally:
        path.write_text(text)


def test_another_number_of_workers_is_no_change(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SPEC.replace("workers: 1", "workers: 2"))
    run(load(other), finished, say=lambda line: None)


def test_a_run_that_stopped_at_too_many_failures_may_go_on_with_more_allowed(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SPEC.replace("workers: 1", "workers: 1, max_error_rate: 0.3"))
    run(load(other), finished, say=lambda line: None)


STORED = """
name: stored
model: ./model
domains:
  math: {data: ./train.jsonl, eval_data: ./test.jsonl, template: "{problem}"}
stages: [{name: sft, kind: sft, domains: math, steps: 2, batch_size: 4, save_every: 0}]
scoring: {workers: 1}
evaluation: {sampling: {max_response_tokens: 6}}
"""


@pytest.fixture(scope="module")
def half_done(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from a model and from files of its own, stopped after the measuring of its starting model."""
    import shutil

    folder = tmp_path_factory.mktemp("stored")
    (folder / "stored.yaml").write_text(STORED)
    shutil.copytree(finished / "stages" / "00-start" / "checkpoint", folder / "model")
    for name, first in (("train", 1), ("test", 51)):
        tasks = [{"problem": f"{n}+1=", "answer": str(n + 1), "solution": str(n + 1)} for n in range(first, first + 8)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    class Stop(Exception):
        pass

    def stop(line: str) -> None:
        if "training" in line:
            raise Stop

    with pytest.raises(Stop):
        run(load(folder / "stored.yaml"), folder / "run", say=stop)
    return folder


CHANGED = {
    "train.jsonl": r"data\.math\..*train\.jsonl was",
    "model/config.json": "is not the one that the run measured",
}


def test_a_file_that_changed_under_a_half_done_run_is_refused_until_it_is_put_back(half_done: Path) -> None:
    spec, folder = load(half_done / "stored.yaml"), half_done / "run"
    for name, told in CHANGED.items():
        text = (half_done / name).read_text()
        (half_done / name).write_text(text + "\n")
        with pytest.raises(RunChanged, match=told):
            run(spec, folder, say=lambda line: None)
        (half_done / name).write_text(text)
    run(spec, folder, say=lambda line: None)
    assert (folder / "stages" / "01-sft" / "metrics.json").exists()


def test_a_mended_spec_may_use_the_folder_in_which_nothing_was_made(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    wrong = load(spec, ["model=nobody/nothing"])
    with pytest.raises(SpecError, match="nobody/nothing"):
        run(wrong, tmp_path / "run", say=lambda line: None)
    mended = load(spec, ["seed=7", "evaluation.limit=2", "stages.sft.steps=1", "stages.rl.steps=1"])
    run(mended, tmp_path / "run", say=lambda line: None)
    assert json.loads((tmp_path / "run" / "lock.json").read_text())["spec"]["seed"] == 7


def test_a_last_stage_without_anything_to_train_on_is_refused_before_the_first_begins(tmp_path: Path) -> None:
    (tmp_path / "same.jsonl").write_text('{"problem": "1+1=", "answer": "2"}\n')
    text = SPEC.replace("domains:\n", "domains:\n  if: {generator: {level: tiny}}\n", 1)
    text = text.replace("kind: sft, domains: math", "kind: sft, domains: if")
    text = text.replace(
        "{generator: {name: arithmetic, max_a: 30, max_b: 9}}", "{data: ./same.jsonl, eval_data: ./same.jsonl}"
    )
    (tmp_path / "spec.yaml").write_text(text)
    with pytest.raises(SpecError, match="stage 'rl': domain 'math' has no task of the split 'train'"):
        run(load(tmp_path / "spec.yaml"), tmp_path / "run", say=lambda line: None)
    assert not (tmp_path / "run").exists()


def test_a_second_run_on_the_same_folder_is_refused(spec: Path, finished: Path) -> None:
    with locked(finished), pytest.raises(RunLocked, match="being worked on by another"):
        run(load(spec), finished)


def unfinish(folder: Path) -> None:
    stage = folder / "stages" / "02-rl"
    for name in ("metrics.json", "checkpoint/model.safetensors"):
        (stage / name).unlink()
    (stage / "checkpoint").rename(stage / "gone")


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    unfinish(folder)
    return folder


def test_a_missing_checkpoint_is_refused(spec: Path, copy: Path) -> None:
    (copy / "stages" / "01-sft" / "checkpoint").rename(copy / "elsewhere")
    with pytest.raises(CheckpointError, match="01-sft/checkpoint is missing"):
        run(load(spec), copy, say=lambda line: None)


def test_a_damaged_checkpoint_is_refused(spec: Path, copy: Path) -> None:
    weights = copy / "stages" / "01-sft" / "checkpoint" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(CheckpointError, match="01-sft/checkpoint is damaged"):
        run(load(spec), copy, say=lambda line: None)


def test_changed_prompts_of_a_half_done_stage_are_refused(spec: Path, copy: Path) -> None:
    prompts = copy / "stages" / "02-rl" / "prompts.jsonl"
    prompts.write_text(prompts.read_text().replace("+", "-"))
    with pytest.raises(RunChanged, match="is not what was drawn"):
        run(load(spec), copy, say=lambda line: None)


def test_a_full_disk_is_a_clear_refusal(spec: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage(copy)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(RunError, match="1 MiB are free and the next stage may need"):
        run(load(spec), copy, say=lambda line: None)


def test_a_write_that_finds_no_space_says_so_and_leaves_no_half_file(spec: Path, tmp_path: Path) -> None:
    """A real child whose files may not grow beyond 20 kB: the kernel refuses the write, as a full disk does."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from pathlib import Path; from cascade_core.run import run; from cascade_core.spec import load; from cascade_core.errors import RunError\n"
        "try: run(load(Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "except RunError as error: print(error); sys.exit(7)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(spec), str(tmp_path / "run")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 7, done.stderr[-2000:]
    assert "no space left" in done.stdout
    assert not (tmp_path / "run" / "stages" / "00-start" / "checkpoint").exists()


def test_ctrl_c_ends_cleanly_and_leaves_no_worker(spec: Path, tmp_path: Path) -> None:
    import signal
    import time

    folder = tmp_path / "run"
    command = [str(Path(sys.executable).with_name("cascade")), "run", str(spec), "--folder", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    events = folder / "events.jsonl"
    while time.monotonic() < deadline and not (events.exists() and '"step"' in events.read_text()):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "the same command goes on" in errors
    while time.monotonic() < deadline:  # what was told to end does so in its own time
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a worker is left")
