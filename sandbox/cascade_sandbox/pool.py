"""A pool of warm containers: `Pool` starts them, says which can be had, tests the languages in them, and ends them.

Containers for judged programs are started at once, those for private ones one by one as they are asked for. Who waits for what is
`places.py`'s, the life of one container `place.py`'s, and talking to clients `broker.py`'s. Everything here runs in one
event loop; the engine and the self-tests of languages are called in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_sandbox import images, languages
from cascade_sandbox.engine import Engine, Shape
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.owner import IMAGE_LABEL, POOL_LABEL, labels, new_folder
from cascade_sandbox.place import Place, Recipe, answers, cores
from cascade_sandbox.places import ROLES, Places, Role, Warm

END_SECONDS = 20.0
"""How long ending the containers may take; those that are left end by themselves."""


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


class Pool:
    """A pool; `socket` is where its keeper should listen."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine = Engine(settings.engine)
        self._image = images.choose(self._engine, settings.image)
        self._kind = self._engine.image_labels(self._image).get(IMAGE_LABEL)
        self._folder = new_folder()
        self.socket = str(self._folder / "pool")
        self._broken: deque[str] = deque(maxlen=10)
        self._places: dict[Role, Places] = {role: Places(settings.patience) for role in ROLES}
        self._tasks: dict[Role, list[asyncio.Task[None]]] = {role: [] for role in ROLES}
        self._offered: dict[str, asyncio.Task[str]] = {}
        code = self._folder / "inside"
        shutil.copytree(Path(__file__).parent / "inside", code, ignore=shutil.ignore_patterns("__pycache__"))
        shape = Shape(memory_mb=settings.memory_mb, work_mb=settings.work_mb)
        owned = labels(self._folder.name)
        self._recipe = Recipe(self._engine, self._image, shape, owned, self._folder, code)

    async def start(self) -> None:
        """Starts the containers for judged programs and waits for the first.

        Raises:
            SandboxError: none could be started.
        """
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
        for tasks in self._tasks.values():
            for task in tasks:
                task.cancel()
        if self._recipe.starting:
            await asyncio.wait(self._recipe.starting, timeout=END_SECONDS / 2)
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

    def places(self, role: Role) -> Places:
        """The waiting line of that role; one more container is started if a private one is asked for and none is free."""
        places = self._places[role]
        if role == "private" and not places.counts["idle"] and len(self._tasks[role]) < self._settings.slots:
            self._grow(role)
        return places

    def take_back(self, role: Role, warm: Warm, runs: int, broken: str) -> None:
        """A container that a client has used for so many runs; `broken` says why nobody else should."""
        places = self._places[role]
        warm.runs += runs
        places.runs += runs
        if broken:
            self._broken.append(broken[:200])
            warm.end("broken")
        elif warm.runs >= self._settings.recycle_after:
            warm.end("recycled")
        places.give(warm)

    async def take_over(self, role: Role, warm: Warm) -> None:
        """A container whose client is gone."""
        silent = "" if await answers(warm.socket) else "its client is gone and its supervisor does not answer"
        self.take_back(role, warm, 0, silent)

    async def languages(self, names: list[str] | None) -> dict[str, str]:
        """Why each of these languages is not offered; empty where it is. Each is tested once.

        Raises:
            SandboxError: the self-test of one that was asked for by name could not be run, which says nothing about it.
        """
        found = {}
        for name in languages.LANGUAGES if names is None else names:
            if name not in self._offered:
                self._offered[name] = asyncio.create_task(asyncio.to_thread(self._tested, name))
            try:
                found[name] = await asyncio.shield(self._offered[name])
            except SandboxError as error:
                self._offered.pop(name, None)  # tried again when it is asked for again
                if names is not None:
                    raise
                found[name] = f"its self-test could not be run: {error}"
        return found

    def _tested(self, name: str) -> str:
        from cascade_sandbox.client import DockerSandbox

        if self._kind == "python" and languages.LANGUAGES[name].compile is not None:
            return f"the image {self._image} has no compiler; cascade sandbox build cpp makes one that has"
        return languages.trouble(name, DockerSandbox(f"unix:{self.socket}", check=False))

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
            "broken": list(self._broken),
            "roles": roles,
            **totals,
        }
