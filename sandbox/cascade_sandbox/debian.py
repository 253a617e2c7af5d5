"""Packages of Debian and Ubuntu for an image, without a registry of images and without root: `add_packages`.

apt itself resolves what a package needs, against an empty list of installed ones, with lists and downloads in a folder of ours:
nothing is installed here, and signatures are checked as for any package. The packages' files go straight into a `Rootfs`; their
scripts never run. Documentation, translations, sanitizers and link-time optimisation are left out.

Debian and Ubuntu only; elsewhere `add_packages` says what else can be done.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.owner import temporary_folder
from cascade_sandbox.rootfs import Rootfs

_TOOLS = ("apt-get", "dpkg-deb")
_OUT = re.compile(
    r"usr/share/(doc|man|info|locale|lintian|bug|gdb|gcc)/.*"
    r"|.*/(lto1|lto-wrapper|lto-dump|g\+\+-mapper-server|gprofng|gp-[a-z-]+|lib[at]san[^/]*|lib(lsan|ubsan|hwasan|gprofng)[^/]*)"
)
_NEEDED = re.compile(r"(.*/)?lto-wrapper")  # the driver of gcc looks for it even where it is not used


def release() -> str:
    """The distribution and its version as /etc/os-release has them, such as `debian 12`; empty where there is none."""
    try:
        lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    except OSError:
        return ""
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return " ".join(found.get(key, "").strip('"') for key in ("ID", "VERSION_ID")).strip()


def is_available() -> bool:
    """Whether this machine has apt and dpkg."""
    return all(shutil.which(name) for name in _TOOLS)


def check_host() -> None:
    """Raises `SandboxError` where they are missing."""
    if not is_available():
        raise SandboxError(
            f"{' and '.join(_TOOLS)} are needed: the image with g++ is made of packages of Debian or Ubuntu, found {release() or 'neither'}; "
            "cascade sandbox build --dockerfile prints a recipe for docker build"
        )


def add_packages(rootfs: Rootfs, names: Sequence[str], say: Callable[[str], None]) -> int:
    """Adds the files of these packages and of all that they need; returns how many packages that were.

    Raises:
        SandboxError: apt is missing or fails; its last words are in the message.
    """
    check_host()
    with temporary_folder() as root:
        say("reading the lists of packages")
        _apt(root, "update")
        say(f"fetching {' '.join(names)} and what it needs")
        _apt(root, "install", "--yes", "--download-only", "--no-install-recommends", *names)
        packages = sorted((root / "cache/archives").glob("*.deb"))
        say(f"unpacking {len(packages)} packages")
        for package in packages:
            _unpack(package, rootfs)
        return len(packages)


def _apt(root: Path, *command: str) -> None:
    for name in ("lists/partial", "cache/archives/partial"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    places = {
        "Dir::State": root,
        "Dir::State::lists": root / "lists",
        "Dir::State::status": root / "status",
        "Dir::State::extended_states": root / "extended_states",
        "Dir::Cache": root / "cache",
    }
    options = [part for key, value in places.items() for part in ("-o", f"{key}={value}")]
    options += ["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]
    options += ["-o", "APT::Update::Error-Mode=any", "-o", "APT::Update::Post-Invoke-Success::="]
    try:
        done = subprocess.run(
            ["apt-get", "--quiet=2", *options, *command],
            capture_output=True,
            text=True,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"apt-get {command[0]} failed: {error}") from error
    if done.returncode:
        words = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise SandboxError(f"apt-get {command[0]} failed with status {done.returncode}: {words}")


def _unpack(package: Path, rootfs: Rootfs) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    name = member.name.removeprefix("./")
                    if not _OUT.fullmatch(name) or _NEEDED.fullmatch(name):
                        rootfs.member(member, archive)
        except tarfile.TarError as error:
            process.kill()
            raise SandboxError(f"{package.name} cannot be unpacked: {error}") from error
    if process.returncode:
        raise SandboxError(f"{package.name} cannot be unpacked: dpkg-deb ended with status {process.returncode}")
