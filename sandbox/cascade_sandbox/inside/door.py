"""Who may come in: one client at a time, and the keeper, whose connection keeps the supervisor alive.

A second client waits at the door for a few seconds (the first one may be leaving) and is then told that this place is taken;
nobody waits without a deadline. When the keeper's connection is lost, or never came, the supervisor ends itself, and the
container with it: what started it was killed.
"""

from __future__ import annotations

import collections
import os
import select
import socket
import stat
import struct
import time
from typing import Optional

from . import wire
from .errors import Abandoned
from .loop import POLLRDHUP, Loop
from .users import Users

ABANDONED_SECONDS = 20.0
WAIT_SECONDS = 5.0
MAX_WAITING = 8


class Door:
    """The listening sockets: `path` for clients and, where there are users, `k` beside it for the keeper."""

    def __init__(self, path: str, loop: Loop, users: Optional[Users]) -> None:
        self._loop = loop
        self._users = users
        self._waiting: collections.deque[tuple[float, socket.socket]] = collections.deque()
        self._keepers: list[socket.socket] = []
        self._alone_since = time.monotonic()
        self._clients = _listen(path)
        loop.add(self._clients.fileno(), select.POLLIN, self._on_client)
        if users is not None:
            self._keep = _listen(os.path.join(os.path.dirname(path), "k"))
            loop.add(self._keep.fileno(), select.POLLIN, self._on_keeper)
        loop.hooks.append(self._look_around)

    def next_client(self) -> socket.socket:
        """Waits for a client.

        Raises:
            Abandoned: the keeper is gone.
        """
        while not self._waiting:
            self._loop.step(float("inf"))
        return self._waiting.popleft()[1]

    def _on_client(self, events: int) -> None:
        client = self._accept(self._clients)
        if client is None:
            return
        if len(self._waiting) >= MAX_WAITING:
            _refuse(client)
            return
        self._waiting.append((time.monotonic() + WAIT_SECONDS, client))

    def _on_keeper(self, events: int) -> None:
        keeper = self._accept(self._keep)
        if keeper is None:
            return
        self._keepers.append(keeper)
        self._loop.add(keeper.fileno(), POLLRDHUP, lambda _: self._lose(keeper))

    def _lose(self, keeper: socket.socket) -> None:
        self._loop.remove(keeper.fileno())
        self._keepers.remove(keeper)
        keeper.close()
        self._alone_since = time.monotonic()

    def _look_around(self) -> None:
        now = time.monotonic()
        if self._users is not None and not self._keepers and now - self._alone_since > ABANDONED_SECONDS:
            raise Abandoned("nobody keeps this supervisor")
        while self._waiting and self._waiting[0][0] < now:
            _refuse(self._waiting.popleft()[1])

    def _accept(self, listener: socket.socket) -> Optional[socket.socket]:
        """The next connection, unless it comes from a judged program, which cannot reach the socket to begin with."""
        try:
            client, _ = listener.accept()
        except OSError:  # gone again already
            return None
        if self._users is not None and _user_of(client) in self._users:
            client.close()
            return None
        return client


def _user_of(client: socket.socket) -> int:
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _refuse(client: socket.socket) -> None:
    with client:
        client.settimeout(0)
        try:
            wire.send(client, {"op": "error", "reason": "busy: another client is served here"})
        except OSError:
            return


def _listen(path: str) -> socket.socket:
    """A listening socket that belongs to the owner of the folder it is in, who may not be root on the other side."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.lexists(path):
        os.unlink(path)
    listener.bind(path)
    parent = os.stat(os.path.dirname(path))
    os.chmod(path, 0o600)
    try:
        os.chown(path, parent.st_uid, parent.st_gid)
    except OSError:  # an owner who has no number in this namespace: the folder alone keeps others out, when it does
        if stat.S_IMODE(parent.st_mode) & 0o077 == 0:
            os.chmod(path, 0o666)
    listener.listen(MAX_WAITING)
    listener.setblocking(False)
    return listener
