"""The agent's side of the service of a stage (`cascade_core.serve`): ask until there is an answer, or say why there will be none.

Thousands of requests wait at once on one event loop, without a thread. A request that may have been lost is sent again as it was: the
service knows groups and samples by their names and joins what it has already. How long an answer takes is the service's
affair, since a whole step is judged together; that nobody is there at all, or only a proxy in front of nobody, ends the wait
after `patience` seconds.

aiohttp, which OpenRLHF brings along, is imported when the first request is made.
"""

from __future__ import annotations

import asyncio
import math
import random
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cascade_core.errors import TrainerError, UsageError
from cascade_core.trainers.openrlhf_sample import why

if TYPE_CHECKING:
    import aiohttp

ADDRESS, TOKEN, PATIENCE = "CASCADE_SERVE_ADDRESS", "CASCADE_SERVE_TOKEN", "CASCADE_SERVE_PATIENCE"
TOKEN_FILE = "CASCADE_SERVE_TOKEN_FILE"
_AGAIN = frozenset({408, 425, 429, 502, 503, 504})
_GATEWAY = frozenset({502, 503, 504})  # what a proxy says for a backend that it does not reach
_TRY_SECONDS = 600.0  # for one answer; then asked again, in case that the other machine vanished without a word
_LONGEST_PAUSE = 15.0
_DESCRIPTORS = 65_536

T = TypeVar("T")


class Client:
    """Requests to the service; for one event loop, which is the one of the first request.

    Args:
        address: the service's URL, without a path.
        token: what it wants to be shown; `""` for none.
        patience: seconds without any answer after which it counts as gone.
    """

    def __init__(self, address: str, token: str = "", patience: float = 300.0) -> None:
        self._address, self._token, self._patience = address.rstrip("/"), token, patience
        self._session: aiohttp.ClientSession | None = None
        self._unreached: float | None = None  # since when, if the last that was heard is that nobody is there

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Client:
        """The client that the variables `CASCADE_SERVE_ADDRESS`, `_TOKEN` and `_PATIENCE` (seconds) describe.

        `CASCADE_SERVE_TOKEN_FILE` names a file with the token instead, where variables can be read by others.

        Raises:
            UsageError: there is no address, the patience is no number of seconds, or the file cannot be read.
        """
        address, patience = environment.get(ADDRESS, ""), environment.get(PATIENCE, "300")
        if not address.startswith(("http://", "https://")):
            raise UsageError(f"{ADDRESS} must be the URL of the service of the stage, found {address[:80]!r}")
        try:
            seconds = float(patience)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise UsageError(f"{PATIENCE} must be a number of seconds, found {patience[:80]!r}")
        token, file = environment.get(TOKEN, ""), environment.get(TOKEN_FILE, "")
        try:
            token = Path(file).read_text("utf-8").strip() if file else token
        except (OSError, UnicodeDecodeError) as cause:
            raise UsageError(
                f"{TOKEN_FILE} must name a file that can be read here, found {file[:200]!r}: {cause}"
            ) from cause
        return cls(address, token, seconds)

    async def ask(self, path: str, body: Mapping[str, Any], check: Callable[[Any], T]) -> T:
        """The answer to one request, as `check` takes it.

        Raises:
            TrainerError: the service refuses it, answers something else, or is gone.
        """
        pause = 0.2
        while True:
            status, told, wait = await self._try(path, body)
            if status == 200:
                return check(told)
            if status not in _AGAIN and status != 0:
                raise TrainerError(f"the service of the stage refuses {path} with {status}: {told}")
            silent = time.monotonic() - self._unreached if self._unreached is not None else 0.0
            if silent > self._patience:
                raise TrainerError(
                    f"the service of the stage, {self._address}, did not answer for {silent:.0f} s: {told}"
                )
            await asyncio.sleep(max(wait, pause * random.uniform(0.5, 1.0)))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _try(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any, float]:
        """The status (0: no answer), what was told (the value, or why not), and seconds to wait before asking again."""
        import aiohttp

        session = self._opened()
        try:
            async with session.post(self._address + path, json=body) as response:
                if response.status == 200:
                    self._unreached = None
                    return 200, await response.json(content_type=None), 0.0
                told, is_ours = await _refusal(response)
                if is_ours or response.status not in _GATEWAY:
                    self._unreached = None
                else:
                    self._miss()
                return response.status, told, _seconds(response.headers.get("Retry-After"))
        except aiohttp.ClientPayloadError as cause:  # cut short
            return 502, why(cause), 0.0
        except ValueError as cause:  # whole, and no JSON: somebody else lives there
            return 406, why(cause), 0.0
        except (aiohttp.ClientError, OSError) as cause:
            if isinstance(cause, TimeoutError) and not isinstance(cause, aiohttp.ConnectionTimeoutError):
                self._unreached = None  # it is there, and takes its time
                return 408, why(cause), 0.0
            self._miss()
            return 0, why(cause), 0.0

    def _miss(self) -> None:
        self._unreached = time.monotonic() if self._unreached is None else self._unreached

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            _make_room()
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=_TRY_SECONDS, connect=None, sock_connect=30),
                headers=headers,
            )
        return self._session

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _refusal(response: aiohttp.ClientResponse) -> tuple[str, bool]:
    """The reason that a refusal gives, and whether it has the shape of the service's own."""
    text = (await response.read())[:2000].decode("utf-8", "replace")
    try:
        found = await response.json(content_type=None)
    except ValueError:
        found = None
    is_ours = isinstance(found, dict) and "error" in found
    return (str(found["error"])[:1000] if is_ours else text[:300]), is_ours


def _seconds(header: str | None) -> float:
    """What `Retry-After` says, where it says seconds."""
    return min(float(header), 60.0) if header is not None and header.isdecimal() else 0.0


def _make_room() -> None:
    """A connection is a descriptor, and the usual soft limit of 1,024 is fewer than a step has samples."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
