"""Strangers' distributions, made in a temporary folder: `from strangers import publish` (a fixture)."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

Publish = Callable[..., Path]


def environment(site: Path) -> dict[str, str]:
    """The environment of a child process that finds what was published in `site`, and all that this process finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    """`publish(dist, source)` installs a one-module distribution on a path that this test alone sees; gives the folder."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    before = set(sys.modules)

    def install(dist: str, source: str = "", *, entries: str | None = None, version: str = "1.0") -> Path:
        module = dist.replace("-", "_")
        (site / f"{module}.py").write_text(dedent(source))
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n")
        entry = f"[cascade_core]\n{dist.removeprefix('cascade-plugin-')} = {module}\n" if entries is None else entries
        (info / "entry_points.txt").write_text(entry)
        importlib.invalidate_caches()
        return site

    yield install
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(site)):
            del sys.modules[name]
