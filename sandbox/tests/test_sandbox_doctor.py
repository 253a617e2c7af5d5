"""`cascade sandbox doctor`: every finding says what was found, and how to get what is missing."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox import doctor, images
from cascade_sandbox.command import app
from cascade_sandbox.engine import Engine, EngineError, addresses
from typer.testing import CliRunner

HEALTHY = {
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "MemoryLimit": True,
    "PidsLimit": True,
    "SwapLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=seccomp,profile=builtin"],
    "DockerRootDir": "/var/lib/docker",
    "Driver": "overlay2",
}


class Told(Engine):
    """An engine that says what a test wants, and has no images."""

    def __init__(self, info: dict[str, Any], built: bool = False) -> None:
        super().__init__("unix:///nowhere/docker.sock")
        self._info, self._built = info, built

    def version(self) -> dict[str, Any]:
        return {"Version": "5.0", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}

    def info(self) -> dict[str, Any]:
        return self._info

    def image(self, name: str) -> str | None:
        return "id" if self._built else None

    def containers(self, label: str) -> list[Any]:
        return []


def finding(what: str, engine: Engine) -> doctor.Finding:
    return next(one for one in doctor.examine(engine) if one.what == what)


def test_a_machine_that_can_run_programs_is_healthy(docker_engine: Engine) -> None:
    told = CliRunner().invoke(app(), ["doctor", "--json"])
    report = json.loads(told.stdout)
    assert told.exit_code == 0, report
    assert report["ok"] is True
    last = report["findings"][-1]
    assert (last["what"], last["ok"], last["found"]) == ("trial run", True, "a program ran in a container")


def test_without_an_engine_the_status_is_1_and_the_way_to_one_is_told() -> None:
    told = CliRunner().invoke(app(), ["doctor", "--engine", "unix:///nowhere/docker.sock"])
    assert told.exit_code == 1
    assert "missing engine" in " ".join(told.stdout.split())
    assert "apt-get install docker.io" in told.stdout


def test_an_engine_that_answers_nonsense_is_missing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        path = tmp_path / "s"
        listener.bind(str(path))
        engine = Engine(f"unix://{path}")
    assert not finding("engine", engine).ok


def test_a_remote_engine_cannot_be_used_and_that_is_said() -> None:
    found = doctor._socket(Engine("tcp://elsewhere:2375"))
    assert not found.ok
    assert "the sockets of containers must be on this machine" in found.remedy


def test_no_right_to_use_the_socket_names_the_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.access", lambda *args: False)
    path = tmp_path / "docker.sock"
    path.touch()
    found = doctor._socket(Engine(f"unix://{path}"))
    assert not found.ok
    assert f"usermod -aG {path.group()} $USER" in found.remedy


def test_podman_is_told_from_docker() -> None:
    assert finding("engine", Told(HEALTHY)).found.startswith("podman 5.0, API 1.41")


def test_missing_images_come_with_the_command_that_makes_them() -> None:
    found = finding("image python", Told(HEALTHY))
    assert (found.ok, found.needed, found.remedy) == (False, True, "cascade sandbox build python")


def test_with_one_image_the_other_is_a_note() -> None:
    engine = Told(HEALTHY)
    engine.image = lambda name: "id" if name == images.name("python") else None  # type: ignore[method-assign]
    found = finding("image cpp", engine)
    assert (found.ok, found.needed) == (False, False)


@pytest.mark.parametrize(
    ("change", "what", "needed"),
    [
        ({"MemoryLimit": False}, "memory limit", True),
        ({"PidsLimit": False}, "limit of processes", True),
        ({"CpuCfsQuota": False}, "CPU limit", True),
        ({"SwapLimit": False}, "swap limit", False),
        ({"CgroupDriver": "none"}, "cgroup", True),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "seccomp", False),
        ({"SecurityOptions": None}, "seccomp", False),
    ],
)
def test_what_an_engine_cannot_enforce_is_found(change: dict[str, Any], what: str, needed: bool) -> None:
    found = finding(what, Told({**HEALTHY, **change}))
    assert (found.ok, found.needed) == (False, needed)
    assert found.remedy


def test_no_trial_is_made_where_something_is_missing() -> None:
    assert "trial run" not in [one.what for one in doctor.examine(Told(HEALTHY))]


def test_a_trial_that_fails_is_told_with_its_reason() -> None:
    assert "trial run" not in [one.what for one in doctor.examine(Told(HEALTHY, built=True))]
    found = doctor._trial(Told(HEALTHY, built=True))
    assert not found.ok
    assert "/nowhere/docker.sock" in found.found


def test_docker_host_alone_counts_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere.sock")
    assert addresses() == ["unix:///elsewhere.sock"]


def test_the_socket_of_a_rootless_podman_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "podman").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "podman/podman.sock"))
        assert f"unix://{tmp_path}/podman/podman.sock" in addresses()


def test_without_the_sdk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(EngineError, match=r"docker SDK is missing.*cascade-rl\[sandbox\]"):
        Engine().version()
