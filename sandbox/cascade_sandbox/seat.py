"""A program in a container: `Seat`, which holds one for as long as it works, and `DockerSession`, which takes another when it fails.

Both are a client's; the keeper only hears of a container that it should make anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cascade_sandbox.contract import Input, Limits, Program, Result, Session
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.languages import Language
from cascade_sandbox.lease import Lease, Lines
from cascade_sandbox.slot import Lost, Slot

ATTEMPTS = 2
"""How often something is tried, each time in another container, before the sandbox counts as failed."""

Found = TypeVar("Found")


class Seat:
    """A program that is open in a leased container. A context manager; left with `Lost`, its container is given up.

    Args:
        checked: take only a container that has just answered; for the second attempt.

    Raises:
        Lost: the container failed.
        SandboxError: no container can be had, or the program is too large to be sent.
    """

    def __init__(
        self, lines: Lines, role: str, program: Program, language: Language, limits: Limits, *, checked: bool = False
    ) -> None:
        self.runs = 0
        self._lease = Lease(lines, role, checked=checked)
        self._slot: Slot | None = None
        try:
            self._slot = Slot(self._lease.socket, limits)
            self.compiled = self._slot.open(program, language)
        except BaseException as error:
            self.leave(error)
            raise

    @property
    def slot(self) -> Slot:
        """The connection to its supervisor."""
        if self._slot is None:
            raise SandboxError("this place was given back")
        return self._slot

    def run(self, given: Input) -> Result:
        """One run. Raises as `Slot.run` does."""
        self.runs += 1
        return self.slot.run(given)

    def leave(self, error: BaseException | None = None) -> None:
        """Hangs up and gives the place back; doing so twice is fine."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None
        self._lease.give_back(self.runs, str(error) if isinstance(error, Lost) else "")

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave(error)


class DockerSession(Session):
    """One opened program, in one container after the other should they fail. For one thread at a time.

    Args:
        sit: opens the program in a container.
    """

    def __init__(self, sit: Callable[[], Seat]) -> None:
        self._sit = sit
        self._seat: Seat | None = None
        self._closed = False
        self._compiled = twice(lambda: self._seated().compiled)
        self._leave_if_hopeless()

    @property
    def compiled(self) -> Result | None:
        """See `Session.compiled`."""
        return self._compiled

    def run(self, given: Input = Input()) -> Result:
        """See `Session.run`."""
        if self._closed:
            raise SandboxError("the session is closed")
        if self._compiled is not None and self._compiled.verdict != "ok":
            return self._compiled
        return twice(lambda: self._try(given))

    def _try(self, given: Input) -> Result:
        try:
            return self._seated().run(given)
        except BaseException as error:
            self._leave(error)
            raise

    def _seated(self) -> Seat:
        if self._seat is None:
            self._seat = self._sit()
        return self._seat

    def _leave_if_hopeless(self) -> None:
        if self._compiled is not None and self._compiled.verdict != "ok":
            self._leave()

    def _leave(self, error: BaseException | None = None) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.leave(error)

    def close(self) -> None:
        """See `Session.close`."""
        self._closed = True
        self._leave()


def twice(what: Callable[[], Found]) -> Found:
    """What it finds, tried once more after `Lost`.

    Raises:
        SandboxError: that failed too.
    """
    reasons = []
    for _ in range(ATTEMPTS):
        try:
            return what()
        except Lost as lost:
            reasons.append(str(lost))
    raise SandboxError(f"it could not be run in {ATTEMPTS} containers: {'; then '.join(reasons)}")
