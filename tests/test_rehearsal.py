"""OpenRLHF on a CPU: the flags that are replaced, the variables of its processes, and the shim, which does nothing unasked."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core import rehearsal
from cascade_core.errors import TrainerError
from cascade_core.rehearsal import REPLACEMENTS, SHIM, environment, install, on_cpu
from cascade_core.rehearsal.__main__ import main
from cascade_core.trainers.openrlhf_parser import VERSIONS

CLUSTER = '''
"""A cluster that only says how it was begun."""


def init(*args, **named):
    return args, named
'''


def python(code: str, variables: dict[str, str], *path: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with the variables, and `path` behind the shim."""
    base = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **variables}
    base.pop("RAY_ADDRESS", None)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(base, gpus=3), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def told(code: str, variables: dict[str, str] | None = None, *path: Path) -> object:
    """The JSON that it prints."""
    done = python(code, variables or {}, *path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return json.loads(done.stdout)


FLAGS = st.dictionaries(
    st.sampled_from([one.flag for one in REPLACEMENTS] + ["actor.adam.lr", "vllm.num_engines"]),
    st.sampled_from([True, False, 1, 8, "nccl", "sdpa", 0.95]),
)


@given(FLAGS)
def test_what_a_cpu_cannot_have_is_replaced_and_all_else_stays(flags):
    found, _ = on_cpu(flags)
    groups = {name.partition(".")[0] for name in flags}  # a program without engines has no flags of engines
    wanted = {one.flag: one.value if one.flag.partition(".")[0] in groups else None for one in REPLACEMENTS}
    assert {name: value for name, value in found.items() if name not in wanted} == {
        name: value for name, value in flags.items() if name not in wanted
    }
    assert {name: found.get(name) for name in wanted} == wanted


@given(FLAGS)
def test_what_is_listed_as_changed_is_what_was_given_and_is_no_more(flags):
    found, changed = on_cpu(flags)
    differing = {name for name, value in flags.items() if value is not False and found.get(name) != value}
    assert {one.flag for one in changed} == differing
    assert all(one.reason for one in changed)


def test_flags_that_have_been_replaced_are_not_replaced_again():
    found, _ = on_cpu({"ds.packing_samples": True, "actor.num_nodes": 8})
    assert on_cpu(found) == (found, [])


def test_the_shim_comes_first_and_what_the_user_has_stays():
    found = environment({"PYTHONPATH": "mine", "OMP_NUM_THREADS": "7", "HOME": "here"}, gpus=5)
    assert found["PYTHONPATH"].split(os.pathsep) == [str(SHIM), "mine"]
    assert (found["OMP_NUM_THREADS"], found["HOME"], found["CASCADE_OPENRLHF_GPUS"]) == ("7", "here", "5")
    assert environment({})["PYTHONPATH"] == str(SHIM)


ACTIVE = """
import importlib.util, json, sys
finders = [type(finder).__name__ for finder in sys.meta_path]
print(json.dumps(["_Finder" in finders, importlib.util.find_spec("flash_attn") is not None]))
"""


def test_the_shim_is_active_where_it_is_asked_for():
    assert told(ACTIVE) == [True, True]


@pytest.mark.parametrize("value", ["", "0", "true"])
def test_the_shim_does_nothing_where_it_is_not_asked_for(value):
    assert told(ACTIVE, {"CASCADE_OPENRLHF_CPU": value}) == [False, False]


def test_the_stand_in_for_flash_attention_has_the_names_and_refuses_to_be_used():
    code = """
import json
from flash_attn.bert_padding import index_first_axis, pad_input, rearrange, unpad_input
from flash_attn.utils.distributed import all_gather
refused = 0
for name in (index_first_axis, pad_input, rearrange, unpad_input, all_gather):
    try:
        name(1, group=2)
    except NotImplementedError:
        refused += 1
print(json.dumps(refused))
"""
    assert told(code) == 5


def test_the_current_device_is_the_cpu_wherever_torch_takes_one():
    code = """
import json, torch
device = torch.cuda.current_device()
torch.cuda.set_device(0); torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.current_stream()
print(json.dumps([str(torch.zeros(1, device=device).device), str(torch.device(f"cuda:{device}")), torch.cuda.is_available()]))
"""
    assert told(code) == ["cpu", "cuda:0", False]


def test_a_cluster_of_its_own_is_told_that_it_has_gpus(tmp_path):
    (tmp_path / "ray.py").write_text(CLUSTER)
    code = "import json, ray; print(json.dumps(ray.init(runtime_env={})))"
    assert told(code, {}, tmp_path) == [
        [],
        {"runtime_env": {}, "address": "local", "num_gpus": 3, "num_cpus": 10, "include_dashboard": False},
    ]


@pytest.mark.parametrize("call", ["ray.init('auto')", "ray.init(address='auto')"])
def test_a_cluster_that_is_there_is_left_as_it_is(tmp_path, call):
    (tmp_path / "ray.py").write_text(CLUSTER)
    assert "num_gpus" not in json.dumps(told(f"import json, ray; print(json.dumps({call}))", {}, tmp_path))


def test_a_cluster_that_a_variable_names_is_left_as_it_is(tmp_path):
    (tmp_path / "ray.py").write_text(CLUSTER)
    code = "import json, os\nos.environ['RAY_ADDRESS'] = 'here:1'\nimport ray; print(json.dumps(ray.init()))"
    assert told(code, {}, tmp_path) == [[], {}]


def test_a_hook_that_is_taken_out_is_not_there(tmp_path):
    (tmp_path / "ray.py").write_text(CLUSTER)
    code = "import json, ray; print(json.dumps(ray.init()))"
    assert told(code, {"CASCADE_OPENRLHF_WITHOUT": "ray"}, tmp_path) == [[], {}]


def test_processes_of_an_engine_wait_for_messages_and_look_for_lost_ones(tmp_path):
    place = tmp_path / "vllm" / "distributed" / "device_communicators"
    place.mkdir(parents=True)
    (place / "shm_broadcast.py").write_text(
        "class SpinCondition:\n    busy_loop_s = 1\n    def wait(self, timeout_ms=None): found.append((self.busy_loop_s, timeout_ms))\nfound = []\n"
    )
    code = """
import json
from vllm.distributed.device_communicators.shm_broadcast import SpinCondition, found
for timeout in (None, 5000, 3):
    SpinCondition().wait(timeout)
print(json.dumps(found))
"""
    assert told(code, {}, tmp_path) == [[0.001, 10], [0.001, 10], [0.001, 3]]


@pytest.mark.slow
def test_weights_go_from_the_trainer_to_every_engine():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = """
import json, sys, sitecustomize, torch
from types import SimpleNamespace
module = SimpleNamespace()
sitecustomize.transfer(module)
group = module.stateless_init_process_group("127.0.0.1", PORT, RANK, 3, None)
tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3) if RANK == 0 else torch.zeros(2, 3, dtype=torch.bfloat16)
group.broadcast(tensor, src=0, stream=None)
print(json.dumps(tensor.tolist()))
"""
    variables = environment({**os.environ, "PYTHONPATH": ""})
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code.replace("PORT", str(port)).replace("RANK", str(rank))],
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    found = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert found == [[[0, 1, 2], [3, 4, 5]]] * 3


