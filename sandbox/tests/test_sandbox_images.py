"""Images: what goes into their file system, how they are called, and that none is ever pulled."""

import filecmp
import io
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cascade_sandbox import SandboxError, debian, images, python_files
from cascade_sandbox.command import app
from cascade_sandbox.engine import Engine, Shape
from cascade_sandbox.rootfs import Rootfs
from cascade_sandbox.testing import require_engine
from typer.testing import CliRunner


def written(path: Path, fill: Callable[[Rootfs], None]) -> dict[str, tarfile.TarInfo]:
    """The members of the archive that `fill` makes."""
    with Rootfs(path) as rootfs:
        fill(rootfs)
    with tarfile.open(path) as archive:
        return {member.name: member for member in archive}


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def from_package(rootfs: Rootfs, *members: tarfile.TarInfo) -> None:
    """Adds them as `debian.py` adds those of a package."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for one in members:
            archive.addfile(one, io.BytesIO(b"x" * one.size))
    data.seek(0)
    with tarfile.open(fileobj=data, mode="r|") as archive:
        for one in archive:
            rootfs.member(one, archive)


def test_files_of_merged_folders_land_under_usr(tmp_path: Path) -> None:
    found = written(tmp_path / "a.tar", lambda rootfs: rootfs.data("/lib/x86_64/libc.so", b""))
    assert found["usr/lib/x86_64/libc.so"].isreg()
    assert (found["lib"].linkname, found["bin"].linkname) == ("usr/lib", "usr/bin")


def test_a_package_cannot_replace_a_merged_folder(tmp_path: Path) -> None:
    folder = member("./lib", type=tarfile.DIRTYPE, mode=0o755)
    found = written(tmp_path / "a.tar", lambda rootfs: from_package(rootfs, folder))
    assert found["lib"].issym()


def test_the_first_file_of_a_name_stays(tmp_path: Path) -> None:
    def fill(rootfs: Rootfs) -> None:
        rootfs.data("lib/a", b"first")
        rootfs.data("usr/lib/a", b"second one")

    assert written(tmp_path / "a.tar", fill)["usr/lib/a"].size == 5


@pytest.mark.parametrize("name", ["../escape", "/../escape", "a/../../escape", "./../escape"])
def test_a_name_that_leads_out_is_left_out(name: str, tmp_path: Path) -> None:
    found = written(tmp_path / "a.tar", lambda rootfs: from_package(rootfs, member(name, size=1)))
    assert not [one for one in found if "escape" in one]


def test_nothing_is_setuid_and_devices_are_left_out(tmp_path: Path) -> None:
    su = member("./usr/bin/su", size=1, mode=0o4755)
    disk = member("./dev/sda", type=tarfile.BLKTYPE)
    found = written(tmp_path / "a.tar", lambda rootfs: from_package(rootfs, su, disk))
    assert found["usr/bin/su"].mode == 0o755
    assert "dev/sda" not in found


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python that runs this, as an archive."""
    path = tmp_path_factory.mktemp("packed") / "rootfs.tar"
    written(path, python_files.add_python)
    return path


def test_the_packed_python_has_what_it_needs_and_no_installed_packages(packed: Path) -> None:
    with tarfile.open(packed) as archive:
        found = {one.name: one for one in archive}
    library = f"usr/{sys.platlibdir}/{python_files.VERSION}"
    for name in (
        f"usr/bin/{python_files.VERSION}",
        "usr/bin/sh",
        "usr/bin/rm",
        f"{library}/os.py",
        "etc/passwd",
        "inside",
        "w",
    ):
        assert name in found
    assert any(name.endswith(f"json/__pycache__/decoder.{sys.implementation.cache_tag}.pyc") for name in found)
    assert any("libc.so" in name for name in found)
    assert not [name for name in found if name.startswith(f"{library}/site-packages/") or "/test/" in name]
    assert {(one.uid, one.mtime) for one in found.values()} == {(0, 0)}


def test_the_same_python_is_packed_to_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    written(tmp_path / "again.tar", python_files.add_python)
    assert filecmp.cmp(packed, tmp_path / "again.tar", shallow=False)


