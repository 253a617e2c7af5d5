"""A handler of JSON as an endpoint: access, size limits, and the shape of answers and refusals; whatever is served.

A refusal has `error` (one sentence), and `field`, `found` and `allowed` where a field is wrong. Nothing that a request holds ends the
service: what was not foreseen is told as status 500, and to `say`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import Counter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from cascade_core.serve.access import Access
from cascade_core.serve.wire import Refused, dump, parse

Answering = Callable[[Request], Awaitable[Response]]


class Room:
    """Bytes of bodies that may be held at once by all requests together.

    Args:
        most: so many.
        refused: called where there is no room.
    """

    def __init__(self, most: int, refused: Callable[[], None]) -> None:
        self.bytes, self._most, self._refused = 0, most, refused

    @contextmanager
    def holding(self) -> Iterator[Held]:
        """Bytes that a request holds while it lasts."""
        held = Held(self)
        try:
            yield held
        finally:
            held.release()

    def take(self, count: int) -> None:
        """So many more.

        Raises:
            Refused: that would be too many; status 503.
        """
        if self.bytes + count > self._most:
            self._refused()
            raise Refused("requests of too many bytes are waiting; ask again later", status=503, again=1)
        self.bytes += count


class Held:
    """Bytes that one request holds."""

    def __init__(self, room: Room) -> None:
        self._room, self.bytes = room, 0

    def take(self, count: int) -> None:
        """So many more; see `Room.take`."""
        self._room.take(count)
        self.bytes += count

    def release(self) -> None:
        """All of them given back."""
        self._room.bytes -= self.bytes
        self.bytes = 0


async def answered(
    request: Request,
    handler: Callable[[Any], Awaitable[dict[str, Any]]],
    *,
    access: Access,
    room: Room,
    body_mib: int,
    requests: Counter,
    say: Callable[[str], None],
    keeps: bool = True,
) -> Response:
    """What a handler says to a request; it gets the JSON of a POST, and the query of a GET.

    Args:
        keeps: whether the bytes of its body count as held until it is answered, and not only until they are read.
    """
    status, told, headers = 200, b"", {}
    try:
        access.check(request.url.path, request.headers)
        with room.holding() as held:
            if request.method == "POST":
                data = parse(await _body(request, held, body_mib * 2**20))
                if not keeps:
                    held.release()
            else:
                data = dict(request.query_params)
            told = dump(await handler(data))
    except Refused as cause:
        status, told = cause.status, dump(cause.told)
        headers = {"retry-after": str(cause.again)} if cause.again else {}
        if status in (401, 413):
            headers |= {"connection": "close"} if status == 413 else {"www-authenticate": "Bearer"}
    except ClientDisconnect:
        status, told = 400, dump({"error": "the request was not sent to its end"})
    except Exception as cause:  # noqa: BLE001 - whatever a request brings about must not end the service
        say(f"internal error at {request.url.path}: {type(cause).__name__}: {str(cause)[:300]}")
        status, told = 500, dump({"error": f"internal error: {type(cause).__name__}"})
    requests.labels(request.url.path, str(status)).inc()
    return Response(told, status, headers, media_type="application/json")


def numbers(text: Callable[[], bytes], access: Access) -> Answering:
    """The endpoint of `/metrics`: Prometheus's text format, for those who may ask."""

    async def metrics(request: Request) -> Response:
        try:
            access.check(request.url.path, request.headers)
        except Refused as cause:
            return Response(dump(cause.told), cause.status, media_type="application/json")
        return Response(text(), media_type="text/plain; version=0.0.4")

    return metrics


def outside(known: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The answer to a path or method that there is not; `known` says which there are."""

    async def answer(request: Request, cause: Exception) -> Response:
        status = cause.status_code if isinstance(cause, HTTPException) else 500
        what = {
            404: f"there is no {request.url.path[:80]!r} (there are: {known})",
            405: f"not with {request.method[:20]} (allowed: {known})",
        }
        headers = cause.headers if isinstance(cause, HTTPException) else None
        return Response(
            dump({"error": what.get(status, "bad request")}), status, headers, media_type="application/json"
        )

    return answer


async def _body(request: Request, held: Held, most: int) -> bytes:
    """The whole body.

    Raises:
        Refused: it is too long; status 413. It is compressed; status 415.
    """
    coding = request.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise Refused(
            f"the body is compressed with {coding[:40]!r}; it must be plain JSON",
            status=415,
            field="content-encoding",
            found=coding,
            allowed="absent, or identity",
        )
    refusal = Refused(
        f"the body is longer than {most >> 20} MiB", status=413, field="body", found="more", allowed=f"{most} bytes"
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise refusal
    parts: list[bytes] = []
    async for chunk in request.stream():
        held.take(len(chunk))
        if held.bytes > most:
            raise refusal
        parts.append(chunk)
    return b"".join(parts)
