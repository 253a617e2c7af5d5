"""A sandbox without any container: `ProcessSandbox`. It stops accidents, not attackers.

Programs run on this machine, as the user who runs this, in processes of their own with the limits of `Limits`, a filter of system
calls, a clean environment and a folder of their own, started by the same supervisor that runs inside containers. When a run is
over, what it started is found and killed, and its folder removed.

What it does not do: there is no other user and no namespace, so that a hostile program reads and changes every file that this user may,
uses the network, reads what runs beside it, and can kill its own supervisor (which becomes a `SandboxError`). The number of
processes is not limited, because that limit counts all processes of a user. `private` programs get a supervisor that
never ran a judged one, and are no safer for it. Linux only.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Sequence
from typing import ClassVar, Literal

from cascade_sandbox.contract import Dialogue, Limits, Program, Sandbox, Session
from cascade_sandbox.conversation import converse
from cascade_sandbox.errors import SandboxError, UnknownLanguage
from cascade_sandbox.helper import Pool
from cascade_sandbox.languages import LANGUAGES, Language, trouble
from cascade_sandbox.seat import DockerSession, Seat, twice
from cascade_sandbox.slot import Lost, Slot

Role = Literal["judged", "private"]


class ProcessSandbox(Sandbox):
    """Runs programs as ordinary processes of this machine.

    Args:
        slots: programs that may be open at a time, and as many private ones; by default one for each core.
        check: whether languages must have passed their self-test; the self-test itself has no choice.

    Raises:
        SandboxError: this is not Linux.
    """

    name: ClassVar[str] = "process"
    guarantees: ClassVar[frozenset[str]] = frozenset({"cpu", "wall", "memory", "output", "pipes", "orphans", "folders"})

    def __init__(self, slots: int | None = None, *, check: bool = True) -> None:
        if sys.platform != "linux":
            raise SandboxError(f"the process sandbox needs Linux, found {sys.platform}")
        if slots is not None and slots < 1:
            raise ValueError(f"slots must be at least 1, found {slots}")
        count = slots or os.cpu_count() or 1
        self._pools: dict[Role, Pool] = {"judged": Pool(count), "private": Pool(count)}
        self._check = check
        self._lock = threading.Lock()
        self._troubles: dict[str, str] = {}

    def languages(self) -> Sequence[str]:
        """The languages whose self-test passed here."""
        return [name for name in LANGUAGES if not self._trouble(name)]

    def open(self, program: Program, limits: Limits = Limits(), *, private: bool = False) -> Session:
        """See `Sandbox.open`."""
        language = self._language(program.language)
        pool = self._pools["private" if private else "judged"]
        return DockerSession(lambda: _HereSeat(pool, program, language, limits))

    def converse(self, judged: Program, private: Program, limits: Limits = Limits()) -> Dialogue:
        """See `Sandbox.converse`."""
        languages = self._language(judged.language), self._language(private.language)

        def once() -> Dialogue:
            with (
                _HereSeat(self._pools["judged"], judged, languages[0], limits) as left,
                _HereSeat(self._pools["private"], private, languages[1], limits) as right,
            ):
                return converse(left, right)

        return twice(once)

    def close(self) -> None:
        """See `Sandbox.close`."""
        for pool in self._pools.values():
            pool.close()

    def _language(self, name: str) -> Language:
        if name not in LANGUAGES:
            raise UnknownLanguage(f"there is no language {name!r}, only {', '.join(LANGUAGES)}")
        if self._check and self._trouble(name):
            raise UnknownLanguage(f"language {name!r} is not offered here: {self._trouble(name)}")
        return _here(LANGUAGES[name])

    def _trouble(self, name: str) -> str:
        """Why a language is not offered, empty where it is; its self-test runs until it has passed or failed once."""
        with self._lock:
            if name not in self._troubles:
                try:
                    with ProcessSandbox(1, check=False) as tester:
                        self._troubles[name] = trouble(name, tester)
                except SandboxError as error:  # it could not be run, perhaps only now: not remembered
                    return str(error)
            return self._troubles[name]


class _HereSeat(Seat):
    """A program that is open in a helper.

    Raises:
        Lost: the helper failed.
        SandboxError: none can be had, or the program is too large to be sent.
    """

    def __init__(self, pool: Pool, program: Program, language: Language, limits: Limits) -> None:
        self.runs = 0
        self._pool = pool
        self._slot = None
        self._helper = pool.take()
        self._is_given_back = False
        try:
            self._slot = Slot(self._helper.socket, limits)
            self.compiled = self._slot.open(program, language)
        except BaseException as error:
            self.leave(error)
            raise

    def leave(self, error: BaseException | None = None) -> None:
        """Hangs up and gives the helper back; doing so twice is fine."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None
        if not self._is_given_back:
            self._is_given_back = True
            self._pool.give_back(self._helper, broken=isinstance(error, Lost))


def _here(language: Language) -> Language:
    """The language with this interpreter as its Python: a machine without a container has no other that is sure to be there."""
    run = tuple(sys.executable if word == "python3" else word for word in language.run)
    return dataclasses.replace(language, run=run)
