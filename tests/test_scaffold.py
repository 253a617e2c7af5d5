"""`cascade new`: what it writes passes as it is and is what the document shows; what it must not write it refuses."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from strangers import environment, publish
from typer.testing import CliRunner

from cascade_core import plugins
from cascade_core.cli.app import app
from cascade_core.errors import UsageError
from cascade_core.offers import NAME as DOMAIN_NAME
from cascade_core.scaffold import LONGEST, Package, write

__all__ = ["publish"]

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(?:python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BAD = [
    "",
    "Math",
    "9a",
    "a b",
    "a--b",
    "a-",
    "_a",
    "../a",
    "a/b",
    "a\n",
    "caf\u00e9",
    "\u0661",
    "a.b",
    "a\x00",
    "x" * 41,
]


def new(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["new", *arguments])
    assert done.exit_code == status, done.output
    return done.output


def test_the_document_shows_the_package_as_it_is_written() -> None:
    shown = FENCE.findall((ROOT / "docs/writing-a-domain.md").read_text("utf-8"))
    files = Package("reverse").files()
    wanted = [files[name] for name in ("cascade_plugin_reverse.py", "pyproject.toml", "tests/test_reverse.py")]
    assert shown[:3] == wanted


def test_the_domain_is_one_file_of_few_lines() -> None:
    lines = Package("reverse").files()["cascade_plugin_reverse.py"].splitlines()
    assert len([line for line in lines if line.strip()]) < 40


@pytest.mark.parametrize("name", ["reverse", "task-1_b", "class", "domain", "x" * LONGEST])
def test_a_new_package_is_free_of_lint(name: str, tmp_path: Path) -> None:
    write(Package(name), tmp_path / "new")
    for command in (["check"], ["format", "--check"]):
        for rules in (["--isolated"], ["--config", str(ROOT / "pyproject.toml")]):
            ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", *rules, str(tmp_path / "new")]
            done = subprocess.run(ruff, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout


def test_its_requirement_is_met_by_this_version() -> None:
    project = tomllib.loads(Package("reverse").files()["pyproject.toml"])["project"]
    (needed,) = (Requirement(text) for text in project["dependencies"])
    assert needed.name == "cascade-rl" and needed.specifier.contains(version("cascade-rl"))


def test_a_new_package_passes_its_own_test(publish, tmp_path: Path) -> None:
    package = Package("word-play")
    write(package, tmp_path / "new")
    source = (tmp_path / "new/cascade_plugin_word_play.py").read_text("utf-8")
    site = publish(package.distribution, source)
    run = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(tmp_path / "new")]
    done = subprocess.run(run, env=environment(site), capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_what_was_written_is_told_as_json(tmp_path: Path) -> None:
    folder = tmp_path / "made here"
    import json

    told = json.loads(new("word-play", "--folder", str(folder), "--json"))
    assert told["domain"] == "word-play" and told["folder"] == str(folder)
    assert sorted(told["files"]) == sorted(str(path) for path in folder.rglob("*") if path.is_file())


def test_the_next_step_is_told_with_a_folder_that_a_shell_understands(tmp_path: Path) -> None:
    assert f"cd '{tmp_path}/made here' &&" in new("word-play", "--folder", str(tmp_path / "made here"))


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a domain's name must be small letters"):
        Package(name)


@given(st.from_regex(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", fullmatch=True).filter(lambda name: len(name) <= LONGEST))
def test_a_good_name_makes_a_module_that_compiles_and_offers_it(name: str) -> None:
    package = Package(name)
    files = package.files()
    assert package.module.isidentifier() and DOMAIN_NAME.fullmatch(name)
    compile(files[f"{package.module}.py"], package.module, "exec")
    assert tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]["cascade_core"] == {name: package.module}


def test_a_name_that_an_installed_domain_has_is_refused(tmp_path: Path) -> None:
    said = new("math", "--folder", str(tmp_path / "new"), status=2)
    assert "domain 'math' is offered by cascade-plugin-math" in said and not (tmp_path / "new").exists()


def test_a_name_whose_distribution_is_installed_is_refused_however_it_is_spelt(publish, tmp_path: Path) -> None:
    publish("cascade-plugin-word-play", "raise ImportError")
    plugins.registry.cache_clear()
    try:
        for name in ("word-play", "word_play"):
            said = new(name, "--folder", str(tmp_path / "new"), status=2)
            assert "1.0 is installed already" in said and not (tmp_path / "new").exists()
    finally:
        plugins.registry.cache_clear()


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_what_is_there_is_refused_and_left_alone(kind: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    if kind == "folder":
        there.mkdir()
    elif kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to("nowhere")
    assert "is there already" in new("word-play", "--folder", str(there), status=2)
    assert {path.name for path in tmp_path.rglob("*")} == {"there"}
    assert kind != "file" or there.read_text() == "mine"


def test_a_folder_inside_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "is no folder" in new("word-play", "--folder", str(tmp_path / "no/new"), status=2)


def test_nothing_is_left_of_a_package_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left", "new")))
    with pytest.raises(OSError, match="No space left"):
        write(Package("word-play"), tmp_path / "new")
    assert not (tmp_path / "new").exists()
