"""A domain whose verdicts come from a server, the server as a resource, and a trainer that trains nothing."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cascade_core import Domain, Resource, Response, Score, Task, hookimpl
from cascade_core.server import Server
from cascade_core.trainers import Job, Trainer

SERVER = Path(__file__).with_name("serve.py")


@dataclass
class Echo(Domain):
    """The server decides: see `serve.py`. What does not answer is no verdict: the exception is let out."""

    name: ClassVar[str] = "echo"
    lane: ClassVar[str] = "io"
    needs: ClassVar[tuple[str, ...]] = ("echo-server",)

    def open(self, resources: Mapping[str, str]) -> None:
        self._path = resources["echo-server"].removeprefix("unix:")

    def tasks(self, split: str, seed: int) -> Iterable[Task]:
        return [Task(f"{split}-{i}", f"slow0,{split} {i}|right", "right") for i in range(20)]

    def reference(self, task: Task) -> str:
        return str(task.answer)

    def score(self, task: Task, response: Response) -> Score:
        said = ask(self._path, response.answer or "")
        return Score(said["value"], note=f"from {said['pid']}")


def ask(path: str, text: str) -> dict[str, Any]:
    """What the server says to a text."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        channel.sendall(json.dumps(text).encode() + b"\n")
        reply = channel.makefile().readline()
    if not reply:
        raise ConnectionError("the server hung up")
    found: dict[str, Any] = json.loads(reply)
    return found


@dataclass
class Local(Resource):
    """The server in a process of its own. `slots` is how many it answers at once; `log` is told when it starts and ends.

    What lies beside `log`, in a file of that name with `.model` after it, is what it says that verdicts depend on.
    """

    name: ClassVar[str] = "local"
    provides: ClassVar[str] = "echo-server"
    default: ClassVar[bool] = True
    free: ClassVar[tuple[str, ...]] = ("slots", "log")
    decisive: ClassVar[tuple[str, ...]] = ("model",)
    slots: int = 8
    log: str = ""
    strict: bool = True
    fault: str = ""
    _folder: str = field(default="", init=False)
    _server: Server | None = field(default=None, init=False)

    def start(self) -> str:
        self._folder = tempfile.mkdtemp(prefix="echo-")
        path = f"{self._folder}/socket"
        command = [sys.executable, "-I", str(SERVER), path, str(self.slots), self.log, self.fault]
        self._server = Server(command, f"unix:{path}", seconds=20)
        self._server.start()
        return self._server.address

    def stop(self) -> None:
        if self._server:
            self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.fault == "stop":
            raise RuntimeError("it will not end")

    def alive(self) -> bool:
        return self._server is not None and self._server.alive()

    def describe(self) -> Mapping[str, Any]:
        model = Path(f"{self.log}.model")
        return {"python": sys.version_info.major} | ({"model": model.read_text()} if model.exists() else {})

    @classmethod
    def misaddressed(cls, address: str) -> str:
        if address == "echo:raise":
            raise RuntimeError("odd")
        return f"an echo is at no {address}" if address.startswith("ftp:") else ""


@dataclass
class Broken(Resource):
    """Cannot be started."""

    name: ClassVar[str] = "broken"
    provides: ClassVar[str] = "echo-server"
    misaddressed = Local.misaddressed  # type: ignore[assignment]

    def start(self) -> str:
        raise RuntimeError("there is no engine; `echo doctor` says how to get one\nmore")

    def stop(self) -> None:
        pass


class Copy(Trainer):
    """Leaves the model as it was; judges what it is told to have sampled."""

    name = "copy"
    kinds = ("rl",)

    def settings(self, stage: Any) -> Mapping[str, Any]:
        return {}

    def train(self, job: Job) -> None:
        assert job.judge is not None
        for step in range(job.stage.steps):
            texts = job.stage.rollout.samples_per_prompt * ["right", "wrong"]
            rows = [
                {"domain": "echo", "id": "a", "prompt": "a", "response": text, "tokens": 1, "sample": i, "group": "g"}
                for i, text in enumerate(texts)
            ]
            for row in rows:
                job.judge.hand_over(row)
            job.events.emit("step", job.folder.name, step, **job.judge.judge(step, rows).metrics)
        shutil.copytree(job.model, job.output)


@hookimpl
def cascade_domains() -> list[type[Domain]]:
    return [Echo]


@hookimpl
def cascade_resources() -> list[type[Resource]]:
    return [Local, Broken]


@hookimpl
def cascade_trainers() -> list[type[Trainer]]:
    return [Copy]
