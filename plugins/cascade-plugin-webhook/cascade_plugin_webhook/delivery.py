"""One receiver over HTTP: a batch is posted until it is taken, finally refused, or out of time."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from cascade_core.errors import CascadeError

LATER = frozenset({408, 425, 429, *range(500, 600)})
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds; doubled from try to try


class NotDelivered(CascadeError, RuntimeError):
    """A batch was not taken; says what the receiver answered, and never where it is."""


class Delivery:
    """Posts JSON to one URL.

    Args:
        token: for `Authorization: Bearer`; `key` signs.
        timeout: seconds for each of connecting, sending and the answer; `patience`: seconds for all tries of one post.
    """

    def __init__(self, url: str, token: str | None, key: str | None, timeout: float, patience: float) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "cascade-plugin-webhook"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._url, self._key, self._patience, self._timeout = url, key, patience, timeout
        self._client = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def post(self, value: Mapping[str, Any]) -> None:
        """Posts one JSON value, again and again where the receiver may take it later.

        Raises:
            NotDelivered: it was refused, or `patience` is used up.
        """
        body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
        end, wait = time.monotonic() + self._patience, FIRST_WAIT
        while True:
            answer, asked = self._try(body)
            if answer == "":
                return
            pause = max(wait, min(asked, LONGEST_WAIT))
            if asked < 0 or time.monotonic() + pause > end:
                raise NotDelivered(f"{answer}{'' if asked < 0 else f', tried for {self._patience:g} s'}")
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT)

    def _try(self, body: bytes) -> tuple[str, float]:
        """`""` where it was taken, else what happened; and the seconds to wait at least, below 0 where that is in vain."""
        try:
            with self._client.stream("POST", self._url, content=body, headers=self._signed(body)) as response:
                status = response.status_code
                after = response.headers.get("Retry-After", "")
        except httpx2.HTTPError as cause:
            return f"no answer ({type(cause).__name__})", 0.0
        if 200 <= status < 300:
            return "", 0.0
        later = float(after) if after.isascii() and after.isdigit() and len(after) < 6 else 0.0
        return f"the receiver answered {status}", later if status in LATER else -1.0

    def _signed(self, body: bytes) -> dict[str, str]:
        if self._key is None:
            return {}
        now = str(int(time.time()))
        digest = hmac.new(self._key.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        return {"Cascade-Timestamp": now, "Cascade-Signature": f"sha256={digest}"}

    def close(self) -> None:
        """Gives the connection back."""
        self._client.close()
