"""OpenRLHF's published wheels: the recorded flags are theirs, their own parsers take what a stage becomes, their shuffle is undone.

The main block of each program is run as it is, up to where it would train: its parser, its defaults, its own checks of what was
given. What it imports (Ray, vLLM, DeepSpeed) is left out; nothing of OpenRLHF is installed.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fetched
import pytest

from cascade_core.settings import Stage
from cascade_core.trainers.openrlhf_args import Places, command
from cascade_core.trainers.openrlhf_order import unshuffled
from cascade_core.trainers.openrlhf_parser import PROGRAMS, VERSIONS, parse, recorded
from cascade_core.trainers.openrlhf_sizes import Cluster

PYPI = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux1_x86_64")
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
    wheel = fetched.archive(f"openrlhf=={request.param}", tmp_path_factory.mktemp("wheels"), *PYPI)
    found = fetched.members(wheel, "openrlhf/cli/*.py") | fetched.members(wheel, "openrlhf/utils/*.py")
    return request.param, {Path(name).stem: source.decode("utf-8") for name, source in found.items()}


def test_the_recorded_flags_are_those_of_the_wheel(programs: tuple[str, dict[str, str]]) -> None:
    version, sources = programs
    for kind, name in PROGRAMS.items():
        assert parse(sources[name]) == recorded(kind, version).flags


@pytest.mark.parametrize("kind", ["rl", "sft"])
@pytest.mark.parametrize("case", STAGES)
def test_the_programs_own_parser_and_checks_take_a_stage(
    programs: tuple[str, dict[str, str]], kind: str, case: str, tmp_path: Path
) -> None:
    version, sources = programs
    settings = STAGES[case]
    if kind == "sft":
        settings = {"batch_size": 64, **({"optim": settings["optim"]} if "optim" in settings else {})}
    made = Stage.model_validate({"name": "s", "kind": kind, "domains": "toy", "steps": 50, **settings})
    cluster = Cluster(nodes=8, gpus_per_node=8, address="http://head:8265")
    places = Places.of(tmp_path, tmp_path / "model", tmp_path / "out")
    known = recorded(kind, version)
    words = command(made, 3, cluster, places, known=known, resume=True)
    arguments = words[words.index(f"openrlhf.cli.{known.program}") + 1 :]
    found = trained_with(sources[known.program], sources["config"], arguments, tmp_path)
    assert found["train"]["seed"] == 3 and found["ckpt"]["load_enable"] is True
    if kind == "rl":
        assert found["reward"]["remote_url"] == ["agent"]
        assert found["critic"]["model_name_or_path"] is None


def trained_with(program: str, config: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """What a program's main block hands to `train`, with these words on its command line."""
    out = folder / "args.json"
    tree = ast.parse(program)
    main = [node for node in tree.body if isinstance(node, ast.If)]
    body = ast.unparse(ast.Module([*_light(tree.body), *main], []))
    script = folder / "program.py"
    script.write_text(
        "import json, pathlib, sys, types\n"
        f"module = types.ModuleType('openrlhf.utils.config')\nexec({config!r}, vars(module))\n"
        "for name in ('openrlhf', 'openrlhf.utils'):\n    sys.modules[name] = types.ModuleType(name)\n"
        "sys.modules[module.__name__] = module\n"
        "def train(args):\n"
        f"    pathlib.Path({str(out)!r}).write_text(json.dumps(args, default=vars))\n" + body
    )
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    read: dict[str, Any] = json.loads(out.read_text())
    return read


def _light(body: list[ast.stmt]) -> list[ast.stmt]:
    """Imports of the standard library."""
    roots = [node.names[0].name if isinstance(node, ast.Import) else getattr(node, "module", "") for node in body]
    return [node for node, root in zip(body, roots, strict=True) if root in ("argparse", "os", "datetime", "math")]


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
