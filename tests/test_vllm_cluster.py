"""Sampling with vLLM as a job on a cluster, from a machine without the GPUs for it: what is asked comes, and no job is left there."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import STAND_IN, RayCluster
from test_vllm_sampling import HERE, Rig, exam
from test_vllm_sampling import model as model
from test_vllm_sampling import rig as rig

from cascade_core.cli.respondents import vllm_of
from cascade_core.errors import TrainerError
from cascade_core.settings import Engine, Spec
from cascade_core.trainers import openrlhf_guard as guard
from cascade_core.vllm_sampling import Vllm, chosen, gpus
from cascade_core.vllm_sampling.launch import end_earlier, shared

RAY = "http://127.0.0.1:8265"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    made = RayCluster(tmp_path / "ray")
    monkeypatch.setenv("FAKE_RAY", str(made.folder))
    made.start()
    yield made
    made.end()


@pytest.fixture
def engine(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """What `VllmSampler` gets of a spec with a cluster, on a machine of which Ray counts so many GPUs."""

    def made(count: str = "gpus 1") -> dict[str, Any]:
        path = tmp_path / "python"
        path.write_text(f"""#!/bin/sh
case "$1" in
-P) PYTHONPATH="{STAND_IN}" exec {sys.executable} "$@";;
-u) PYTHONPATH="{HERE / "vllm_stand_in"}:$PYTHONPATH" exec {sys.executable} "$@";;
*) echo {count};;
esac
""")
        path.chmod(0o755)
        cluster = Engine(python=str(path), ray=RAY, gpus=8)
        return {"python": str(path), "tensor_parallel_size": 2, "cluster": cluster}

    return made


def test_a_machine_with_too_few_gpus_has_the_cluster_sample(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "kept-to-itself")
    (here,) = rig.all_of(exam())
    assert rig.all_of(exam(), **engine()) == [here]
    (job,) = cluster.jobs()
    told = (job / "submit.json").read_text()
    assert cluster.statuses() == ["SUCCEEDED"] and json.loads(told)["gpus"] == 2 and "kept-to-itself" not in told
    assert job.name.startswith(f"cascade-{rig.folder.name}-sampling-")
    assert rig.is_over() and not (rig.folder / "sampling").exists()


@pytest.mark.parametrize("count", ["gpus 2", "nothing"])
def test_a_machine_that_has_the_gpus_or_does_not_say_so_samples_itself(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]], count: str
) -> None:
    rig.all_of(exam(), **engine(count))
    assert cluster.jobs() == [] and rig.is_over()


def test_an_error_in_the_body_ends_the_job(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_VLLM", "stall 2")
    with pytest.raises(ZeroDivisionError), rig.sampler(exam(), **engine()) as sampler:
        next(sampler.stream(exam(), exam().keys))
        raise ZeroDivisionError
    assert cluster.statuses() == ["STOPPED"] and rig.is_over()
    assert not (rig.folder / "sampling" / "submission.json").exists()


def test_a_job_that_could_not_be_ended_is_ended_before_what_it_answered_is_removed(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_VLLM", "stall 2")
    cluster.hidden = guard.MARK
    with pytest.raises(ZeroDivisionError), rig.sampler(exam(), **engine()) as sampler:
        next(sampler.stream(exam(), exam().keys))
        (cluster.folder / "cut").touch()
        raise ZeroDivisionError
    assert cluster.statuses() == ["RUNNING"]
    (rig.folder / "sampling" / "begun.json").write_text('{"model": "another"}')
    with pytest.raises(TrainerError, match="may still run and cannot be ended"):
        rig.sampler(exam(), **engine())
    (cluster.folder / "cut").unlink()
    rig.sampler(exam(), **engine())
    assert cluster.statuses() == ["STOPPED"] and not (rig.folder / "sampling" / "submission.json").exists()


def test_a_cluster_without_the_gpus_is_told_with_the_setting_that_asks_for_them(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAY_GPUS", "1")
    with pytest.raises(TrainerError) as told:
        rig.all_of(exam(), **engine())
    assert str(told.value) == (
        "sampling with vLLM ended with status 1: too few GPUs: evaluation asks for 2 on one machine"
        f" (evaluation.tensor_parallel_size), and Ray at {RAY} has 2 on 2 machines (1 + 1); see {rig.folder / 'vllm.log'}"
    )
    assert cluster.jobs() == []


def test_a_job_that_waits_for_gpus_is_told_as_that(
    rig: Rig, cluster: RayCluster, engine: Callable[..., dict[str, Any]]
) -> None:
    cluster.is_full = True
    says = f"waits for 2 free GPUs on one machine of the Ray at {RAY}"

    def give_up() -> None:
        last, log = time.monotonic() + 120, rig.folder / "vllm.log"
        while not (log.exists() and says in log.read_text()) and time.monotonic() < last:
            time.sleep(0.05)
        (cluster.jobs()[0] / "status").write_text("FAILED")

    threading.Thread(target=give_up, daemon=True).start()
    with pytest.raises(TrainerError, match=r"1: job \S+ waited for 2 free GPUs on one machine until Ray gave it up"):
        rig.all_of(exam(), **engine())
    assert (rig.folder / "vllm.log").read_text().count(says) == 1


def test_where_nothing_was_begun_nothing_is_ended(tmp_path: Path) -> None:
    end_earlier(Vllm("/no/such/python"), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_job_gets_what_is_vllms_of_our_variables_and_no_key() -> None:
    base = {"VLLM_ATTENTION_BACKEND": "x", "VLLM_API_KEY": "y", "HF_TOKEN": "z", "PATH": "/bin"}
    assert {name for name in shared(base) if name in base} == {"VLLM_ATTENTION_BACKEND"}


def spec(**engine: Any) -> Spec:
    whole = {"name": "one", "trainer": "openrlhf", "model": "./model", "domains": {"math": {}}, "engine": engine}
    return Spec.model_validate({**whole, "stages": [{"name": "s", "domains": "math", "steps": 1}]})


def test_a_cluster_may_sample_where_one_of_its_machines_can_hold_the_model() -> None:
    for engine, may in (
        ({"ray": RAY, "gpus": 8, "tensor_parallel_size": 4}, True),
        ({"ray": RAY, "gpus": 8, "nodes": 2, "tensor_parallel_size": 8}, True),
        ({"ray": RAY, "cpu": True}, False),
        ({"gpus": 8}, False),
    ):
        found = chosen(spec(**engine))
        assert found is not None and (found.cluster is not None) == may
    wide = spec(ray=RAY, gpus=4, nodes=2)
    assert vllm_of("python", 4, wide).cluster == wide.engine
    assert vllm_of("python", 8, wide).cluster is None and vllm_of("python", 1, None).cluster is None


def test_nobody_counts_gpus_where_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cascade_core.trainers.openrlhf_gpus.count", None)  # raises if it were called
    assert gpus.cluster(Vllm()) is None and gpus.place(spec(gpus=8)) == "" and gpus.asked(spec(ray=RAY, cpu=True)) == 0
