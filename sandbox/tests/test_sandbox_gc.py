"""What `cascade sandbox gc` removes, and what it must leave alone."""

import dataclasses
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cascade_sandbox import images, rubbish
from cascade_sandbox.command import app
from cascade_sandbox.engine import Engine
from cascade_sandbox.owner import (
    FOLDER_PREFIX,
    IMAGE_LABEL,
    OWNER_FILE,
    OWNER_LABEL,
    POOL_LABEL,
    Owner,
    owner,
    read_owner,
)
from typer.testing import CliRunner


def dead_owner() -> Owner:
    """A process of this machine that has ended."""
    code = "from cascade_sandbox.owner import owner; print(owner().text)"
    found = read_owner(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert found is not None
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def make(docker_engine: Engine) -> Iterator:
    """Creates containers that are never started, and removes those that are left."""
    import docker

    client = docker.DockerClient(base_url=docker_engine.address)
    image = images.choose(docker_engine)
    names = []

    def create(labels: dict[str, str]) -> str:
        name = f"cascade-sandbox-test-{uuid.uuid4().hex[:10]}"
        client.containers.create(image, ["python3"], name=name, labels=labels)
        names.append(name)
        return name

    yield create
    for name in names:
        docker_engine.remove(name)
    client.close()


def test_this_process_is_not_gone() -> None:
    assert not owner().is_gone


def test_a_process_that_has_ended_is_gone() -> None:
    assert dead_owner().is_gone


def test_a_later_process_with_the_same_number_does_not_count() -> None:
    assert dataclasses.replace(owner(), start=owner().start - 1).is_gone


def test_what_a_zombie_owned_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        theirs = dataclasses.replace(owner(), pid=process.pid, start=int(fields[19]))
        assert not theirs.is_gone
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert theirs.is_gone
    finally:
        process.communicate()


def test_before_the_last_boot_of_this_machine_everything_is_gone() -> None:
    assert dataclasses.replace(owner(), boot="another").is_gone


def test_the_owner_on_another_machine_is_never_gone() -> None:
    assert not dataclasses.replace(dead_owner(), boot="another", host="another").is_gone


def test_the_owner_in_another_namespace_is_never_gone() -> None:
    assert not dataclasses.replace(dead_owner(), namespace="pid:[1]").is_gone


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "7", '{"pid": "1"}', owner().text.replace('"pid":', '"pod":')]
)
def test_what_names_no_owner_is_nobodys_to_remove(text: str) -> None:
    assert read_owner(text) is None


def test_numbers_that_are_texts_are_no_owner() -> None:
    assert read_owner(json.dumps({**json.loads(owner().text), "pid": "1"})) is None


def test_an_owner_survives_being_written_down() -> None:
    assert read_owner(owner().text) == owner()


def test_only_folders_whose_owner_has_ended_are_found(temporary: Path) -> None:
    dead = dead_owner()
    for name, text in (("left", dead.text), ("used", owner().text), ("strange", "{}")):
        folder = temporary / f"{FOLDER_PREFIX}{name}"
        folder.mkdir()
        (folder / OWNER_FILE).write_text(text)
    (temporary / f"{FOLDER_PREFIX}empty").mkdir()
    other = temporary / "other"
    other.mkdir()
    (other / OWNER_FILE).write_text(dead.text)
    (temporary / f"{FOLDER_PREFIX}link").symlink_to(temporary / f"{FOLDER_PREFIX}left")
    assert [path for path in rubbish.folders() if path.parent == temporary] == [temporary / f"{FOLDER_PREFIX}left"]


def test_only_containers_of_ours_whose_owner_has_ended_are_removed(
    docker_engine: Engine, make, temporary: Path
) -> None:
    dead = dead_owner()
    left = make({POOL_LABEL: "a", OWNER_LABEL: dead.text})
    kept = [
        make({POOL_LABEL: "b", OWNER_LABEL: owner().text}),
        make({POOL_LABEL: "c"}),
        make({POOL_LABEL: "d", OWNER_LABEL: "nonsense"}),
        make({OWNER_LABEL: dead.text}),
        make({}),
    ]
    found = rubbish.find(docker_engine)
    assert left in found.containers
    assert not set(kept) & set(found.containers)
    rubbish.remove(docker_engine, dataclasses.replace(found, containers=(left,)))
    rubbish.remove(docker_engine, dataclasses.replace(found, containers=(left,)))
    assert left not in rubbish.find(docker_engine).containers


def test_a_dry_run_removes_nothing(docker_engine: Engine, make, temporary: Path) -> None:
    left = make({POOL_LABEL: "a", OWNER_LABEL: dead_owner().text})
    told = CliRunner().invoke(app(), ["gc", "--dry-run", "--json"])
    assert told.exit_code == 0
    assert json.loads(told.stdout)["removed"] is False
    assert left in json.loads(told.stdout)["containers"]
    assert left in rubbish.find(docker_engine).containers


def test_a_folder_left_by_a_crash_is_removed_by_the_command(docker_engine: Engine, temporary: Path) -> None:
    folder = temporary / f"{FOLDER_PREFIX}left"
    folder.mkdir()
    (folder / OWNER_FILE).write_text(dead_owner().text)
    told = CliRunner().invoke(app(), ["gc"])
    assert f"folder {folder}" in told.stdout
    assert not folder.exists()


def test_images_of_other_versions_are_found_and_current_ones_kept(docker_engine: Engine) -> None:
    import docker

    client = docker.DockerClient(base_url=docker_engine.address)
    old = "cascade-sandbox-python:0000"
    try:
        client.images.get(images.choose(docker_engine)).tag("cascade-sandbox-python", "0000")
        found = rubbish.find(docker_engine, old_images=True)
        assert old in found.images
        assert not {images.name(kind) for kind in images.KINDS} & set(found.images)
        assert not rubbish.find(docker_engine).images
    finally:
        docker_engine.remove_image(old)
        client.close()


def test_the_image_of_a_compiler_is_nobodys_container(docker_engine: Engine) -> None:
    labels = docker_engine.image_labels(images.choose(docker_engine))
    assert labels[IMAGE_LABEL] in images.KINDS
    assert read_owner(labels.get(OWNER_LABEL, "")) is None
