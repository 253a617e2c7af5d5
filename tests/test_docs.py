"""What the documents show is true: specs load, Python runs, commands and links exist, tables are in step."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
from strangers import environment, publish

from cascade_core import plugins
from cascade_core.cli.app import app
from cascade_core.document import parse
from cascade_core.reference import markdown
from cascade_core.settings import Spec
from cascade_core.spec import check, load

__all__ = ["publish"]

ROOT = Path(__file__).parents[1]
DOCS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")})
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(*languages: str) -> list[Any]:
    """(document, text) of every fenced block of the languages."""
    return [
        pytest.param(path, text, id=f"{path.relative_to(ROOT)}-{number}")
        for path in DOCS
        for number, (language, text) in enumerate(FENCE.findall(path.read_text("utf-8")))
        if language in languages
    ]


def whole(data: dict[str, Any]) -> dict[str, Any]:
    """A part of a spec, with the rest around it that it takes for granted."""
    data = {"name": "part", "model": "owner/model", **data}
    named = {name for stage in data.get("stages", []) for name in shares(stage)}
    data["domains"] = {**{name: {} for name in named}, **(data.get("domains") or {})} or {"toy": {}}
    return {"stages": [{"name": "s", "domains": next(iter(data["domains"])), "steps": 10}], **data}


def shares(stage: dict[str, Any]) -> list[str]:
    domains = stage.get("domains", [])
    return [domains] if isinstance(domains, str) else list(domains)


@pytest.mark.parametrize(("path", "text"), blocks("yaml"))
def test_a_spec_in_a_document_is_accepted(path: Path, text: str) -> None:
    data = parse(text, str(path)).data
    stage_keys = set(data) - set(Spec.model_fields)
    if stage_keys:  # the inside of a stage
        data = {"stages": [{"name": "s", "domains": "toy", "steps": 100, **data}]}
    assert Spec.model_validate(whole(data))


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.yaml")), ids=lambda path: path.name)
def test_an_example_is_accepted(path: Path) -> None:
    assert load(path)


@pytest.mark.parametrize(("path", "text"), blocks("sh", "console", "bash"))
def test_a_command_in_a_document_exists_with_its_options(path: Path, text: str) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["cascade"]:
            assert_command(words[1:])


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_in_running_text_exists(path: Path) -> None:
    for command in re.findall(r"`cascade ([a-z][^`…]*)`", FENCE.sub("", path.read_text("utf-8"))):
        if command.split()[0] != "greet":  # the example of a plugin's command
            assert_command(shlex.split(command.partition(">")[0]))


def assert_command(words: list[str]) -> None:
    group: Any = typer.main.get_command(app)
    words = [word for word in words if word != "--debug"]
    assert words[0] in group.list_commands(None), f"cascade {words[0]}"
    _, command, rest = group.resolve_command(typer.Context(group), words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, words
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word for word in words[1:] if word.startswith("-")} <= known, words


def test_every_command_and_option_is_told_in_the_document_of_the_command_line() -> None:
    text = (ROOT / "docs/cli.md").read_text("utf-8")
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        assert f"`cascade {name}" in text
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or f"`{parameter.opts[0]}" in text, (name, parameter.opts)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_a_heading_that_exist(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not heading or heading in headings(target), link


def headings(path: Path) -> set[str]:
    """The anchors of a Markdown file's headings."""
    found = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in found}


def test_the_reference_of_the_spec_is_in_step_with_the_settings() -> None:
    text = (ROOT / "docs/spec.md").read_text("utf-8")
    table = text.partition("<!-- settings: begin -->\n")[2].partition("<!-- settings: end -->")[0]
    assert table == markdown(), "put the output of `cascade schema --markdown` between the marks in docs/spec.md"


@pytest.fixture
def reverse(publish) -> Path:
    """The domain of docs/writing-a-domain.md, installed from its own two files: the first of their languages."""
    found = dict(reversed(FENCE.findall((ROOT / "docs/writing-a-domain.md").read_text("utf-8"))))
    project = tomllib.loads(found["toml"])["project"]
    ((name, module),) = project["entry-points"]["cascade_core"].items()
    assert module == project["name"].replace("-", "_")
    site = publish(
        project["name"], found["python"], entries=f"[cascade_core]\n{name} = {module}\n", version=project["version"]
    )
    plugins.registry.cache_clear()
    yield site
    plugins.registry.cache_clear()


@pytest.mark.parametrize("name", ["plugins.md", "resources.md", "trackers.md", "writing-a-domain.md"])
def test_python_in_a_document_runs(name: str, reverse: Path) -> None:
    module = type(sys)(f"document_{Path(name).stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    try:
        for language, text in FENCE.findall((ROOT / "docs" / name).read_text("utf-8")):
            if language == "python":
                exec(compile(text, name, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]


def cascade(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from cascade_core.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment(site), capture_output=True, text=True, timeout=300
    )


def test_the_documented_domain_is_found_and_passes_the_check(reverse: Path) -> None:
    assert "domain reverse" in cascade(reverse, "plugins").stdout
    for options in ([], ["--option", "length=8"]):
        done = cascade(reverse, "check", "reverse", *options)
        assert done.returncode == 0, done.stdout + done.stderr
    refused = cascade(reverse, "check", "reverse", "--option", "length=3")
    assert refused.returncode == 2 and "length must lie in 4..40" in refused.stderr


def test_the_documented_domains_spec_passes_with_its_plugin(reverse: Path, tmp_path: Path) -> None:
    spec = next(
        text
        for language, text in FENCE.findall((ROOT / "docs/writing-a-domain.md").read_text("utf-8"))
        if language == "yaml"
    )
    path = tmp_path / "spec.yaml"
    path.write_text(spec)
    assert check(load(path), path)["reverse"].length == 4
