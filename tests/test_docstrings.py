"""Docstrings are true: every example in one runs, and so does every command that the help of a command shows."""

import ast
import doctest
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cascade_core.cli.app import app

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT, *sorted(ROOT.glob("plugins/cascade-plugin-*")))
COMMANDS: Any = typer.main.get_command(app)


def modules() -> list[str]:
    """The modules of the core and of the plugins that have an example."""
    return [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for folder in FOLDERS
        for package in folder.glob("cascade_*")
        for path in sorted(package.rglob("*.py"))
        if ">>> " in path.read_text("utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in FOLDERS:  # the plugin that is not installed with the others too
        monkeypatch.syspath_prepend(folder)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.FAIL_FAST)
    assert result.attempted > 0 and result.failed == 0


def test_what_an_author_calls_first_has_an_example() -> None:
    assert {"domain", "advantages", "estimates", "scaffold", "sources"} <= {
        name.partition(".")[2] for name in modules() if name.startswith("cascade_core.")
    }


@pytest.mark.parametrize("name", COMMANDS.commands)
def test_the_help_of_a_command_shows_an_example_that_its_options_allow(name: str) -> None:
    command = COMMANDS.commands[name]
    shown = re.findall(r"\[bold\]cascade (.+?)\[/bold\]", command.help or "")
    assert shown, f"cascade {name}: no example"
    for line in shown:
        words = shlex.split(line.partition(" > ")[0])
        other = COMMANDS.commands[words[0]]
        with other.make_context(words[0], words[1:]) as context:  # parses, and calls nothing
            assert context.args == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_indented_example_of_a_module_is_python(folder: Path) -> None:
    for path in folder.glob("cascade_*/**/*.py"):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for block in re.findall(r"(?:^    .*\n?|^\n)+", text, re.MULTILINE):
            if "import " in block or "def " in block:
                compile(re.sub(r"^    ", "", block, flags=re.MULTILINE), str(path), "exec")
