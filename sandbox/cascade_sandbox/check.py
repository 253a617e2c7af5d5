"""Does a sandbox hold what it claims? `check_sandbox`, for anyone who writes one: hostile programs for each property.

Each hostile program (`attacks.py`) is followed in the same sandbox by an honest one, which must get its right answer in time, and by one
that looks for what the hostile one left. Give it a sandbox with one place, so that they follow each other there:

    with docker_sandbox(slots=1) as sandbox:
        report = check_sandbox(sandbox)
    print(report)
    assert report.ok

It sees a sandbox from inside alone: what a program does to the machine outside, and nobody inside notices, is for the
sandbox's own tests. It finds the attacks it knows; that it finds nothing proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from cascade_sandbox.attacks import ATTACKS, HONEST, KEEPER, PROPERTIES, REMAINS, SEEKER, Attack
from cascade_sandbox.contract import Input, Limits, Program, Result, Sandbox
from cascade_sandbox.errors import SandboxError

__all__ = ["PROPERTIES", "Finding", "Report", "check_sandbox"]

LIMITS = Limits(cpu_seconds=1.0, wall_seconds=4.0, memory_bytes=256 << 20, output_bytes=1 << 20, processes=24)
"""Of the hostile programs; small, so that a check is short."""

HONEST_LIMITS = Limits(cpu_seconds=2.0, wall_seconds=8.0, memory_bytes=256 << 20, output_bytes=1 << 20, processes=24)

PATIENCE_SECONDS = 120.0
"""How long one hostile program may take, waiting for a core included."""


@dataclass(frozen=True)
class Finding:
    """What one attack on a property (`about`) did. `seen` says what went wrong, and is empty if nothing did; `tried` is False where it was not run."""

    about: str
    attack: str
    claimed: bool
    tried: bool
    seen: str

    @property
    def is_failure(self) -> bool:
        """Whether the sandbox broke its word."""
        return self.claimed and bool(self.seen)


@dataclass(frozen=True)
class Report:
    """All findings of a check; as a text, a table."""

    sandbox: str
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> list[Finding]:
        """Those in which the sandbox broke its word."""
        return [finding for finding in self.findings if finding.is_failure]

    @property
    def ok(self) -> bool:
        """Whether it holds all that it claims."""
        return not self.failures

    def __str__(self) -> str:
        rows = [(f"{one.about}: {one.attack}", _verdict(one), one.seen) for one in self.findings]
        width = max((len(row[0]) for row in rows), default=0)
        return "\n".join(
            [f"sandbox {self.sandbox}", *(f"{row[0]:{width}}  {row[1]:11}  {row[2]}".rstrip() for row in rows)]
        )


def check_sandbox(sandbox: Sandbox, only: Collection[str] = ()) -> Report:
    """Tries every attack on every property, or on those in `only`; some minutes.

    What the sandbox does not claim is tried too, unless that could hurt the machine, and reported as not claimed.

    Args:
        sandbox: one with a single place; it must offer Python. What is tried may leave it unusable where it fails.

    Raises:
        ValueError: `only`, or the sandbox's `guarantees`, has a name that is no property.
        SandboxError: it does not even run an honest program.
    """
    unknown = sorted({*only, *sandbox.guarantees} - PROPERTIES.keys())
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is no property of a sandbox, which are {', '.join(PROPERTIES)}")
    if trouble := _honest(sandbox):
        raise SandboxError(f"sandbox {sandbox.name} runs no honest program: {trouble}")
    wanted = set(only or PROPERTIES)
    findings = [_tried(sandbox, attack) for attack in ATTACKS if attack.about in wanted]
    if "private" in wanted:
        findings.append(_found(sandbox, "private", "a secret", _search(sandbox)))
    return Report(sandbox.name, tuple(findings))


def _verdict(finding: Finding) -> str:
    if not finding.claimed:
        return "not claimed" if finding.tried else "not tried"
    return "fails" if finding.seen else "holds"


def _found(sandbox: Sandbox, name: str, attack: str, seen: str, tried: bool = True) -> Finding:
    return Finding(name, attack, name in sandbox.guarantees, tried, seen)


def _tried(sandbox: Sandbox, attack: Attack) -> Finding:
    """Runs an attack and what must follow it."""
    if attack.harmful and attack.about not in sandbox.guarantees:
        return _found(sandbox, attack.about, attack.name, "", tried=False)
    key = int.from_bytes(os.urandom(3), "big") | 1 << 28
    seen = [_attack(sandbox, attack, key), _honest(sandbox), _remains(sandbox, key)]
    return _found(sandbox, attack.about, attack.name, "; ".join(filter(None, seen)))


def _attack(sandbox: Sandbox, attack: Attack, key: int) -> str:
    """What is wrong with how a hostile program ended, and with an honest run of the same program after it."""
    begin = time.monotonic()
    try:
        with sandbox.open(_marked(HONEST + attack.source, key), LIMITS) as session:
            result = session.run(Input(b"attack\n"))
            seconds = time.monotonic() - begin
            after = session.run(Input(b"41\n"))
    except SandboxError as error:
        return f"the sandbox failed: {error}"
    seen = [_breach(result), _answer(after, "a later run of its program")]
    if attack.verdicts and result.verdict not in attack.verdicts:
        said = result.stderr.strip().splitlines()[-1:]
        seen.append(f"it ended with {result.verdict} {said} instead of {' or '.join(attack.verdicts)}")
    if len(result.stdout) > LIMITS.output_bytes:
        seen.append(f"{len(result.stdout)} bytes of output, {LIMITS.output_bytes} are allowed")
    if seconds > PATIENCE_SECONDS:
        seen.append(f"it took {seconds:.0f} seconds")
    return "; ".join(filter(None, seen))


def _marked(source: str, key: int) -> Program:
    """The program with a mark of its own, so that nothing is blamed for what another left."""
    return Program(source.replace("MARK", f"cascade-left-{key}").replace("KEY", str(key)))


def _breach(result: Result) -> str:
    """What a hostile program got that it must not get."""
    lines = [line for line in result.stdout.decode("utf-8", "replace").splitlines() if line.startswith("BREACH")]
    return "; ".join(lines[:3])


def _honest(sandbox: Sandbox) -> str:
    """What is wrong with an honest program's answer."""
    try:
        (result,) = sandbox.run(Program("print(int(input()) + 1)"), [Input(b"41\n")], HONEST_LIMITS)
    except SandboxError as error:
        return f"the sandbox failed on an honest program: {error}"
    return _answer(result, "an honest program")


