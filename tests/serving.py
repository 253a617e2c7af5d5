"""A reward service for tests: in a thread of this process over faulty domains, or as a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from faulty import faulty_scorer

from cascade_core.serve.access import Access
from cascade_core.serve.app import Limits, Service
from cascade_core.serve.index import Index
from cascade_core.serve.listen import background, bound


class Served:
    """A running service: `post` and `get` give status and JSON."""

    def __init__(self, url: str, service: Service | None = None, said: Sequence[str] = ()) -> None:
        self.url, self.service, self.said = url, service, said
        self.client = httpx2.Client(base_url=url, timeout=60)

    def post(self, path: str, data: Any = None, content: bytes | None = None, **headers: str) -> tuple[int, Any]:
        body = json.dumps(data).encode() if content is None else content
        found = self.client.post(path, content=body, headers=headers)
        return found.status_code, found.json()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        found = self.client.get(path, headers=headers)
        return found.status_code, found.json()

    def number(self, name: str, **labels: str) -> float:
        """One number of `/metrics`; 0 where there is none yet."""
        inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        wanted = f"{name}{{{inside}}}" if inside else name
        lines = self.client.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == wanted), 0.0)


@contextmanager
def served(
    index: Index | None = None, token: str = "", limits: Limits | None = None, rollouts: Any = None, **scorer: Any
) -> Iterator[Served]:
    """The service over the faulty domains, in a thread."""
    said: list[str] = []
    with faulty_scorer(**scorer) as judge, bound("127.0.0.1", 0) as channel:
        service = Service(
            judge,
            index or Index(),
            limits or Limits(),
            Access(token),
            frozenset({"batchwise"}),
            rollouts and (lambda: rollouts(judge)),
            said.append,
        )
        with background(service, channel) as url:
            found = Served(url, service, said)
            with found.client:
                yield found


def row(response: str, name: str = "t", **more: Any) -> dict[str, Any]:
    """A row of the domain faulty."""
    return {"domain": "faulty", "id": name, "prompt": "1+1?", "answer": "right", "response": response, **more}


class Program:
    """A service that is a process of its own."""

    def __init__(self, *command: str, **environment: str) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            assert line, self.told()
            text += line
        self.served = Served(json.loads(text)["address"])

    def told(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def end(self) -> int:
        """Waits for its end, which somebody has brought about."""
        self.served.client.close()
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        return status


CASCADE = ("-c", "from cascade_core.cli import main; main()")
EXTENSION = str(Path(__file__).parent / "extension")
