"""The way of a stranger: a new package becomes a wheel, is installed beside ours into a clean environment, and is trained on."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("cascade", "_editable", "__editable__")

SPEC = """
name: strange
model: {init: {hidden_size: 16, layers: 1, heads: 2, context: 48}}
domains: {word-play: {length: 4}}
stages:
  - {name: sft, kind: sft, domains: word-play, steps: 4, batch_size: 4, optim: {lr: 1e-3}}
  - name: rl
    domains: word-play
    steps: 2
    rollout: {prompts_per_step: 2, samples_per_prompt: 2, max_response_tokens: 4}
scoring: {workers: 1}
evaluation: {limit: 4, sampling: {max_response_tokens: 4}}
"""


def called(*command: object, cwd: Path, **environment: str) -> str:
    """Runs a command that knows nothing of this process's environment of Python; gives its standard output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    env = {**inherited, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheels(package: Path, folder: Path) -> Path:
    """Wheels of the checkout's distributions and of the package; hatchling comes from the registry where it is not here."""
    tools = folder / "tools"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    if importlib.util.find_spec("hatchling") is None:
        called(*pip, "install", "--target", tools, "hatchling>=1.25", cwd=folder)
    sources = (ROOT, *sorted(ROOT.glob("plugins/cascade-plugin-*")), package)
    options = ("--no-deps", "--no-build-isolation", "--no-cache-dir", "-w", folder / "dist")
    called(*pip, "wheel", *options, *sources, cwd=folder, PYTHONPATH=str(tools))
    return folder / "dist"


def clean_environment(folder: Path) -> Path:
    """A new virtual environment with what third parties made, by links to where this process has it, and nothing of ours."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    links = folder / "third-party" / "site-packages"  # dill takes what lies elsewhere for a user's own code
    links.mkdir(parents=True)
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for item in Path(place).iterdir():
            if not item.name.startswith(OURS) and item.suffix != ".pth" and item.name != "__pycache__":
                (links / item.name).symlink_to(item)
    (site,) = (folder / "venv").glob("lib/python3.*/site-packages")
    (site / "third-party.pth").write_text(f"{links}\n")
    return folder / "venv" / "bin"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The new package, and the programs of the environment where its wheel is installed with all it says it needs."""
    folder = tmp_path_factory.mktemp("stranger")
    package = folder / "cascade-plugin-word-play"
    called(sys.executable, "-c", "from cascade_core.cli import main; main()", "new", "word-play", cwd=folder)
    dist, programs = wheels(package, folder), clean_environment(folder)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", programs / "python")
    wanted = ("cascade-plugin-word-play[dev]", "cascade-plugin-math", "cascade-plugin-if", "cascade-plugin-code")
    called(*pip, "install", "--no-index", "--find-links", dist, *wanted, cwd=folder)
    return package, programs


@pytest.mark.slow
def test_the_core_comes_from_the_wheel_whole(stranger: tuple[Path, Path]) -> None:
    package, programs = stranger
    code = "import cascade_core, sys; print(cascade_core.__file__); print(*sys.path, sep='\\n')"
    file, *path = called(programs / "python", "-c", code, cwd=package.parent).splitlines()
    assert Path(file).is_relative_to(programs.parent)
    assert not any(Path(place).is_relative_to(ROOT / part) for place in path for part in ("cascade_core", "plugins"))
    assert str(ROOT) not in path
    here, there = (
        {str(item.relative_to(folder)) for item in folder.rglob("*") if item.is_file() and item.suffix != ".pyc"}
        for folder in (ROOT / "cascade_core", Path(file).parent)
    )
    assert {name for name in here if not name.startswith(".") and "/." not in name} == there


@pytest.mark.slow
def test_a_strangers_domain_is_found_checked_and_scores(stranger: tuple[Path, Path], tmp_path: Path) -> None:
    package, programs = stranger
    found = json.loads(called(programs / "cascade", "plugins", "--json", cwd=tmp_path))["plugins"]
    assert not any(plugin["error"] for plugin in found)
    offered = {plugin["distribution"]: (plugin["version"], plugin["offers"]) for plugin in found}
    assert offered["cascade-plugin-word-play"] == ("0.1.0", {"domain": ["word-play"]})
    assert offered["cascade-rl"][0] == version("cascade-rl")
    assert {"cascade-plugin-math", "cascade-plugin-if", "cascade-plugin-code"} <= set(offered)
    checked = json.loads(called(programs / "cascade", "check", "word-play", "--json", cwd=tmp_path))
    assert checked["failed"] == 0 and len(checked["findings"]) >= 14
    assert "1 passed" in called(programs / "python", "-m", "pytest", "-p", "no:cacheprovider", package, cwd=tmp_path)

    task = {"domain": "word-play", "id": "abcd", "prompt": "Write backwards: abcd", "answer": "dcba"}
    rows = [{**task, "response": said} for said in ("dcba", "abcd")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    called(programs / "cascade", "score", "rows.jsonl", "-o", "scored.jsonl", "--workers", 1, cwd=tmp_path)
    scored = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert [row["score"]["value"] for row in scored] == [1.0, 0.0]


@pytest.mark.slow
def test_a_model_is_trained_on_a_strangers_domain(stranger: tuple[Path, Path], tmp_path: Path) -> None:
    _, programs = stranger
    (tmp_path / "spec.yaml").write_text(SPEC)
    told = json.loads(called(programs / "cascade", "run", "spec.yaml", "--folder", "run", "--json", cwd=tmp_path))
    assert [stage["stage"] for stage in told["stages"]] == ["00-start", "01-sft", "02-rl"]
    events = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    steps = [event["stage"] for event in events if event["kind"] == "step"]
    assert steps == ["01-sft"] * 4 + ["02-rl"] * 2
    assert "cascade-plugin-word-play" in (tmp_path / "run/lock.json").read_text()
    assert (tmp_path / "run/report.html").stat().st_size > 10_000
