"""Turns that begin no closer together than a rate allows, whichever process takes them.

Processes that share a file share one rate: the file holds when the next turn may begin, in seconds of the machine's monotonic clock,
and is held locked while it is read and written. Where a machine has no such file, it is made there, so each machine of several keeps the
rate for itself. Without a file the rate holds in this object alone. A turn that was taken is not given back.
"""

from __future__ import annotations

import fcntl
import os
import time

from cascade_core.errors import ResourceError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FARTHEST = 86_400.0  # seconds that turns can have been given away for


class Pace:
    """Turns at a rate.

    Args:
        per_minute: turns that may begin in a minute; 0 for no limit.
        path: the file that processes share; `""` for none.
    """

    def __init__(self, per_minute: float, path: str = "") -> None:
        self._apart = 60.0 / per_minute if per_minute else 0.0
        self._path, self._next = path, 0.0

    def take(self) -> float:
        """Takes the next turn: when it begins, in seconds of `time.monotonic`.

        Raises:
            ResourceError: the file can be neither read nor made.
        """
        if not self._apart:
            return time.monotonic()
        if not self._path:
            begin = max(time.monotonic(), self._next)
            self._next = begin + self._apart
            return begin
        try:
            file = os.open(self._path, _FLAGS, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                begin = max(time.monotonic(), _read(file))
                os.pwrite(file, f"{begin + self._apart:<32.6f}".encode(), 0)
                return begin
            finally:
                os.close(file)  # and unlocked
        except OSError as cause:
            raise ResourceError(
                f"the judge's rate is kept in {self._path}, which cannot be used: {cause.strerror}"
            ) from cause


def _read(file: int) -> float:
    """What stands in the file; 0 where that is nothing, or no time that turns can have been given away to."""
    try:
        found = float(os.pread(file, 32, 0) or b"0")
    except ValueError:
        return 0.0
    return found if found < time.monotonic() + _FARTHEST else 0.0
