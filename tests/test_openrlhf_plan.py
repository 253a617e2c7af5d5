"""What is said before anything starts of a run with OpenRLHF: commands, sizes, what is not there, what is pinned."""

import json
import shlex
from pathlib import Path

import pytest
from openrlhf_flags import parser
from typer.testing import CliRunner

from cascade_core import doctor, lock
from cascade_core.cli.app import app
from cascade_core.errors import RunChanged, SpecError, TrainerError
from cascade_core.plan import plan
from cascade_core.prepare import prepare
from cascade_core.settings import Spec
from cascade_core.spec import check, load
from cascade_core.trainers import openrlhf_engine as engines
from cascade_core.trainers.openrlhf_parser import PROGRAMS, VERSIONS, recorded

CLUSTER = Path(__file__).parents[1] / "examples" / "cluster.yaml"
KINDS = ("sft", "rl", "rl", "rl")
LOCAL = """\
name: local
trainer: openrlhf
engine:
  python: {python}
model: {{init: {{context: 64}}}}
domains:
  math: {{generator: {{name: arithmetic}}, eval_limit: 4}}
stages:
  - name: one
    domains: math
    steps: 2
    rollout: {{prompts_per_step: 2, samples_per_prompt: 2, max_response_tokens: 8}}
evaluation: {{sampling: {{max_response_tokens: 8}}}}
"""


def python(folder: Path, version: str, **packages: str) -> Path:
    """An interpreter whose environment has that OpenRLHF, and metadata of packages."""
    folder.mkdir(exist_ok=True)
    for name, number in {"openrlhf": version, **packages}.items():
        info = folder / f"{name}-{number}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    path = folder / "python"
    told = json.dumps([str(folder)])
    path.write_text(f"#!/bin/sh\ncase \"$2\" in *sys.path*) echo '{told}';; *) echo openrlhf {version};; esac\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    engines.version.cache_clear()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_for_eight_machines_prints_the_command_of_every_stage_and_its_program_takes_it(
    version: str, tmp_path: Path
) -> None:
    arguments = ["plan", str(CLUSTER), "--set", f"engine.python={python(tmp_path / 'env', version)}"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    stages = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["stages"]
    for kind, stage in zip(KINDS, stages, strict=True):
        words = stage["command"]
        assert shlex.join(words) in told.stdout.splitlines()
        assert words[:5] == ["ray", "job", "submit", "--address", "http://head:8265"]
        assert words[words.index("--") + 1] == str(tmp_path / "env" / "python")
        program = f"openrlhf.cli.{PROGRAMS[kind]}"
        parser(recorded(kind, version)).parse_args(words[words.index(program) + 1 :])


def planned(*changes: str) -> dict[str, list[str]]:
    loaded = load(CLUSTER, changes)
    return {one.name: list(one.command) for one in plan(loaded, check(loaded, CLUSTER, changes)).stages}


def value(words: list[str], flag: str) -> int:
    return int(words[words.index(f"--{flag}") + 1])


@pytest.mark.parametrize("wide", [1, 2, 8])
def test_training_and_sampling_fill_the_cluster_in_turn_or_side_by_side(wide: int) -> None:
    commands = planned(
        f"engine.tensor_parallel_size={wide}", f"stages.beside.trainer_args.vllm.num_engines={32 // wide}"
    )
    for name, sides in (("if", 1), ("math", 1), ("beside", 2)):
        words = commands[name]
        training = value(words, "actor.num_nodes") * value(words, "actor.num_gpus_per_node")
        sampling = value(words, "vllm.num_engines") * value(words, "vllm.tensor_parallel_size")
        assert value(words, "vllm.tensor_parallel_size") == wide
        assert (training, sampling) == (64 // sides, 64 // sides)
        assert ("--train.colocate_all" in words) == (sides == 1)


def test_every_path_of_a_job_on_a_cluster_is_whole_and_the_agent_is_in_the_runs_own_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = planned()
    assert "Qwen/Qwen3-8B" not in commands["if"]
    words = commands["math"]
    for flag in (
        "actor.model_name_or_path",
        "data.prompt_dataset",
        "ckpt.path",
        "ckpt.output_dir",
        "train.agent_func_path",
    ):
        assert words[words.index(f"--{flag}") + 1].startswith(f"{tmp_path}/runs/cluster/stages/")


def test_a_stage_begins_from_what_the_one_before_hands_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    commands = planned()
    for name, before in (("if", "01-sft"), ("math", "02-if"), ("beside", "03-math")):
        words = commands[name]
        start = words[words.index("--actor.model_name_or_path") + 1]
        assert start == f"{tmp_path}/runs/cluster/stages/{before}/checkpoint"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("stages.beside.trainer_args.vllm.num_engines=9", "training takes 4 × 8 = 32 GPUs, sampling 9 engines × tensor_parallel_size 4 = 36, together 68, and there are engine.nodes 8 × engine.gpus 8 = 64"),
        ("engine.nodes=7", "makes steps of 1024 responses, which 56 replicas of the model cannot share evenly"),
        ("engine.tensor_parallel_size=3", "3 must divide the 8 GPUs of a machine: 1, 2, 4, 8 fit"),
        ("engine.ray=head:8265", "must be the address of Ray's dashboard, such as http://head:8265, found 'head:8265'"),
        ("engine.ray=http://user:secret@head:8265", "must be the address of Ray's dashboard"),
        ("engine.host=a b", "must be a machine's name or address, without a port, found 'a b'"),
        ("engine.ray=null", "8 machines need engine.ray"),
        ("engine.nodes=0", "must be above 0, found 0"),
    ],
)  # fmt: skip
def test_a_cluster_that_is_not_enough_is_refused_with_the_sum(change: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        planned(change)
    assert told in str(caught.value)


def test_a_refusal_names_the_line_of_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(CLUSTER.read_text().replace("vllm.num_engines: 8", "vllm.num_engines: 9"))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "num_engines" in text)
    with pytest.raises(SpecError, match=rf"spec.yaml:{line}:.*together 68"):
        loaded = load(path)
        check(loaded, path)


