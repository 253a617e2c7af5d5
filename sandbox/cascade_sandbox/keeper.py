"""The process that keeps a pool of warm containers: `python -m cascade_sandbox.keeper`, started by `docker_sandbox`.

The first line of its standard input is a JSON object (`Settings`); the first line that it prints is `{"address": "unix:..."}` or
`{"error": ...}`. It ends when its standard input ends, when its parent is gone, or at SIGTERM, and takes its containers with it.
If it is killed, they end by themselves: each waits for the connection that the keeper holds.

It is a broker and off the hot path. A client asks for a container, talks to that container directly, and gives it back:

    {"op": "lease", "role": "judged" | "private"}          -> {"op": "slot", "socket": path}
    {"op": "return", "broken": false, "reason": "", "runs": 1} -> {"op": "ok"}
    {"op": "languages", "names": [...]}                    -> {"op": "languages", "offered": {name: "" or why not}}
    {"op": "status"}                                       -> {"op": "status", ...}

or gets `{"op": "error", "reason": ...}`. A client that hangs up gives back what it had, if its supervisor still answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_sandbox import images, languages
from cascade_sandbox.engine import Engine, Shape
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside.wire import Header, Reader, WireError, pack
from cascade_sandbox.owner import IMAGE_LABEL, POOL_LABEL, labels, new_folder
from cascade_sandbox.place import Place, Recipe, answers, cores, raise_file_limit
from cascade_sandbox.places import ROLES, Places, Role, Warm

_LONGEST_END = 20.0
_BACKLOG = 4096


@dataclass(frozen=True)
class Settings:
    """What a pool is like; see `docker_sandbox` for the meaning of each."""

    slots: int = field(default_factory=cores)
    memory_mb: int = 2048
    work_mb: int = 512
    recycle_after: int = 2000
    image: str = ""
    engine: str = ""
    patience: float = 120.0


class Keeper:
    """A pool, and the socket on which clients ask for its containers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine = Engine(settings.engine)
        self._image = images.choose(self._engine, settings.image)
        self._folder = new_folder()
        self.address = f"unix:{self._folder / 'pool'}"
        self._places: dict[Role, Places] = {role: Places(settings.patience) for role in ROLES}
        self._tasks: dict[Role, list[asyncio.Task[None]]] = {role: [] for role in ROLES}
        self._offered: dict[str, asyncio.Task[str]] = {}
        code = self._folder / "inside"
        shutil.copytree(Path(__file__).parent / "inside", code, ignore=shutil.ignore_patterns("__pycache__"))
        shape = Shape(memory_mb=settings.memory_mb, work_mb=settings.work_mb)
        self._recipe = Recipe(
            self._engine,
            self._image,
            shape,
            labels(self._folder.name),
            self._folder,
            code,
            max(1, settings.recycle_after),
        )

    async def start(self) -> None:
        """Starts the containers for judged programs and waits for the first.

        Raises:
            SandboxError: none could be started.
        """
        path = self.address.removeprefix("unix:")
        self._server = await asyncio.start_unix_server(self._serve, path, backlog=_BACKLOG)
        for _ in range(self._settings.slots):
            self._grow("judged")
        judged = self._places["judged"]
        while not judged.counts["alive"]:
            if judged.trouble:
                raise SandboxError(f"no container could be started: {judged.trouble}")
            await asyncio.sleep(0.01)
        self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Ends every container, as far as the engine answers, and removes the folder."""
        self._server.close()
        for tasks in self._tasks.values():
            for task in tasks:
                task.cancel()
        if self._recipe.starting:
            await asyncio.wait(self._recipe.starting, timeout=_LONGEST_END / 2)
        label = f"{POOL_LABEL}={self._folder.name}"
        with contextlib.suppress(SandboxError):
            left = await asyncio.to_thread(self._engine.containers, label)
            removals = [asyncio.to_thread(self._engine.remove, one.name) for one in left]
            await asyncio.gather(*removals, return_exceptions=True)
        self.forget()

    def forget(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _grow(self, role: Role) -> None:
        tasks = self._tasks[role]
        place = Place(self._recipe, self._places[role], f"{role}-{len(tasks)}")
        tasks.append(asyncio.create_task(place.live()))

    async def _look(self) -> None:
        while True:
            for places in self._places.values():
                places.look()
            await asyncio.sleep(1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until it hangs up."""
        client = _Client(reader, writer)
        leased: Warm | None = None
        role: Role = "judged"
        try:
            while (header := await client.next()) is not None:
                if header.get("op") == "lease" and leased is None and header.get("role") in ROLES:
                    role = header["role"]
                    leased = await self._lease(role, client)
                elif header.get("op") == "return" and leased is not None:
                    self._returned(role, leased, header)
                    leased = None
                    client.send({"op": "ok"})
                elif header.get("op") == "languages":
                    client.send({"op": "languages", "offered": await self._languages(header.get("names"))})
                elif header.get("op") == "status":
                    client.send({"op": "status", **self.status()})
                else:
                    client.send({"op": "error", "reason": f"the keeper does not know what to do with {header!r:.200}"})
                    break
        except (OSError, WireError, EOFError):
            pass  # the client is gone; what it had is given back below
        finally:
            writer.close()
            if leased is not None:
                await self._abandoned(role, leased)

    async def _lease(self, role: Role, client: _Client) -> Warm | None:
        """A container for that client; None if it was told an error.

        Raises:
            EOFError: the client hung up while it waited.
        """
        places = self._places[role]
        if role == "private" and not places.counts["idle"] and len(self._tasks[role]) < self._settings.slots:
            self._grow(role)
        waiter = places.lease()
        try:
            await client.unless_gone(waiter)
            warm = waiter.result()
        except SandboxError as error:
            client.send({"op": "error", "reason": str(error)})
            return None
        except BaseException:
            if not waiter.cancel() and not waiter.cancelled() and waiter.exception() is None:
                places.give(waiter.result())
            raise
        places.sessions += 1
        client.send({"op": "slot", "socket": warm.socket})
        return warm

    def _returned(self, role: Role, warm: Warm, header: Header) -> None:
        runs = header.get("runs")
        if type(runs) is int and runs > 0:
            warm.runs += runs
            self._places[role].runs += runs
        if header.get("broken"):
            warm.end(str(header.get("reason") or "broken")[:200])
        elif warm.runs >= self._recipe.recycle_after:
            warm.end("recycled")
        self._places[role].give(warm)

    async def _abandoned(self, role: Role, warm: Warm) -> None:
        if await answers(warm.socket):
            self._places[role].give(warm)
        else:
            warm.end("client gone, supervisor silent")

    async def _languages(self, names: Any) -> dict[str, str]:
        """Why each of these languages is not offered; empty where it is. Each is tested once."""
        asked = [name for name in languages.LANGUAGES if not isinstance(names, list) or name in names]
        found = {}
        for name in asked:
            if name not in self._offered:
                self._offered[name] = asyncio.create_task(asyncio.to_thread(self._tested, name))
            try:
                found[name] = await asyncio.shield(self._offered[name])
            except SandboxError as error:
                del self._offered[name]  # says nothing about the language: tried again when it is asked for again
                found[name] = f"its self-test could not be run: {error}"
        return found

    def _tested(self, name: str) -> str:
        from cascade_sandbox.client import DockerSandbox

        kind = self._engine.image_labels(self._image).get(IMAGE_LABEL)
        if kind == "python" and languages.LANGUAGES[name].compile is not None:
            return f"the image {self._image} has no compiler; cascade sandbox build cpp makes one that has"
        return languages.trouble(name, DockerSandbox(self.address, check=False))

    def status(self) -> dict[str, Any]:
        """Counts over both roles, and for each."""
        roles: dict[str, dict[str, Any]] = {
            role: {**places.counts, "sessions": places.sessions, "runs": places.runs, "trouble": places.trouble}
            for role, places in self._places.items()
        }
        recreated: Counter[str] = sum((places.recreated for places in self._places.values()), Counter())
        totals = {
            key: sum(counts[key] for counts in roles.values())
            for key in ("alive", "idle", "leased", "waiting", "sessions", "runs")
        }
        return {
            "slots": self._settings.slots,
            "image": self._image,
            "engine": self._engine.address,
            "pool": self._folder.name,
            "recreated": dict(recreated),
            "roles": roles,
            **totals,
        }


