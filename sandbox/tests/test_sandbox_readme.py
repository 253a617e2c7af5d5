"""The threat model names tests that there are, for every property."""

import re
from pathlib import Path

from cascade_sandbox.check import PROPERTIES

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
TESTS = {
    name
    for path in Path(__file__).parent.glob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)(?:\[[\w-]+\])?`", README))
    assert len(named) > 20 and named <= TESTS, named - TESTS


def test_every_line_of_the_threat_model_names_a_test() -> None:
    lines = [line for line in README.splitlines() if line.startswith("| to ") or line.startswith("| io_")]
    assert len(lines) > 15 and all("`test_" in line for line in lines)


def test_the_threat_model_has_every_property() -> None:
    named = set(re.findall(r"\[([\w-]+)\]`", README)) | set(re.findall(r"`\[([\w-]+)\]`", README))
    assert named == set(PROPERTIES) - {"pipes"} and "pipe" in README
