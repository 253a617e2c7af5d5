"""A real run with the real wandb, offline: what its run folder holds is what happened.

wandb is installed into a folder that this test alone uses, as the plugin's own wheel is: TRL and transformers import
wandb wherever they find it, which every other test would pay for.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_run import SPEC, child

from cascade_core.events import Events

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
KEY = "0123456789abcdef" * 3
TRACKERS = "trackers:\n  wandb: {project: testing, mode: offline, api_key: {env: CASCADE_TEST_WANDB}, tags: [one]}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for `PYTHONPATH` with the plugin and what it depends on."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--target", str(folder)]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), "wandb"], check=True, timeout=240)
    plugin = [*pip, "--no-deps", "--no-build-isolation", "--no-cache-dir", str(HERE.parent)]
    subprocess.run(plugin, check=True, timeout=120)
    return folder


@pytest.mark.drill
def test_a_run_in_wandb_holds_every_number_of_every_step_and_every_evaluation(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("CASCADE_TEST_WANDB", KEY)
    (tmp_path / "spec.yaml").write_text(SPEC + TRACKERS)
    folder = tmp_path / "run"
    assert child("none", tmp_path / "spec.yaml", folder) == 0
    found = read(folder / "trackers")
    events = Events(folder / "events.jsonl").read()
    curves: dict[int, dict[str, Any]] = {}
    for row in found["history"]:
        curves.setdefault(row["_step"], {}).update(row)
    for offset, stage in ((1, "01-sft"), (7, "02-rl")):
        steps = [event for event in events if event["kind"] == "step" and event["stage"] == stage]
        assert len(steps) in (6, 5)
        for event in steps:
            told = {
                f"{stage}/{key}": value for key, value in event.items() if key not in ("kind", "stage", "time", "step")
            }
            assert told.items() <= curves[offset + event["step"]].items()
    evals = [event for event in events if event["kind"] == "eval"]
    at = {"00-start": 0, "01-sft": 6, "02-rl": 11}
    assert len(evals) == 3
    for event in evals:
        assert curves[at[event["stage"]]][f"eval/{event['benchmark']}/{event['metric']}"] == event["value"]
        assert found["summary"][f"final/{event['stage']}/{event['benchmark']}"] == event["value"]
    (table,) = folder.rglob("evaluation*.table.json")
    assert [row[0] for row in json.loads(table.read_text())["data"]] == list(at)
    (run,) = {json.dumps(run, sort_keys=True): run for run in found["runs"]}.values()
    assert (run["project"], run["name"], run["config"]["seed"]) == ("testing", "small", 3)
    assert "trackers" not in run["config"]
    assert found["summary"]["status"] == "finished" and found["exit"] == 0
    written = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    assert KEY.encode() not in written


def read(folder: Path) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "wandb_offline.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