def test_a_name_changes_with_the_version_of_python_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {kind: images.name(kind) for kind in images.KINDS}
    assert len(set(before.values())) == len(images.KINDS)
    assert before == {kind: images.name(kind) for kind in images.KINDS}
    monkeypatch.setattr(sys, "version", "3.99")
    assert not set(before.values()) & {images.name(kind) for kind in images.KINDS}


def test_a_host_without_apt_is_told_what_else_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        Rootfs(tmp_path / "a.tar") as rootfs,
        pytest.raises(SandboxError, match="apt-get and dpkg-deb are needed.*--dockerfile"),
    ):
        debian.add_packages(rootfs, ["g++"], print)


def test_a_host_that_is_not_linux_is_told_what_else_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with (
        Rootfs(tmp_path / "a.tar") as rootfs,
        pytest.raises(SandboxError, match="found cpython on darwin; .*--dockerfile"),
    ):
        python_files.add_python(rootfs)


def test_a_failure_of_apt_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: no such host' >&2\nexit 100\n")
    apt.chmod(0o755)
    (tmp_path / "dpkg-deb").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with (
        Rootfs(tmp_path / "a.tar") as rootfs,
        pytest.raises(SandboxError, match="update failed with status 100: E: no such host"),
    ):
        debian.add_packages(rootfs, ["g++"], lambda line: None)


def test_the_recipe_for_docker_build_names_the_image_and_compiles_the_header() -> None:
    told = CliRunner().invoke(app(), ["build", "cpp", "--dockerfile"]).stdout
    assert told.startswith(f"# docker build -t {images.name('cpp')} -\nFROM python:{sys.version_info.major}.")
    assert "-std=gnu++20" in told and "stdc++.h" in told


def test_what_is_built_already_is_left_as_it_is(docker_engine: Engine) -> None:
    kind = docker_engine.image_labels(images.choose(docker_engine))["io.cascade-rl.sandbox.image"]
    before = docker_engine.image(images.name(kind))
    assert images.build(docker_engine, kind, pytest.fail) is False
    assert docker_engine.image(images.name(kind)) == before


def test_an_image_of_another_kind_is_refused(docker_engine: Engine) -> None:
    with pytest.raises(SandboxError, match="no image 'rust', only python and cpp"):
        images.build(docker_engine, "rust", print)


def test_a_missing_image_is_an_error_at_once_and_nothing_is_pulled(docker_engine: Engine) -> None:
    begin = time.monotonic()
    with pytest.raises(
        SandboxError, match="hello-world:latest is missing here, and is never pulled; cascade sandbox build"
    ):
        docker_engine.start("cascade-sandbox-test-pull", "hello-world:latest", ["true"], {}, {}, Shape())
    assert time.monotonic() - begin < 10
    assert docker_engine.image("hello-world:latest") is None


def test_the_image_of_python_is_built_without_a_network(docker_engine: Engine, packed: Path) -> None:
    import docker

    name = "cascade-sandbox-test:python"
    client = docker.DockerClient(base_url=docker_engine.address)
    code = "import ssl, sqlite3, ctypes, bz2, lzma, decimal, zoneinfo, multiprocessing, os; print(os.system('rm -f /nothing'))"
    try:
        docker_engine.load(packed, name, "io.cascade-rl.sandbox.image=python")
        command = ["python3", "-I", "-S", "-E", "-c", code]
        assert client.containers.run(name, command, remove=True, network_mode="none") == b"0\n"
    finally:
        docker_engine.remove_image(name)
        client.close()


def test_the_compiler_of_the_image_uses_the_header_that_was_compiled_in_advance() -> None:
    import docker

    engine = require_engine("cpp")
    client = docker.DockerClient(base_url=engine.address)
    compiling = "for v in 17 20; do echo '#include <bits/stdc++.h>' | g++ -std=gnu++$v -O2 -w -H -x c++ -c -o /dev/null - 2>&1; done"
    try:
        said = client.containers.run(images.name("cpp"), ["/bin/sh", "-c", compiling], remove=True, network_mode="none")
    finally:
        client.close()
    assert [line.partition("stdc++.h.gch/")[2] for line in said.decode().splitlines() if line.startswith("!")] == [
        "c++17.gch",
        "c++20.gch",
    ]
