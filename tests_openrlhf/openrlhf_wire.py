"""Between OpenRLHF and a service: passes requests on as they are, and takes down what was asked and answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import psutil


@dataclass(frozen=True)
class Exchange:
    """One request: by which process (0 where nobody looked), what was asked, and the status and the answer."""

    pid: int
    path: str
    asked: Any
    status: int
    told: Any


class Wire(ThreadingHTTPServer):
    """The proxy; its `url` stands for that of the service.

    Args:
        target: the service's address.
        actor: how the processes are called that ask, to be told apart; `""` for those that need not be.
    """

    request_queue_size = 1024

    def __init__(self, target: str, actor: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self._actor = urlsplit(target).netloc, actor
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.exchanged: list[Exchange] = []

    def pid(self, port: int) -> int:
        """The process whose connection comes from that port."""
        for process in psutil.process_iter() if self._actor else ():
            with suppress(psutil.Error):
                is_one = " ".join(process.cmdline()).startswith(self._actor)
                if is_one and any(one.laddr and one.laddr.port == port for one in process.net_connections("tcp")):
                    return process.pid
        return 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Wire

    def setup(self) -> None:
        super().setup()
        self._pid: int | None = None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kept = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
        behind = HTTPConnection(self.server.target, timeout=600)
        try:
            behind.request("POST", self.path, body, kept)
            answer = behind.getresponse()
            told = answer.read()
        except (OSError, HTTPException):  # the service is gone, and whoever asks sees what it would have seen of it
            self.close_connection = True
            return
        finally:
            behind.close()
        if self._pid is None:  # only now: tries that nobody answers are many
            self._pid = self.server.pid(self.client_address[1])
        asked = json.loads(body)
        self.server.exchanged.append(Exchange(self._pid, self.path, asked, answer.status, json.loads(told)))
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def wire(target: str, actor: str = "") -> Iterator[Wire]:
    """A proxy before the service at `target`, while the body runs."""
    with Wire(target, actor) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
