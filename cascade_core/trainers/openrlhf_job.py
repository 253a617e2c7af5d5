"""The OpenRLHF job of one stage: started under its guard, its output followed, ended with everything that came of it.

    with Running(command, environment, log, record) as job:
        while job.poll() is None:
            for line in job.lines(): ...

`record` is a file that says which job is or was running, so that the next start finds what a killed run left behind:
`end_old` waits for the guard of that job to finish its work, and ends what is left. Nothing here knows what the job does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO
from uuid import uuid4

from cascade_core.errors import TrainerError
from cascade_core.guard import release
from cascade_core.rows import write_json
from cascade_core.trainers import openrlhf_guard as guard

_END_SECONDS = 40.0  # more than the guard gives the job
_MOST_LINE = 65_536


class Running:
    """A job that runs while the body does.

    Args:
        command: the program and its arguments.
        environment: all variables of the job.
        log: where its output is appended.
        record: where it is written which job runs.
        token: by which its processes are found; a new one by default.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, record: Path, token: str = ""
    ) -> None:
        self._command, self._log, self._record = list(command), log, record
        self.token = token or uuid4().hex
        self._environment = {**environment, guard.MARK: self.token}
        self._guard: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._begun = b""

    def __enter__(self) -> Running:
        for path in (self._log, self._record):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as output:
            start = output.tell()
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, self.token, *self._command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )
        try:
            write_json(self._record, {"token": self.token, "guard": self._guard.pid})
            self._output = self._log.open("rb")
        except OSError:
            self.end()
            raise
        self._output.seek(start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._output is not None:
            self._output.close()

    def poll(self) -> int | None:
        """The job's status once it has ended, 128 + signal where one ended it."""
        assert self._guard is not None
        return self._guard.poll()

    def lines(self) -> Iterator[str]:
        """The lines that were written since the last call; of an unfinished one, what is there once it is long."""
        assert self._output is not None
        data = self._begun + self._output.read()
        *whole, self._begun = data.replace(b"\r", b"\n").split(b"\n")
        if len(self._begun) > _MOST_LINE:
            whole, self._begun = [*whole, self._begun], b""
        yield from (line.decode("utf-8", "replace") for line in whole if line)

    def end(self) -> None:
        """Ends the job and everything that came of it; safe to repeat."""
        if self._guard is None:
            return
        release(self._guard, _END_SECONDS)
        guard.kill(guard.leftovers(self.token))


def end_old(record: Path) -> int:
    """Ends what is left of the job that `record` names; how many processes that were.

    Raises:
        TrainerError: some of them cannot be ended.
    """
    try:
        told = json.loads(record.read_text("utf-8"))
        token, old = str(told["token"]), int(told["guard"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    last = time.monotonic() + _END_SECONDS
    while guard.is_guard(old, token) and time.monotonic() < last:
        time.sleep(0.1)
    ended = 0
    while left := guard.leftovers(token):
        if time.monotonic() > last + _END_SECONDS:
            raise TrainerError(f"processes of an earlier job of this stage cannot be ended: {left[:5]}")
        ended += len(left)
        guard.kill(left)
        time.sleep(0.1)
    return ended
