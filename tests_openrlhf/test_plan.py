"""The commands that `cascade plan` prints for a cluster, before the programs of both versions, which are to take them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cascade_core.trainers.openrlhf_parser import PROGRAMS, VERSIONS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))  # of what reads third-party archives

from openrlhf_programs import sources, trained_with  # noqa: E402

KINDS = ("sft", "rl", "rl", "rl")


@pytest.fixture(scope="module", params=VERSIONS)
def programs(request, tmp_path_factory):
    """A version, and the source of its programs as they were published."""
    return request.param, sources(request.param, tmp_path_factory.mktemp("wheels"))


def planned(version, folder):
    """The commands of the example for 8 × 8 GPUs, where an OpenRLHF of that version is said to be installed."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\necho openrlhf {version}\n")
    python.chmod(0o755)
    program = "from cascade_core.cli import main; main()"
    words = ["plan", str(ROOT / "examples/cluster.yaml"), "--json", "--set", f"engine.python={python}"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return [stage["command"] for stage in json.loads(done.stdout)["stages"]]


def test_the_programs_themselves_take_every_command_of_a_plan_for_eight_machines(programs, tmp_path):
    version, texts = programs
    for kind, words in zip(KINDS, planned(version, tmp_path), strict=True):
        name = PROGRAMS[kind]
        arguments = words[words.index(f"openrlhf.cli.{name}") + 1 :]
        found = trained_with(texts[name], texts["config"], arguments, tmp_path)
        assert found["train"]["seed"] == 1
        if kind == "rl":
            actor, vllm = found["actor"], found["vllm"]
            sides = 2 if found["train"]["async_enable"] else 1
            assert actor["num_nodes"] * actor["num_gpus_per_node"] * sides == 64
            assert vllm["num_engines"] * vllm["tensor_parallel_size"] * sides == 64


def test_a_word_that_a_program_does_not_know_is_found(programs, tmp_path):
    _, texts = programs
    with pytest.raises(ValueError, match="unrecognized arguments: --vllm.no_such_flag"):
        trained_with(texts["train_ppo_ray"], texts["config"], ["--vllm.no_such_flag", "1"], tmp_path)
