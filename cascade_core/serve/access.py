"""Who may ask: a token where there is one; without one only this machine, and no web page on it.

The token comes as `Authorization: Bearer TOKEN`, or as the password of basic authentication, since some clients (OpenRLHF's among
them) can say nothing but a URL. A browser is told by its `Origin`; a name that somebody points at the loopback address (DNS rebinding) by
its `Host`. `/health` says only that it lives, and says it to everybody. TLS is a proxy's work.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from cascade_core.serve.wire import Refused

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN = ("/health",)


class Access:
    """Whether a request is answered.

    Args:
        token: what a request must know; `""` means that the service listens on the loopback address alone.
    """

    def __init__(self, token: str = "") -> None:
        self._token = token.encode()

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Lets it pass.

        Raises:
            Refused: 401 without the token, 403 for a web page or a strange name.
        """
        if headers.get("origin") is not None:
            raise Refused("web pages are not answered (the request has an Origin)", status=403)
        if path in _OPEN:
            return
        if self._token:
            if not hmac.compare_digest(_given(headers.get("authorization", "")), self._token):
                raise Refused("this service wants its token: Authorization: Bearer TOKEN", status=401)
        elif _host(headers.get("host", "")) not in LOOPBACK:
            raise Refused(
                f"host {headers.get('host', '')[:80]!r} is not answered (allowed: {', '.join(LOOPBACK)})", status=403
            )


def _given(header: str) -> bytes:
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip(" \t").encode("latin-1", "replace")  # the bytes that were sent, whatever their encoding
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return b""


def _host(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