def _answer(result: Result, whose: str) -> str:
    if result.verdict == "ok" and result.stdout == b"42\n":
        return ""
    return f"{whose} ended with {result.verdict}, output {result.stdout[:40]!r}, {result.stderr[-200:].strip()}"


def _remains(sandbox: Sandbox, key: int) -> str:
    """What is left of the hostile program."""
    try:
        (result,) = sandbox.run(_marked(REMAINS, key), [Input()], HONEST_LIMITS)
    except SandboxError as error:
        return f"the sandbox failed when asked what is left: {error}"
    if result.verdict != "ok":
        return f"no room is left: {result.verdict}, {result.stderr[-200:].strip()}"
    left = result.stdout.decode("utf-8", "replace").strip()
    return f"left behind: {left}" if left else ""


def _search(sandbox: Sandbox) -> str:
    """Whether a judged program finds what a private one that runs beside it knows."""
    salt = os.urandom(8).hex()
    judged, private = (Program(source.replace("SALT", salt)) for source in (SEEKER, KEEPER))
    try:
        talk = sandbox.converse(judged, private, HONEST_LIMITS)
    except SandboxError as error:
        return f"the sandbox failed: {error}"
    if b"end" not in talk.left.stdout:
        return f"the search ended with {talk.left.verdict}, {talk.left.stderr[-200:].strip()}"
    return _breach(talk.left)
