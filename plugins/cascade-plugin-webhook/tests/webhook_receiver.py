"""A real HTTP server in this process that takes posts, or answers as it was told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What was posted, whatever the answer; `answers` are given first (status, or `"hang"`, `"slam"`), then 204."""

    url: str = ""
    answers: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    posts: list[tuple[dict[str, str], bytes, Any]] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)

    @property
    def taken(self) -> list[dict[str, Any]]:
        """The events that were answered with 2xx, in order."""
        return [event for _, body, answer in self.posts if answer in (200, 204) for event in json.loads(body)["events"]]


@contextmanager
def receiver(*answers: Any, **headers: str) -> Iterator[Receiver]:
    state = Receiver(answers=list(answers), headers=headers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = state.answers.pop(0) if state.answers else 204
            state.posts.append((dict(self.headers), body, answer))
            if answer == "hang":
                state.open.wait(30)
            if isinstance(answer, str):  # the connection is closed without an answer
                return
            self.send_response(answer)
            for name, value in state.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        state.open.set()
        server.shutdown()
        server.server_close()
        thread.join()
