"""GPUs that a stage would wait for: counted by the Ray that is going to give them out, told before anything is started."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascade_core.cli.app import app
from cascade_core.errors import TrainerError
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers import openrlhf_gpus as gpus
from cascade_core.trainers import trainer_of
from cascade_core.trainers.openrlhf import OpenRlhfTrainer

# Ray's own way to count, as far as it is asked: three makes of accelerators, one of them no GPU.
MANAGERS = """
import os
class Manager:
    def __init__(self, name, count): self.name, self.count = name, count
    def get_resource_name(self): return self.name
    def get_current_node_num_accelerators(self): return self.count
    def get_current_process_visible_accelerator_ids(self):
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        return None if seen is None else [one for one in seen.split(",") if one]
def get_all_accelerator_managers(): return [Manager("TPU", 64), Manager("GPU", 0), Manager("GPU", 4)]
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes an interpreter that has OpenRLHF and a Ray with that way to count."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(managers: str = MANAGERS) -> str:
        package = tmp_path / "site" / "ray" / "_private" / "accelerators"
        package.mkdir(parents=True)
        for folder in (package.parents[1], package.parent):
            (folder / "__init__.py").write_text("")
        (package / "__init__.py").write_text(managers)
        found = tmp_path / "site" / "openrlhf-0.11.2.dist-info"
        found.mkdir()
        (found / "METADATA").write_text("Metadata-Version: 2.1\nName: openrlhf\nVersion: 0.11.2\n")
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return str(python)

    return make


def told(python: str, **more: Any) -> str:
    return engines.lacks(Engine(python=python, **more))


def test_fewer_gpus_than_a_stage_asks_for_are_told_before_it_is_started(
    machine: Callable[[str], str], tmp_path: Path
) -> None:
    python = machine(MANAGERS)
    assert told(python, gpus=4) == ""
    found = told(python, gpus=8)
    assert found.startswith(
        "too few GPUs: every stage asks for 8 (engine.gpus), and Ray finds 4 on this machine; lower engine.gpus"
    )
    with pytest.raises(TrainerError, match="too few GPUs"):
        engines.check(Engine(python=python, gpus=8))
    assert trainer_of(OpenRlhfTrainer, Engine(python=python, gpus=8)).lacks() == found


def test_gpus_that_are_hidden_do_not_count(machine: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    python = machine(MANAGERS)
    assert gpus.count(python) == 2
    assert "finds 2 on this machine (CUDA_VISIBLE_DEVICES is '0,2')" in told(python, gpus=4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "finds 0 on this machine (CUDA_VISIBLE_DEVICES is '')" in told(python, gpus=1)


@pytest.mark.parametrize("engine", [{"cpu": True}, {"ray": "http://head:8265"}, {"cpu": True, "gpus": 8}])
def test_a_stage_on_a_cpu_or_on_a_cluster_asks_this_machine_for_none(
    machine: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, engine: dict[str, Any]
) -> None:
    monkeypatch.setattr(gpus, "count", None)  # raises if it were called
    assert told(machine(MANAGERS), **engine) == ""


@pytest.mark.parametrize(
    "managers", ["raise ImportError", "def get_all_accelerator_managers(): return [None]", "import os; os._exit(3)"]
)
def test_a_ray_that_cannot_be_asked_keeps_nothing_from_being_tried(
    machine: Callable[[str], str], managers: str
) -> None:
    python = machine(managers)
    assert gpus.count(python) is None and told(python, gpus=8) == ""
    assert gpus.count("/no/such/python") is None


def write(tmp_path: Path, python: str, changes: dict[str, Any]) -> Path:
    """A spec whose stages run on a cluster, in a file."""
    engine = {"python": python, "gpus": 8, "tensor_parallel_size": 4, "ray": "http://head:8265"}
    spec = {
        "name": "r",
        "trainer": "openrlhf",
        "engine": engine,
        "model": "owner/model",
        "domains": {"math": {"generator": {"name": "arithmetic"}}},
        "stages": [{"name": "s", "domains": "math", "steps": 1, "rollout": {"prompts_per_step": 8}}],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps({**spec, **changes}))  # JSON is YAML
    return path


@pytest.mark.parametrize(
    ("visible", "changes", "told"),
    [
        ("", {}, ""),
        ("0,1,2,3", {}, ""),
        ("", {"evaluation": {"sampler": "transformers"}}, ""),
        ("0", {"evaluation": {"tensor_parallel_size": 16}}, ""),
        (
            "",
            {"evaluation": {"tensor_parallel_size": 16}},
            "which needs 1, and Ray finds 0 on this one; run cascade on a machine",
        ),
    ],
)
def test_a_plan_warns_where_vllm_is_spread_over_a_cluster_from_a_machine_without_gpus(
    machine: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str,
    changes: dict[str, Any],
    told: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    path = write(tmp_path, machine(MANAGERS), changes)
    done = CliRunner().invoke(app, ["plan", str(path)])
    assert done.exit_code == 0, done.output
    warned = " ".join(done.stderr.split())
    assert (told in warned and warned.startswith("warning: too few GPUs here:")) if told else warned == ""


@pytest.mark.parametrize(
    ("visible", "told"),
    [
        ("", "on a machine of the Ray at http://head:8265, with 4 GPUs: this one has fewer"),
        ("0,1,2,3", "here, with 4 GPUs of this machine"),
    ],
)
def test_a_plan_and_the_doctor_say_where_benchmarks_are_sampled(
    machine: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, told: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    path = write(tmp_path, machine(MANAGERS), {})
    for command in ("plan", "doctor"):
        assert f"evaluation samples with vLLM {told}" in " ".join(
            CliRunner().invoke(app, [command, str(path)]).output.split()
        )
