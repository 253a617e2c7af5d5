"""One client of a keeper, from its first question until it hangs up: `serve`. The protocol is written down in `keeper.py`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside.wire import Header, Reader, WireError, pack
from cascade_sandbox.languages import LANGUAGES
from cascade_sandbox.place import answers
from cascade_sandbox.places import ROLES, Places, Role, Warm
from cascade_sandbox.pool import Pool


async def serve(pool: Pool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one client; what it has leased when it hangs up is taken over."""
    client = _Client(pool, reader, writer)
    try:
        while (header := await client.next()) is not None and await client.answer(header):
            pass
    except (OSError, WireError, EOFError):
        pass  # the client is gone
    finally:
        writer.close()
        if client.leased is not None:
            await pool.take_over(client.role, client.leased)


class _Client:
    """One connection: frames without blobs, and the container that it has leased."""

    def __init__(self, pool: Pool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.role: Role = "judged"
        self.leased: Warm | None = None
        self._pool = pool
        self._reader = reader
        self._writer = writer
        self._frames = Reader()
        self._ready: list[Header] = []

    async def next(self) -> Header | None:
        """The next frame; None at the end of the stream."""
        while not self._ready:
            data = await self._reader.read(1 << 16)
            if not data:
                return None
            self._ready += [header for header, _ in self._frames.feed(data)]
        return self._ready.pop(0)

    async def answer(self, header: Header) -> bool:
        """Answers one frame; whether to go on.

        Raises:
            EOFError: the client hung up while it waited for a container.
        """
        op = header.get("op")
        if op == "lease" and self.leased is None and header.get("role") in ROLES:
            self._send(await self._lease(header["role"], header.get("checked") is True))
        elif op == "return" and self.leased is not None:
            self._return(self.leased, header)
            self._send({"op": "ok"})
        elif op == "languages":
            self._send(await self._languages(header.get("names")))
        elif op == "status":
            self._send({"op": "status", **self._pool.status()})
        else:
            self._send({"op": "error", "reason": f"the keeper does not know what to do with {header!r:.200}"})
            return False
        return True

    def _send(self, header: Header) -> None:
        self._writer.write(pack(header))

    async def _lease(self, role: Role, checked: bool) -> Header:
        places = self._pool.places(role)
        try:
            warm = await self._next_free(places)
            while checked and not await answers(warm.socket):
                warm.end("silent")
                warm = await self._next_free(places)
        except SandboxError as error:
            return {"op": "error", "reason": str(error)}
        places.sessions += 1
        self.role, self.leased = role, warm
        return {"op": "slot", "socket": warm.socket}

    async def _next_free(self, places: Places) -> Warm:
        """The next free container; if this client leaves while it waits, its turn goes to the next."""
        waiter = places.lease()
        try:
            if not waiter.done():
                await self._unless_gone(waiter)
        except BaseException:
            if not waiter.cancel() and not waiter.cancelled() and waiter.exception() is None:
                places.give(waiter.result())
            raise
        return waiter.result()

    async def _unless_gone(self, waiter: asyncio.Future[Warm]) -> None:
        """Waits for it.

        Raises:
            EOFError: the client hung up, or said something, before it came.
        """
        reading = asyncio.ensure_future(self._reader.read(1 << 16))
        either: set[asyncio.Future[Any]] = {waiter, reading}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                raise EOFError("the client does not wait any more")
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await reading

    def _return(self, warm: Warm, header: Header) -> None:
        runs = header.get("runs")
        broken = str(header.get("reason") or "a client says so") if header.get("broken") else ""
        self._pool.take_back(self.role, warm, runs if type(runs) is int and runs > 0 else 0, broken)
        self.leased = None

    async def _languages(self, names: Any) -> Header:
        known = [name for name in names if name in LANGUAGES] if isinstance(names, list) else None
        try:
            return {"op": "languages", "offered": await self._pool.languages(known)}
        except SandboxError as error:
            return {"op": "error", "reason": str(error)}
