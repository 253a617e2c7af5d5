"""When the pool stops trying: domains that fail at everything, domains that cannot be opened, a machine without room.

One failed sample is tried again; a broken verifier must not turn every sample of a batch into two process starts. What
is remembered here is forgotten by the first success, or after a while.
"""

from __future__ import annotations

import time

_FAILURES = 20  # of a domain in a row, after which a failed job is not tried again
_SECONDS = 30.0  # how long a domain that could not be opened is left alone, and a machine without room waited for
_PAUSE_SECONDS = 1.0  # between two tries to start a process


class Patience:
    """What went wrong lately, by domain."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._unopenable: dict[str, tuple[float, str]] = {}  # until when, why
        self._no_room = (0.0, 0.0, "")  # since when, until when not to try, why

    def judged(self, domain: str) -> None:
        """A job of the domain came to a verdict."""
        self._failures[domain] = 0

    def failed(self, domain: str) -> None:
        """A job of the domain failed for good."""
        self._failures[domain] = self._failures.get(domain, 0) + 1

    def has_more(self, domain: str) -> bool:
        """Whether a failed job of the domain is worth another try."""
        return self._failures.get(domain, 0) < _FAILURES

    def unopenable(self, domain: str, cause: str) -> None:
        """The domain could not be opened, on a fresh process too."""
        self._unopenable[domain] = (time.monotonic() + _SECONDS, cause)

    def started(self, cause: str = "") -> None:
        """A process was started, or could not be, for `cause`."""
        now = time.monotonic()
        self._no_room = (self._no_room[0] or now, now + _PAUSE_SECONDS, cause) if cause else (0.0, 0.0, "")

    def may_start(self) -> bool:
        """Whether to try to start a process now."""
        return time.monotonic() >= self._no_room[1]

    def refusal(self, domain: str) -> str:
        """Why a job of the domain is answered without a try; `""` if it is not."""
        now = time.monotonic()
        until, cause = self._unopenable.get(domain, (0.0, ""))
        since, _, why = self._no_room
        if now < until:
            return cause
        return f"no worker can be started: {why}" if why and now > since + _SECONDS else ""
