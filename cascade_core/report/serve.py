"""The report of a run that is going on, over HTTP on this machine alone: `cascade report RUN --serve`.

`Following` makes the page in memory, again when `events.jsonl`, a stage's metrics, the lock or the spec have changed, and no more
often than keeps its own work below a tenth of the time: the run needs the processor. It reads the folder and writes nothing into it.
`serve` listens on the loopback address only. There is no token: whoever can reach it can read the folder's report as well; but a
request that names another host is refused, so that no web page can reach it by a name that it points here (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cascade_core.errors import RunError, UsageError

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""What a request's `Host` may name, with any port: it may have come through a tunnel."""
LEAST_PAUSE = 1.0
"""Seconds between two pages at least; else ten times what the last one took."""


class Following:
    """A run's newest page and its version; safe to use from several threads."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds.

        Raises:
            RunError: `run` is no run folder.
        """
        self._run, self._clock, self._lock = run, clock, threading.Lock()
        self._version = self._page = ""
        self._is_finished = False
        self._next = clock()
        self._renew()

    def version(self) -> dict[str, str | bool]:
        """The version of the page that `page` gives now, and whether the run is finished."""
        with self._lock:
            self._renew()
            return {"version": self._version, "finished": self._is_finished}

    def page(self) -> str:
        """The newest page."""
        with self._lock:
            self._renew()
            return self._page

    def _renew(self) -> None:
        from cascade_core.report.page import render
        from cascade_core.report.record import read

        begin = self._clock()
        if begin < self._next or (found := self._stamp()) == self._version:
            return
        try:
            record = read(self._run)
            page = render(record, found)
        except (RunError, OSError):
            # A folder that is being moved or made anew: the last page is still true of what it shows.
            if not self._page:
                raise
            return
        self._version, self._page, self._is_finished = found, page, record.is_finished
        self._next = self._clock() + max(LEAST_PAUSE, 10 * (self._clock() - begin))

    def _stamp(self) -> str:
        """What tells one state of the folder from another: names, sizes and times of the files that a run writes last."""
        files = [self._run / name for name in ("events.jsonl", "lock.json", "spec.yaml")]
        files += sorted(self._run.glob("stages/*/metrics.json"))
        told = []
        for path in files:
            try:
                stat = path.stat()
            except OSError:
                continue
            told.append(f"{path.relative_to(self._run)} {stat.st_size} {stat.st_mtime_ns}")
        return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()[:16]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, following: Following) -> None:
        self.following = following
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is nobody's error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30

    def do_GET(self) -> None:
        """The page, its version, or a refusal."""
        host = self.headers.get("Host", "")
        if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
            self._answer(421, "text/plain", "this server answers on the loopback address only\n")
        elif self.path == "/":
            self._answer(200, "text/html", self.server.following.page())
        elif self.path == "/version":
            self._answer(200, "application/json", json.dumps(self.server.following.version()))
        else:
            self._answer(404, "text/plain", "there is / and /version\n")

    do_HEAD = do_GET

    def _answer(self, status: int, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(data)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def version_string(self) -> str:
        """What runs here is nobody's business."""
        return "cascade"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not told: one comes every two seconds."""


def serve(run: Path, port: int, say: Callable[[str], None]) -> None:
    """Serves the report of `run` until `KeyboardInterrupt`; `port` 0 takes any that is free. `say` gets the address once it answers.

    Raises:
        RunError: `run` is no run folder.
        UsageError: the port is taken or not allowed.
    """
    following = Following(run)
    try:
        server = _Server(port, following)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on 127.0.0.1:{port}: {error}; --port 0 takes any port that is free") from None
    with server:
        say(f"http://127.0.0.1:{server.server_address[1]}/")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
