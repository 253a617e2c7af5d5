"""Writes cascade_core/trainers/openrlhf_flags.json: the flags of OpenRLHF's programs, from the published wheels.

    python tools/openrlhf_flags.py

Wheels are fetched by pip into a temporary folder, read as archives, and neither installed nor imported. `drills/` compares what
is recorded with what this reads.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from cascade_core.trainers.openrlhf_parser import PROGRAMS, RECORDED, VERSIONS, parse


def wheel(version: str, folder: Path) -> Path:
    """The wheel of a version, fetched into `folder`; its tag says CPython 3.11 on Linux, whatever runs this."""
    asked = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux1_x86_64"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *asked, "--dest", str(folder), f"openrlhf=={version}"], check=True)
    (found,) = folder.glob(f"openrlhf-{version}-*.whl")
    return found


def sources(path: Path) -> dict[str, str]:
    """The source of every program in a wheel, by its name."""
    with zipfile.ZipFile(path) as archive:
        names = {Path(name).stem: name for name in archive.namelist() if "openrlhf/cli/" in name}
        return {program: archive.read(names[program]).decode("utf-8") for program in PROGRAMS.values()}


def table(programs: dict[str, str]) -> dict[str, Any]:
    """The flags of every program, as they are recorded."""
    return {name: {key: flag.json() for key, flag in parse(source).items()} for name, source in programs.items()}


def text(tables: dict[str, Any]) -> str:
    """JSON with a flag on every line, so that a difference between two versions can be read."""
    versions = []
    for version, programs in tables.items():
        parts = []
        for program, found in programs.items():
            lines = ",\n".join(f"   {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
            parts.append(f"  {json.dumps(program)}: {{\n{lines}\n  }}")
        versions.append(f" {json.dumps(version)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(versions) + "\n}\n"


def main() -> None:
    """Fetches, reads and writes."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {version: table(sources(wheel(version, Path(folder)))) for version in VERSIONS}
    RECORDED.write_text(text(tables), "utf-8")


if __name__ == "__main__":
    main()
