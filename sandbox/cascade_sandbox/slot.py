"""A client's side of a container: `Slot`, one session with the supervisor inside, over the socket that was leased.

Whatever is not an answer of the protocol (`inside/session.py` has it) is `Lost`: the container is given up, and the caller tries once
more in another. What comes back is checked field by field, since a hostile program may have taken the supervisor over.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from cascade_sandbox.contract import VERDICTS, Input, Limits, Program, Result
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside import wire
from cascade_sandbox.inside.wire import Frame, Header, WireError, receive
from cascade_sandbox.languages import Language

PATIENCE_SECONDS = 60.0
"""How much longer than its supervisor's own backstop a run may take."""

_COMPILE_SECONDS = 1000.0


class Lost(Exception):
    """The container, its supervisor or the connection failed: says nothing about the program."""


class Slot:
    """One session with a supervisor.

    Raises:
        Lost: nothing answers there.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.limits = limits
        self._is_opening = False
        self.seconds = 10 * limits.wall + 60 + PATIENCE_SECONDS
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.settimeout(PATIENCE_SECONDS)
            self.socket.connect(path)
        except OSError as error:
            self.socket.close()
            raise Lost(f"its supervisor does not answer: {error}") from error

    def open(self, program: Program, language: Language) -> Result | None:
        """Sends the program; what the compiler said, where there is one.

        Where there is none, nobody waits for the supervisor: its answer is read before that of the first run.

        Raises:
            Lost: the sandbox failed.
            SandboxError: the program is too large to be sent.
        """
        limits = self.limits
        header = {
            "op": "open",
            "language": language.wire,
            "limits": {
                "cpu_seconds": limits.cpu_seconds,
                "wall_seconds": limits.wall,
                "memory_bytes": limits.memory_bytes,
                "output_bytes": limits.output_bytes,
                "processes": limits.processes,
            },
            "files": list(program.files),
        }
        self.socket.settimeout(_COMPILE_SECONDS if language.compile else PATIENCE_SECONDS)
        self.send(header, [program.bytes, *program.files.values()])
        if not language.compile:
            self._is_opening = True
            return None
        answer, blobs = self._answer("ready")
        compiled = answer.get("compiled")
        return None if compiled is None else read_result(compiled, blobs)

    def run(self, given: Input) -> Result:
        """One run.

        Raises:
            Lost: the sandbox failed.
            SandboxError: the input is too large to be sent.
        """
        self.socket.settimeout(self.seconds)
        header = {"op": "run", "args": list(given.args), "files": list(given.files)}
        try:
            self.send(header, [given.stdin, *given.files.values()])
        finally:
            self.settle()  # why it hung up, if it did
        return read_result(*self._answer("result"))

    def settle(self) -> None:
        """Insists that the program is open, should that not have been said yet.

        Raises:
            Lost: it is not.
        """
        if self._is_opening:
            self._answer("ready")
            self._is_opening = False

    def send(self, header: Header, blobs: list[bytes]) -> None:
        """Sends a frame. Raises as `run` does."""
        try:
            wire.send(self.socket, header, blobs)
        except (WireError, ValueError, TypeError) as error:
            raise SandboxError(f"this cannot be sent into a sandbox: {error}") from error
        except OSError as error:
            raise Lost(f"the connection broke: {error}") from error

    def _answer(self, expected: str) -> Frame:
        try:
            answer, back = receive(self.socket)
        except TimeoutError as error:
            raise Lost(f"its supervisor did not answer within {self.socket.gettimeout():.0f} seconds") from error
        except (OSError, EOFError, WireError) as error:
            raise Lost(f"the connection broke: {error}") from error
        check(answer, expected)
        return answer, back

    def close(self) -> None:
        """Hangs up: the supervisor ends what runs and cleans up."""
        self.socket.close()


def check(answer: Header, *expected: str) -> None:
    """Raises `Lost` for an answer that is none of those expected."""
    op = answer.get("op")
    if op == "error":
        raise Lost(f"its supervisor says: {str(answer.get('reason'))[:500]}")
    if op not in expected:
        raise Lost(f"its supervisor answers {str(op)[:40]!r} instead of {expected[0]!r}")


def read_result(header: Mapping[str, Any], blobs: list[bytes]) -> Result:
    """What one run did.

    Raises:
        Lost: this is no result.
    """
    verdict, code = header.get("verdict"), header.get("exit_code")
    cpu, wall, peak = (_number(header.get(name)) for name in ("cpu_seconds", "wall_seconds", "peak_bytes"))
    if verdict not in VERDICTS or type(code) is not int or min(cpu, wall, peak) < 0 or len(blobs) != 2:
        raise Lost("its supervisor sent a result that is none")
    return Result(verdict, code, blobs[0], blobs[1].decode("utf-8", "replace"), cpu, wall, int(peak))


def _number(value: object) -> float:
    """The number, if it is one that a run can have; else -1."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1 << 60 else -1.0
