"""One place of a pool: `Place` starts a container, hands it to the waiting line, and starts the next one when it is over.

A container is over when a client says so, when its supervisor closes the connection that the keeper holds (killed, out of
memory, gone), or when it has been used often enough. The engine is called in threads; while it fails, starting is tried again
after half a second, then twice as long each time, up to ten.

Each container gets a folder of its own for its sockets, so that nobody can reach the next one through an old path.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cascade_sandbox.engine import Engine, Shape
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.inside.wire import Reader, WireError, pack
from cascade_sandbox.places import Places, Warm

COMMAND = ["/usr/bin/python3", "-I", "-S", "-E", "/inside/supervisor.py", "/socket/s"]
START_SECONDS = 60.0
"""How long a supervisor may take to answer after its container was started."""

PING_SECONDS = 5.0
"""How long a supervisor may take to answer when it has nothing else to do."""

_LONGEST_PAUSE = 10.0


@dataclass(frozen=True)
class Recipe:
    """What every container of a pool has in common. `folder` holds the sockets; `inside` is the supervisor's code."""

    engine: Engine
    image: str
    shape: Shape
    labels: Mapping[str, str]
    folder: Path
    inside: Path
    starting: set[asyncio.Future[None]] = field(default_factory=set)


class Place:
    """A place for one container after the other; `live` is its whole life."""

    def __init__(self, recipe: Recipe, places: Places, name: str) -> None:
        self._recipe = recipe
        self._places = places
        self._name = name
        self._born = 0
        self._keep: asyncio.StreamWriter | None = None

    async def live(self) -> None:
        """Keeps a container there until it is cancelled."""
        pause = 0.5
        while True:
            try:
                warm = await self._start()
            except SandboxError as error:
                self._places.trouble = str(error)
                await self._remove()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            pause = 0.5
            self._places.add(warm)
            reason = await warm.over
            self._places.drop(warm, reason)
            await self._remove()

    @property
    def _container(self) -> str:
        return f"{self._recipe.folder.name}-{self._name}-{self._born}"

    @property
    def _folder(self) -> Path:
        return self._recipe.folder / f"{self._name}-{self._born}"

    async def _start(self) -> Warm:
        """A container whose supervisor answers.

        Raises:
            SandboxError: the engine failed, or the supervisor did not answer in time.
        """
        self._born += 1
        self._folder.mkdir(mode=0o700)
        await self._call_engine()
        warm = Warm(str(self._folder / "s"))
        begin = time.monotonic()
        reader = await self._connected(begin)
        while not await answers(warm.socket):
            self._check(begin, "it does not answer")
            await asyncio.sleep(0.05)
        self._watching = asyncio.create_task(_watch(reader, warm))
        return warm

    async def _connected(self, begin: float) -> asyncio.StreamReader:
        """The connection that keeps the container alive."""
        looked = begin
        while True:
            try:
                reader, self._keep = await asyncio.open_unix_connection(str(self._folder / "k"))
                return reader
            except OSError as error:
                self._check(begin, f"its socket is not there: {error}")
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                if not await asyncio.to_thread(self._recipe.engine.is_running, self._container):
                    raise SandboxError(f"the container {self._container} ended as soon as it had started")
            await asyncio.sleep(0.02)

    def _check(self, begin: float, what: str) -> None:
        if time.monotonic() - begin > START_SECONDS:
            raise SandboxError(f"{self._container} did not start within {START_SECONDS:.0f} seconds: {what}")

    async def _call_engine(self) -> None:
        recipe = self._recipe
        mounts = {"/inside:ro": str(recipe.inside), "/socket": str(self._folder)}

        def start() -> None:
            recipe.engine.start(self._container, recipe.image, COMMAND, mounts, recipe.labels, recipe.shape)

        call = asyncio.get_running_loop().run_in_executor(None, start)
        recipe.starting.add(call)
        call.add_done_callback(recipe.starting.discard)
        await asyncio.shield(call)

    async def _remove(self) -> None:
        """Ends the container. Where the engine does not answer, it ends by itself: nobody holds its connection any more."""
        if self._keep is not None:
            self._keep.close()
            self._keep = None
        with contextlib.suppress(SandboxError):
            await asyncio.to_thread(self._recipe.engine.remove, self._container)
        shutil.rmtree(self._folder, ignore_errors=True)


async def _watch(reader: asyncio.StreamReader, warm: Warm) -> None:
    """Waits until the supervisor is gone."""
    with contextlib.suppress(OSError):
        while await reader.read(4096):
            pass
    warm.end("gone")


async def answers(path: str, seconds: float = PING_SECONDS) -> bool:
    """Whether the supervisor behind that socket answers a ping."""
    writer = None
    try:
        async with asyncio.timeout(seconds):
            stream, writer = await asyncio.open_unix_connection(path)
            writer.write(pack({"op": "ping"}))
            frames = Reader()
            while data := await stream.read(4096):
                for header, _ in frames.feed(data):
                    return header.get("op") == "pong"
    except (OSError, WireError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()
    return False


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
