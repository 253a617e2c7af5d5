"""OpenRLHF's published wheels: the recorded flags are theirs, their own parsers take what a stage becomes, their shuffle is undone.

How their programs are run, up to where they would train, is `openrlhf_programs.py`'s; nothing of OpenRLHF is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openrlhf_programs import sources, trained_with

from cascade_core.settings import Stage
from cascade_core.trainers.openrlhf_args import Places, command
from cascade_core.trainers.openrlhf_order import unshuffled
from cascade_core.trainers.openrlhf_parser import PROGRAMS, VERSIONS, parse, recorded
from cascade_core.trainers.openrlhf_sizes import Cluster

STAGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "kl": {"kl": 0.01, "entropy": 0.001},
    "schedule": {"optim": {"warmup_steps": 3, "schedule": "cosine", "betas": [0.9, 0.999]}},
    "packed": {"trainer_args": {"ds.packing_samples": True, "ds.ring_attn_size": 2, "ds.zero_stage": 3}},
    "wide": {"trainer_args": {"vllm.tensor_parallel_size": 8, "vllm.enforce_eager": True}},
    "async": {
        "trainer_args": {
            "train.async_enable": True,
            "train.partial_rollout_enable": True,
            "actor.num_nodes": 4,
            "vllm.num_engines": 32,
        }
    },
}


@pytest.fixture(scope="module", params=VERSIONS)
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A version, and the source of its programs and of what their parsers need."""
    return request.param, sources(request.param, tmp_path_factory.mktemp("wheels"))


def test_the_recorded_flags_are_those_of_the_wheel(programs: tuple[str, dict[str, str]]) -> None:
    version, found = programs
    for kind, name in PROGRAMS.items():
        assert parse(found[name]) == recorded(kind, version).flags


@pytest.mark.parametrize("kind", ["rl", "sft"])
@pytest.mark.parametrize("case", STAGES)
def test_the_programs_own_parser_and_checks_take_a_stage(
    programs: tuple[str, dict[str, str]], kind: str, case: str, tmp_path: Path
) -> None:
    version, texts = programs
    settings = STAGES[case]
    if kind == "sft":
        settings = {"batch_size": 64, **({"optim": settings["optim"]} if "optim" in settings else {})}
    made = Stage.model_validate({"name": "s", "kind": kind, "domains": "toy", "steps": 50, **settings})
    cluster = Cluster(nodes=8, gpus_per_node=8, address="http://head:8265")
    places = Places.of(tmp_path, tmp_path / "model", tmp_path / "out")
    known = recorded(kind, version)
    words = command(made, 3, cluster, places, known=known, resume=True)
    arguments = words[words.index(f"openrlhf.cli.{known.program}") + 1 :]
    found = trained_with(texts[known.program], texts["config"], arguments, tmp_path)
    assert found["train"]["seed"] == 3 and found["ckpt"]["load_enable"] is True
    if kind == "rl":
        assert found["reward"]["remote_url"] == ["agent"]
        assert found["critic"]["model_name_or_path"] is None


@pytest.mark.parametrize("processes", [1, 8])
def test_the_shuffle_of_the_sft_program_brings_the_rows_back(
    programs: tuple[str, dict[str, str]], processes: int
) -> None:
    sampler: dict[str, Any] = {"__name__": "distributed_sampler"}
    exec(programs[1]["distributed_sampler"], sampler)
    rows = [f"row {number}" for number in range(16 * 40)]
    written = unshuffled(rows, 42)
    assert written != rows and sorted(written) == sorted(rows)
    for begun in (0, 160):  # from the start, and gone on after 10 updates of 16
        taken = []
        for rank in range(processes):
            one = sampler["DistributedSampler"](written, processes, rank, shuffle=True, seed=42, drop_last=True)
            one.set_epoch(0, consumed_samples=begun)
            taken.append([written[index] for index in one])
        dealt = [row for together in zip(*taken, strict=True) for row in together]
        assert dealt == rows[begun:]
