"""The contract of a sandbox: `Program`, `Input`, `Limits`, `Result`, and the two ways to run: `Session` and `Dialogue`.

A program is opened once (compiled, where its language compiles) and then run on as many inputs as the caller likes, each in
a process of its own that knows nothing of the others. What the program did is a `Result` with one of six verdicts; that
the sandbox itself could not run it is `SandboxError`, and never a verdict. Only inputs go in; expected outputs stay with
the caller, who compares.

This module runs nothing and imports only the standard library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, Literal, get_args

Verdict = Literal["ok", "failed", "timeout", "memory", "output", "compile_error"]
"""`ok`: ended with status 0. `failed`: ended otherwise, or by a signal. `timeout`, `memory`, `output`: ended because it used up
its CPU time (or slept for too long), its memory, or the bytes that it may print. `compile_error`: never started."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    `cpu_seconds` decides; it is counted over the process and the children that it waited for. `wall_seconds` counts only time in
    which the process did not wait for a core, so a busy machine does not change verdicts; the default is twice the CPU time and
    one second. `memory_bytes` is address space. `output_bytes` bounds stdout; of stderr only the end is kept. `processes`
    counts threads too.
    """

    cpu_seconds: float = 10.0
    memory_bytes: int = 512 << 20
    output_bytes: int = 16 << 20
    processes: int = 32
    wall_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "memory_bytes", "output_bytes", "processes", "wall_seconds"):
            value = getattr(self, name)
            if not (name == "wall_seconds" and value is None) and not value > 0:
                raise ValueError(f"Limits.{name} must be above 0, found {value!r}")

    @property
    def wall(self) -> float:
        """Seconds of the clock that a run may take, time spent waiting for a core left out."""
        return 2 * self.cpu_seconds + 1 if self.wall_seconds is None else self.wall_seconds


@dataclass(frozen=True)
class Program:
    """Source code in one of the sandbox's languages, and files that lie beside it (names without a slash, read-only to it)."""

    source: str | bytes
    language: str = "python"
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        """The source as the file that is written: UTF-8, lone surrogates replaced."""
        return self.source if isinstance(self.source, bytes) else self.source.encode("utf-8", "replace")


@dataclass(frozen=True)
class Input:
    """What one run gets: standard input, arguments of the command line, files in its working directory."""

    stdin: bytes = b""
    args: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What one run did. `stdout` is whole (up to the limit), `stderr` its last 4 KiB, read as UTF-8 with replacements.

    `exit_code` is negative for a signal, as in `subprocess`; `cpu_seconds` and `wall_seconds` are what it used; `peak_bytes` is the
    most resident memory of one process of it.
    """

    verdict: Verdict
    exit_code: int = 0
    stdout: bytes = b""
    stderr: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_bytes: int = 0

    @property
    def is_limit(self) -> bool:
        """Whether it ended because it used up something."""
        return self.verdict in ("timeout", "memory", "output")


class Session(ABC):
    """One opened program. A context manager; close it as soon as enough is known, and its place is free again."""

    @property
    @abstractmethod
    def compiled(self) -> Result | None:
        """What the compiler said, where there is one; with a `compile_error` every run has that verdict."""

    @abstractmethod
    def run(self, given: Input = Input()) -> Result:
        """Runs the program once, on this input, in a fresh process.

        Raises:
            SandboxError: it could not be run, after one retry in a fresh place.
        """

    @abstractmethod
    def close(self) -> None:
        """Gives the place back; closing twice is fine."""

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class Dialogue:
    """How a conversation between two programs ended: what each did, and what each had said on its standard output."""

    left: Result
    right: Result


class Sandbox(ABC):
    """A place to run programs that nobody trusts. Safe to use from several threads at once.

    `guarantees` names the properties of `check.PROPERTIES` that it claims to hold against a hostile program.
    """

    name: ClassVar[str]
    guarantees: ClassVar[frozenset[str]]

    @abstractmethod
    def languages(self) -> Sequence[str]:
        """The languages whose self-test passed here."""

    @abstractmethod
    def open(self, program: Program, limits: Limits = Limits(), *, private: bool = False) -> Session:
        """Opens a program; waits for a free place. A failure may show in the first run only.

        The first program of a language waits for its self-test, which takes a place of its own: whoever opens one while holding
        another asks for `languages()` first.

        `private` is for programs of the caller's own that hold what the judged programs must not see, such as a special
        judge with the expected output: they run where no judged program ever runs.

        Raises:
            UnknownLanguage: no such language is offered here.
            SandboxError: it could not be opened, after one retry in a fresh place.
        """

    @abstractmethod
    def converse(self, judged: Program, private: Program, limits: Limits = Limits()) -> Dialogue:
        """Runs two programs side by side, the standard output of each being the standard input of the other.

        `judged` is the left one, `private` the right one, which runs where no judged program ever runs: tests that are code, which
        call a solution that they never share a process with. Ends when both have ended; when one has, the other reads
        the end of its input. The limits hold for each; waiting for the other counts against the clock of neither, but
        both together may take no more than the sum of their `wall`.

        Raises:
            SandboxError: they could not be run, after one retry in a fresh place.
        """

    def run(self, program: Program, inputs: Sequence[Input], limits: Limits = Limits()) -> list[Result]:
        """Every input's result, in order."""
        with self.open(program, limits) as session:
            return [session.run(given) for given in inputs]

    @abstractmethod
    def close(self) -> None:
        """Ends what it started; closing twice is fine."""

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