def test_a_plan_says_that_openrlhf_is_missing_and_a_run_does_not_begin(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    for named, told in (
        (tmp_path / "nowhere", "there is no "),
        (Path("/bin/false"), "OpenRLHF is not installed in the environment of /bin/false; set engine.python"),
    ):
        path.write_text(LOCAL.format(python=named))
        done = CliRunner().invoke(app, ["plan", str(path)])
        assert done.exit_code == 0 and told in " ".join(done.stderr.split()) and done.stderr.startswith("warning: ")
        with pytest.raises(TrainerError, match=f"trainer 'openrlhf': .*{told}"):
            prepare(load(path))


def spec(path: Path, interpreter: Path) -> Spec:
    path.write_text(LOCAL.format(python=interpreter))
    return load(path)


def test_the_engines_packages_are_pinned_and_another_version_is_refused(tmp_path: Path) -> None:
    old = python(tmp_path / "old", "0.11.2", vllm="0.29.0", ray="2.55.0")
    new = python(tmp_path / "new", "0.11.2", vllm="0.30.0", ray="2.55.0")
    begun, now = (prepare(spec(tmp_path / "spec.yaml", one)).lock for one in (old, new))
    assert begun["engine"] == {"openrlhf": "0.11.2", "vllm": "0.29.0", "ray": "2.55.0"}
    lock.compare(tmp_path / "lock.json", begun, begun)
    with pytest.raises(RunChanged, match=r"engine.vllm was '0.29.0' and is '0.30.0'; put it back"):
        lock.compare(tmp_path / "lock.json", begun, now)


def test_where_the_engine_is_may_change_while_its_packages_do_not(tmp_path: Path) -> None:
    here, there = (python(tmp_path / name, "0.11.2", vllm="0.29.0") for name in ("here", "there"))
    first, second = (prepare(spec(tmp_path / "spec.yaml", one)).lock for one in (here, there))
    assert first == second


def test_a_trainer_that_drives_nothing_else_pins_nothing(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(LOCAL.format(python="/bin/false").replace("openrlhf", "trl"))
    assert prepare(load(path)).lock["engine"] == {}


def test_the_doctor_looks_where_the_spec_says_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    named = spec(tmp_path / "spec.yaml", python(tmp_path / "env", "0.11.1", vllm="0.29.0"))
    found = {(one.area, one.what): one.found for one in doctor.examine(named)}
    assert found["openrlhf", "openrlhf"].startswith("0.11.1") and found["openrlhf", "vllm"].startswith("0.29.0")
    other = python(tmp_path / "other", "0.11.2")
    found = {(one.area, one.what): one.found for one in doctor.examine(named, python=str(other))}
    assert found["openrlhf", "openrlhf"].startswith("0.11.2")
