"""One run of a program: start it, collect what it says, end it when it used up something, and say what it did.

Standard output is kept whole up to its limit, of standard errors the end. A run is over when its first process is: what that left
behind is killed, whether or not it still holds a pipe. The verdict rests on CPU time as the kernel counted it,
and on the clock only for a program that does not use it.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from typing import NamedTuple, Optional

from . import family
from .bounds import Bounds
from .child import NOT_STARTED, Child, Command, Failure, start
from .clock import Clock
from .errors import Trouble
from .loop import Loop
from .memory import Oom
from .pressure import Memory

CHUNK = 1 << 16
STDERR_BYTES = 4096
SIGNS_OF_MEMORY = (b"MemoryError", b"std::bad_alloc")


class Outcome(NamedTuple):
    """What a run did; the fields are those of `cascade_sandbox.Result`.

    `peak_bytes` is never below the few MiB that the supervisor had when it forked: the kernel counts them too.
    """

    verdict: str
    exit_code: int
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    stdout: bytes
    stderr: bytes


class Place(NamedTuple):
    """What every run of a supervisor shares."""

    loop: Loop
    oom: Oom
    memory: Memory
    killer: int


class Execution:
    """A program that runs. `Talk` extends it by a standard input that arrives in pieces."""

    def __init__(self, command: Command, place: Place, given: Optional[bytes]) -> None:
        self.command = command
        self.bounds: Bounds = command.bounds
        self.place = place
        self.loop = place.loop
        self._stdout: list[bytes] = []
        self.stdout_bytes = 0
        self._stderr = b""
        self._is_open = True
        self._stopped: Optional[str] = None
        self._ended = False
        self.clock = Clock(command.bounds)
        self._memory = place.memory.watch(2 * len(given or b""))  # what came, and the file that it lies in
        self.child: Child = start(command, given)

    def run(self) -> Outcome:
        """Waits for the end; whatever happens, nothing of the program is left.

        Raises:
            Trouble: it could not be started, or the machine is overloaded.
            Broken: something of it would not die.
            Gone: the client hung up meanwhile.
        """
        self._listen()
        try:
            while not self._ended and not self._stopped:
                self.loop.step(min(self.clock.until, self._memory.until))
                if not self._ended and self._memory.is_up():
                    self.stop("memory")
                if not self._ended and self.clock.is_up(self.child.pid):
                    self.stop("timeout")
            return self._finish()
        finally:
            self._clean_up()

    def stop(self, verdict: str) -> None:
        """Ends it, with this verdict."""
        self._stopped = self._stopped or verdict

    def take(self, data: bytes) -> None:
        """What to do with a piece of standard output."""
        self._stdout.append(data)

    def finish_output(self) -> None:
        """Called when standard output is closed."""

    def _listen(self) -> None:
        self.loop.add(self.child.stdout, select.POLLIN, self._on_stdout)
        self.loop.add(self.child.stderr, select.POLLIN, self._on_stderr)
        self.loop.add(self.child.pidfd, select.POLLIN, self._notice_end)

    def _on_stdout(self, events: int) -> None:
        self._read_stdout()

    def _on_stderr(self, events: int) -> None:
        self._read_stderr()

    def _notice_end(self, events: int) -> None:
        self._ended = True

    def _read_stdout(self) -> bool:
        """Reads one piece; whether there may be more."""
        data = self._read(self.child.stdout)
        if not data:
            if data is not None and self._is_open:
                self._is_open = False
                self.loop.remove(self.child.stdout)
                self.finish_output()
            return False
        room = self.bounds.output_bytes - self.stdout_bytes
        if len(data) > room:
            self.stop("output")
            data = data[:room]
        self.stdout_bytes += len(data)
        if data:
            self.take(data)
        return room > 0

    def _read_stderr(self) -> bool:
        data = self._read(self.child.stderr)
        if not data:
            if data is not None:
                self.loop.remove(self.child.stderr)
            return False
        self._stderr = (self._stderr + data)[-STDERR_BYTES:]
        return True

    @staticmethod
    def _read(fd: int) -> Optional[bytes]:
        """A piece, nothing at the end, None when there is nothing yet."""
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            return None

    def _finish(self) -> Outcome:
        """Ends and reaps everything, and reads what is left in the pipes."""
        if not self._ended:
            self.child.kill()
        _, status, usage = os.wait4(self.child.pid, 0)
        wall_seconds = self.clock.elapsed
        self.child.pid = 0
        family.end(self.command.uid, self.place.killer)
        while self._stopped != "output" and self._read_stdout():
            pass
        while self._read_stderr():
            pass
        exit_code, cpu_seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        verdict = self._verdict(exit_code, cpu_seconds)
        failure = self.child.failure_to_start() if exit_code == NOT_STARTED else None
        if failure is not None:
            verdict = self._not_started(failure)
        stdout = b"".join(self._stdout)
        return Outcome(verdict, exit_code, cpu_seconds, wall_seconds, usage.ru_maxrss << 10, stdout, self._stderr)

    def _not_started(self, failure: Failure) -> str:
        """The verdict on a program that the kernel refused to start, if that is about the program."""
        if failure.number == errno.ENOMEM:
            return "memory"
        if failure.at_exec and not self.command.is_ours and failure.number != errno.E2BIG:
            return "failed"
        raise Trouble(f"the program could not be started: {failure.text}")

    def _clean_up(self) -> None:
        child = self.child
        for fd in (child.stdin, child.stdout, child.stderr, child.pidfd):
            self.loop.remove(fd)
        try:
            if child.pid:
                child.kill()
                os.waitpid(child.pid, 0)
                child.pid = 0
                family.end(self.command.uid, self.place.killer)
        finally:
            child.close()

    def _verdict(self, exit_code: int, cpu_seconds: float) -> str:
        if self._stopped:
            return self._stopped
        if cpu_seconds > self.bounds.cpu_seconds or exit_code == -signal.SIGXCPU:
            return "timeout"
        if exit_code == 0:
            return "ok"
        if exit_code == -signal.SIGKILL and self.place.oom.killed_since_last():
            return "memory"
        return "memory" if any(sign in self._stderr for sign in SIGNS_OF_MEMORY) else "failed"
