"""A small HTTP server in this process whose answers are scripted, and which can die and come back under its address."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes | str | dict[str, Any] | list[Any]]
Script = Callable[[str, dict[str, Any], int], Answer | float | None]
"""From path, body and number of the request to status and body; seconds for none, `None` for a connection that breaks off."""


class Scripted(ThreadingHTTPServer):
    """Answers as its script says; `asked` holds path, body and time of every request, `keys` what it was authorised by."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, script: Script, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.script, self.lock = script, threading.Lock()
        self.asked: list[tuple[str, dict[str, Any], float]] = []
        self.keys: list[str | None] = []
        self.headers: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.asked)
            self.server.asked.append((self.path, body, time.monotonic()))
            self.server.keys.append(self.headers["Authorization"])
        answer = self.server.script(self.path, body, number)
        if isinstance(answer, float):
            time.sleep(answer)
        if answer is None or isinstance(answer, float):
            self.close_connection = True
            return
        status, told = answer
        content = (
            told if isinstance(told, bytes) else told.encode() if isinstance(told, str) else json.dumps(told).encode()
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in self.server.headers.items() if status == 429 else ():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(script: Script, port: int = 0) -> Iterator[Scripted]:
    """The server, from a thread of its own, while the body runs."""
    server = Scripted(script, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
