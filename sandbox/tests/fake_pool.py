"""A pool without an engine: a keeper that leases sockets on which supervisors follow a script. For tests of the client alone."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from cascade_sandbox.client import DockerSandbox
from cascade_sandbox.inside.wire import receive, send

Script = Callable[[socket.socket], None]

READY = {"op": "ready", "compiled": None}
RESULT = {"op": "result", "verdict": "ok", "exit_code": 0, "cpu_seconds": 0.1, "wall_seconds": 0.2, "peak_bytes": 3}


def answer(*frames: tuple[dict, list[bytes]]) -> Script:
    """A supervisor that gives these answers, one for each request, and hangs up."""

    def script(sock: socket.socket) -> None:
        for header, blobs in frames:
            receive(sock)
            send(sock, header, blobs)

    return script


def garbage(data: bytes) -> Script:
    """A supervisor that answers the first request with these bytes."""

    def script(sock: socket.socket) -> None:
        receive(sock)
        sock.sendall(data)

    return script


HONEST = answer((READY, []), (RESULT, [b"out", b"err"]), (RESULT, [b"again", b""]))


class FakePool:
    """Each lease gets the next script."""

    def __init__(self, folder: Path, scripts: list[Script]) -> None:
        self.sandbox = DockerSandbox(f"unix:{folder / 'pool'}", check=False)
        self._returned: queue.SimpleQueue[dict] = queue.SimpleQueue()
        self._folder = folder
        self._scripts = iter(scripts)
        self._count = 0
        self._listener = self._listen("pool")
        threading.Thread(target=self._serve, daemon=True).start()

    def returned(self, count: int) -> list[dict]:
        """What clients said when they gave back so many places. They do not wait for the keeper to hear it, so this does."""
        return [self._returned.get(timeout=30) for _ in range(count)]

    def _listen(self, name: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(self._folder / name))
        sock.listen()
        return sock

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._client, args=(client,), daemon=True).start()

    def _client(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, EOFError):
            while True:
                header, _ = receive(client)
                if header["op"] == "lease":
                    send(client, self._lease())
                else:
                    self._returned.put(header)
                    send(client, {"op": "ok"})

    def _lease(self) -> dict:
        script = next(self._scripts, None)
        if script is None:
            return {"op": "error", "reason": "no container has been alive for 2 seconds"}
        self._count += 1
        name = f"slot-{self._count}"
        listener = self._listen(name)

        def supervise() -> None:
            with listener, contextlib.suppress(OSError, EOFError):
                sock, _ = listener.accept()
                with sock:
                    script(sock)

        threading.Thread(target=supervise, daemon=True).start()
        return {"op": "slot", "socket": str(self._folder / name)}

    def close(self) -> None:
        self._listener.close()


@contextlib.contextmanager
def fake_pool(folder: Path, *scripts: Script) -> Iterator[FakePool]:
    """A pool whose containers follow these scripts, one lease after the other."""
    pool = FakePool(folder, list(scripts))
    try:
        yield pool
    finally:
        pool.close()