class _Client:
    """One connection: frames without blobs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Reader()
        self._ready: list[Header] = []

    def send(self, header: Header) -> None:
        self._writer.write(pack(header))

    async def next(self) -> Header | None:
        """The next frame; None at the end of the stream."""
        while not self._ready:
            data = await self._reader.read(1 << 16)
            if not data:
                return None
            self._ready += [header for header, _ in self._frames.feed(data)]
        return self._ready.pop(0)

    async def unless_gone(self, waiter: asyncio.Future[Warm]) -> None:
        """Waits for it.

        Raises:
            EOFError: the client hung up, or said something, before it came.
        """
        reading = asyncio.ensure_future(self._reader.read(1 << 16))
        either: set[asyncio.Future[Any]] = {waiter, reading}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if reading.done():
                raise EOFError("the client does not wait any more")
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading


async def _run(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    loop.add_reader(0, lambda: over.set() if not os.read(0, 4096) else None)
    keeper = Keeper(settings)
    try:
        starting = asyncio.create_task(keeper.start())
        ending: asyncio.Task[Any] = asyncio.create_task(over.wait())
        await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            _say({"address": keeper.address})
            parent = os.getppid()
            while not over.is_set() and os.getppid() == parent:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), 1)
        starting.cancel()
    finally:
        try:
            await asyncio.wait_for(keeper.close(), _LONGEST_END)
        except TimeoutError:
            keeper.forget()


def _say(what: dict[str, str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(what), flush=True)


def main() -> None:
    """Reads the settings, keeps the pool, and ends without waiting for calls that the engine does not answer."""
    raise_file_limit()
    status = 0
    try:
        line = bytearray()
        while not line.endswith(b"\n") and (byte := os.read(0, 1)):
            line += byte
        # Not asyncio.run: that would wait for threads in which the engine does not answer.
        asyncio.new_event_loop().run_until_complete(_run(Settings(**json.loads(line))))
    except (SandboxError, ValueError, TypeError) as error:
        _say({"error": str(error)})
        status = 1
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
