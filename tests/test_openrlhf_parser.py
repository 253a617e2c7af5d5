"""The flags of OpenRLHF's programs as they are read from source, installed or recorded."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from cascade_core.errors import SpecError
from cascade_core.settings import Engine
from cascade_core.trainers import openrlhf_engine, openrlhf_parser
from cascade_core.trainers.openrlhf_parser import PROGRAMS, VERSIONS, Flag, flags, parse, recorded

SOURCE = """
import ray, torch
raise RuntimeError("imported")
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--a.count", type=int, default=int(1e8), help="h")
    parser.add_argument("--a.word", type=str, default="x_%s" % now(), choices=["x", "y"])
    parser.add_argument("--a.pair", nargs=2, default=(-10, 10), type=float)
    parser.add_argument("--a.many", type=str, nargs="*", default="all")
    parser.add_argument("--a.endless", type=float, default=float("inf"))
    for prefix in ("p", "q"):
        parser.add_argument(f"--{prefix}.lr", type=float, default=1e-6 if prefix == "p" else 9e-6)
        parser.add_argument(f"--{prefix}.on", action="store_true", default=True)
        parser.add_argument(f"--{prefix}.off", dest=f"{prefix}.on", action="store_false")
    parser.add_argument("positional")
    other("--no", add_argument="--no")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of an installed OpenRLHF 0.11.2, whose programs are `SOURCE` and whose import fails."""
    package = tmp_path / "openrlhf"
    (package / "cli").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    for program in PROGRAMS.values():
        (package / "cli" / f"{program}.py").write_text(SOURCE)
    info = tmp_path / "openrlhf-0.11.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openrlhf\nVersion: 0.11.2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_every_kind_of_flag_is_read_without_running_anything() -> None:
    assert parse(SOURCE) == {
        "a.count": Flag("int", default=100_000_000),
        "a.word": Flag("str", choices=("x", "y")),
        "a.pair": Flag("float", nargs=2, default=[-10, 10]),
        "a.many": Flag("str", nargs="*", default="all"),
        "a.endless": Flag("float"),
        "p.lr": Flag("float", default=1e-6),
        "p.on": Flag("bool", stores=True, default=True),
        "p.off": Flag("bool", stores=False, default=True),
        "q.lr": Flag("float", default=9e-6),
        "q.on": Flag("bool", stores=True, default=True),
        "q.off": Flag("bool", stores=False, default=True),
    }


def test_the_flags_of_an_installed_openrlhf_are_read_from_its_source(installed: Path) -> None:
    known = flags("rl")
    assert (known.version, known.is_installed, set(known.flags)) == ("0.11.2", True, set(parse(SOURCE)))
    assert "openrlhf" not in sys.modules


@pytest.fixture
def other(installed: Path, tmp_path: Path) -> Engine:
    """By an interpreter of an environment that has that OpenRLHF."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={installed} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return Engine(python=str(path))


def test_the_flags_of_another_environment_are_those_of_its_own_source(other: Engine) -> None:
    known = openrlhf_engine.known(other, "rl")
    assert (known.version, known.is_installed, set(known.flags)) == ("0.11.2", True, set(parse(SOURCE)))


@pytest.mark.parametrize("damage", ["def (", None])
def test_a_source_of_another_environment_that_cannot_be_read_is_as_its_version_was_recorded(
    other: Engine, installed: Path, damage: str | None
) -> None:
    path = installed / "openrlhf" / "cli" / "train_ppo_ray.py"
    path.write_text(damage) if damage else path.unlink()
    assert openrlhf_engine.known(other, "rl") == recorded("rl", "0.11.2")


def test_another_version_is_refused_with_what_to_install(installed: Path) -> None:
    info = installed / "openrlhf-0.11.2.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openrlhf\nVersion: 0.12.0\n")
    with pytest.raises(SpecError, match=r"knows OpenRLHF 0.11.2 and 0.11.1, and 0.12.0 is installed"):
        flags("rl")


@pytest.mark.parametrize("text", ["def (", "x = 1\n", "\ud800"])
def test_a_damaged_source_is_named(installed: Path, text: str) -> None:
    path = installed / "openrlhf" / "cli" / "train_sft.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SpecError, match=r"train_sft\.py: "):
        flags("sft")


def test_without_an_installed_openrlhf_the_recorded_flags_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openrlhf_parser, "package", lambda: None)
    known = flags("rl")
    assert (known.version, known.is_installed) == (VERSIONS[0], False)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "least"), [("rl", 160), ("sft", 70), ("reward_model", 70)])
def test_a_recorded_program_has_its_flags_and_each_default_is_of_its_kind(version: str, kind: str, least: int) -> None:
    known = recorded(kind, version)
    assert len(known.flags) > least
    kinds = {"int": int, "float": (int, float), "str": str, "bool": bool}
    for name, flag in known.flags.items():
        items = flag.default if isinstance(flag.default, list) else [flag.default]
        assert all(item is None or isinstance(item, kinds[flag.type]) for item in items), name
        assert (flag.stores is not None) == (flag.type == "bool"), name


def test_the_two_versions_differ_where_they_are_known_to() -> None:
    new, old = (set(recorded("rl", version).flags) for version in VERSIONS)
    head = "algo.advantage.is_correction_"
    assert new - old == {f"{head}level", f"{head}mode", f"{head}gating", "actor.loss_agg_mode"}
    assert old - new == {f"{head}enable", f"{head}type"}


def test_what_is_recorded_is_read_back_as_it_was() -> None:
    for entries in json.loads(openrlhf_parser.RECORDED.read_text("utf-8")).values():
        for program, table in entries.items():
            (kind,) = [kind for kind, name in PROGRAMS.items() if name == program]
            assert table in [{name: flag.json() for name, flag in recorded(kind, v).flags.items()} for v in VERSIONS]


def test_argparse_agrees_with_what_was_read() -> None:
    parser = argparse.ArgumentParser()
    body = SOURCE.partition("ArgumentParser()\n")[2].partition('    parser.add_argument("positional")')[0]
    exec("now = lambda: 'z'\nif True:\n" + body, {"parser": parser})
    read = parse(SOURCE)
    for action in parser._actions[1:]:
        flag = read[action.option_strings[0][2:]]
        assert (action.nargs, tuple(action.choices or ())) == (0 if flag.type == "bool" else flag.nargs, flag.choices)
