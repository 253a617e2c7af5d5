"""The socket, the start and the end of the process that serves.

The address is taken before anything is served, so that a port in use is one clear sentence. SIGTERM and SIGINT drain: no new connection is
taken, requests in flight are answered (for `drain` seconds), then the process ends with status 0 and the same command can go on. A
second signal does not wait. As many connections are taken as the system lets a process open.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import uvicorn

from cascade_core.errors import ResourceError, UsageError
from cascade_core.serve.access import LOOPBACK
from cascade_core.serve.app import Service, build
from cascade_core.threads import started

if TYPE_CHECKING:
    from starlette.applications import Starlette

_BACKLOG = 16_384


def bound(host: str, port: int) -> socket.socket:
    """A socket at that address; port 0 takes any that is free.

    Raises:
        UsageError: it cannot be had; says why.
    """
    channel = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        channel = socket.socket(family, kind, protocol)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        channel.bind(address)
        channel.listen(_BACKLOG)
    except (OSError, UnicodeError) as cause:
        if channel is not None:
            channel.close()
        why = getattr(cause, "strerror", None) or str(cause)
        raise UsageError(
            f"nothing can listen at {host}:{port}: {why.lower()}; name another --host or --port (0 takes any that is free)"
        ) from cause
    return channel


def address(channel: socket.socket) -> str:
    """The URL of a bound socket."""
    host, port = channel.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    return host in LOOPBACK


class _Server(uvicorn.Server):
    """Told when it listens; signals drain it and are not raised again afterwards, since others clean up behind it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready, self._ending = ready, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def serve(service: Service, channel: socket.socket, ready: Callable[[], None], drain: float) -> None:
    """Serves until a signal; returns when everything in flight is answered, or `drain` seconds have passed.

    Args:
        ready: called once, when requests are answered.
    """
    listen(build(service), channel, ready, drain, service.drain)


def listen(
    app: Starlette,
    channel: socket.socket,
    ready: Callable[[], None],
    drain: float,
    ending: Callable[[], None] = lambda: None,
) -> None:
    """The same for any application, whoever made it; `ending` is called once, when no new connection is taken any more."""
    _server(app, ready, drain, ending).run([channel])


@contextlib.contextmanager
def background(service: Service, channel: socket.socket, drain: float = 5.0) -> Iterator[str]:
    """Serves from a thread of this process while the body runs; yields the URL."""
    begun = threading.Event()
    server = _server(build(service), begun.set, drain, service.drain)
    thread = started(server.run, [[channel]], name="cascade-serve")
    service.is_up = thread.is_alive
    try:
        while not begun.wait(0.1):
            if not thread.is_alive():
                raise ResourceError("the service could not be started; see standard error")
        yield address(channel)
    finally:
        server.should_exit = True
        thread.join()


def _server(app: Starlette, ready: Callable[[], None], drain: float, ending: Callable[[], None]) -> _Server:
    _open_more_files()
    settings: dict[str, Any] = {"lifespan": "on", "access_log": False, "log_level": "warning", "server_header": False}
    config = uvicorn.Config(
        app,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(drain)),
        ws="none",
        **settings,
    )
    return _Server(config, ready, ending)


def _open_more_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else hard
    if soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
