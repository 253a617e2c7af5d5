"""`check_sandbox`: both sandboxes hold what they claim, and one that holds nothing is found out."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from cascade_sandbox import Dialogue, Input, Limits, Program, Result, Sandbox, SandboxError, Session, docker_sandbox
from cascade_sandbox.attacks import ATTACKS
from cascade_sandbox.check import PROPERTIES, check_sandbox
from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.engine import Engine
from cascade_sandbox.process import ProcessSandbox

LIMITS, NOTHING = Limits(), Input()
HARMFUL = {attack.about for attack in ATTACKS if attack.harmful}


@pytest.fixture(scope="module")
def docker(docker_engine: Engine) -> Iterator[DockerSandbox]:
    with docker_sandbox(slots=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(1) as sandbox:
        yield sandbox


@pytest.mark.drill
@pytest.mark.parametrize("name", PROPERTIES)
def test_the_docker_sandbox_holds(docker: DockerSandbox, name: str) -> None:
    report = check_sandbox(docker, [name])
    assert report.ok and all(finding.claimed and finding.tried for finding in report.findings), f"\n{report}"


@pytest.mark.drill
@pytest.mark.parametrize("name", sorted(ProcessSandbox.guarantees))
def test_the_process_sandbox_holds(process: ProcessSandbox, name: str) -> None:
    report = check_sandbox(process, [name])
    assert report.ok and all(finding.claimed and finding.tried for finding in report.findings), f"\n{report}"


def test_the_process_sandbox_lists_what_it_does_not_claim(process: ProcessSandbox) -> None:
    report = check_sandbox(process, set(PROPERTIES) - process.guarantees)
    assert report.ok and not any(finding.claimed for finding in report.findings)
    assert {finding.about for finding in report.findings if not finding.tried} == HARMFUL - process.guarantees
    seen = {finding.about for finding in report.findings if finding.seen}
    assert {"files", "program", "private"} <= seen
    assert "files: everywhere" in str(report) and "not claimed" in str(report) and "not tried" in str(report)


def test_a_container_is_not_made_anew_for_any_of_it(docker: DockerSandbox) -> None:
    check_sandbox(docker, ["supervisor", "memory-of-all"])
    assert docker.status()["recreated"] == {}


class Bare(Sandbox):
    """What many write first: `subprocess.run`. It claims what it does not hold."""

    name: ClassVar[str] = "bare"
    guarantees: ClassVar[frozenset[str]] = frozenset({"files", "kernel", "private", "privileges", "program"})

    def languages(self) -> Sequence[str]:
        return ["python"]

    def open(self, program: Program, limits: Limits = LIMITS, *, private: bool = False) -> Session:
        return BareSession(program)

    def converse(self, judged: Program, private: Program, limits: Limits = LIMITS) -> Dialogue:
        raise SandboxError("nobody talks here")

    def close(self) -> None:
        pass


class BareSession(Session):
    def __init__(self, program: Program) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "main.py"
        self._path.write_bytes(program.bytes)

    @property
    def compiled(self) -> None:
        return None

    def run(self, given: Input = NOTHING) -> Result:
        command = [sys.executable, str(self._path)]
        done = subprocess.run(command, input=given.stdin, capture_output=True, cwd=self._folder.name, timeout=60)
        return Result("failed" if done.returncode else "ok", done.returncode, done.stdout, done.stderr.decode())

    def close(self) -> None:
        self._folder.cleanup()


@pytest.mark.parametrize("name", sorted(Bare.guarantees))
def test_a_sandbox_that_does_not_hold_what_it_claims_is_found_out(name: str) -> None:
    report = check_sandbox(Bare(), [name])
    assert not report.ok and f"{report.failures[0].about}: " in str(report) and "fails" in str(report)


def test_a_sandbox_that_runs_nothing_is_not_checked() -> None:
    class Broken(Bare):
        def open(self, program: Program, limits: Limits = LIMITS, *, private: bool = False) -> Session:
            raise SandboxError("no place")

    with pytest.raises(SandboxError, match="bare runs no honest program: .*no place"):
        check_sandbox(Broken())


def test_properties_have_names_that_are_known() -> None:
    class Proud(Bare):
        guarantees: ClassVar[frozenset[str]] = frozenset({"everything"})

    for sandbox, only in ((Proud(), []), (Bare(), ["everything"])):
        with pytest.raises(ValueError, match="everything is no property of a sandbox, which are cpu, "):
            check_sandbox(sandbox, only)


def test_every_property_is_attacked() -> None:
    assert {attack.about for attack in ATTACKS} | {"private"} == set(PROPERTIES)