def test_an_environment_that_is_finished_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "_run", lambda *command: (_ for _ in ()).throw(AssertionError(command)))
    (tmp_path / "installed").write_text(rehearsal._fingerprint())
    assert install(tmp_path) == tmp_path / "bin" / "python"


def test_an_environment_for_other_versions_is_made_anew_and_marked_last(tmp_path, monkeypatch):
    commands = []

    def run(*command: str) -> None:
        assert not (tmp_path / "installed").exists()
        commands.append(command)

    monkeypatch.setattr(rehearsal, "_run", run)
    (tmp_path / "installed").write_text("of last year")
    install(tmp_path)
    assert (tmp_path / "installed").read_text() == rehearsal._fingerprint()
    assert [command[1:3] for command in commands][:2] == [("-m", "venv"), ("-m", "pip")]
    assert any({"--no-deps", "openrlhf==0.11.2"} <= set(command) for command in commands)


def test_pip_that_fails_is_quoted(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "REQUIREMENTS", tmp_path / "none.txt")
    monkeypatch.setattr(rehearsal, "_fingerprint", lambda version: "any")
    with pytest.raises(TrainerError, match=r"OpenRLHF cannot be installed: .*none\.txt"):
        install(tmp_path / "environment")
    assert not (tmp_path / "environment" / "installed").exists()


def test_another_python_than_openrlhf_is_built_for_is_not_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal.sys, "version_info", (3, 13, 1))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        TrainerError, match=r"built for CPython 3\.11, this is 3\.13, and there is no python3\.11 on PATH"
    ):
        install(tmp_path / "environment")
    assert not (tmp_path / "environment").exists()


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--openrlhf", "0.10.0"]])
def test_the_command_wants_one_folder_and_a_version_that_is_known(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m cascade_core.rehearsal")


def test_the_older_version_comes_with_what_it_asks_for(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(rehearsal, "_run", lambda *command: commands.append(command))
    assert set(rehearsal.ENGINES) == set(VERSIONS) and VERSIONS[0] == rehearsal.NEWEST
    tmp_path.joinpath("installed").write_text(rehearsal._fingerprint())
    assert main([str(tmp_path), "--openrlhf", "0.11.1"]) == 0
    assert any({"--no-deps", "openrlhf==0.11.1", "deepspeed==0.19.5"} <= set(command) for command in commands)
    assert rehearsal.is_installed(tmp_path, "0.11.1") and not rehearsal.is_installed(tmp_path)


def test_the_command_prints_the_python_or_why_there_is_none(tmp_path, monkeypatch, capsys):
    (tmp_path / "installed").write_text(rehearsal._fingerprint())
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'bin' / 'python'}\n"
    monkeypatch.setattr(rehearsal, "REQUIREMENTS", tmp_path / "none.txt")
    monkeypatch.setattr(rehearsal, "_fingerprint", lambda version: "any")
    assert main([str(tmp_path / "other")]) == 1
    assert capsys.readouterr().err.startswith("cascade: OpenRLHF cannot be installed")
