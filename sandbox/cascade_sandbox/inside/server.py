"""The supervisor's life: harden itself, prepare what runs share, serve one client after the other.

Two ways to live: in a container as root, with users for the runs and a door; or on this machine for the process sandbox, with one
client on a descriptor that was handed down, and the same user as it.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile

from . import folder
from .confine import Confinement, Users, harden_supervisor
from .door import Door
from .errors import Abandoned, Broken, Trouble
from .execution import Place
from .loop import Loop
from .memory import Oom
from .program import Host
from .session import Session

BROKEN, NOT_READY = 3, 4
"""Exit statuses: a run left something behind; this place cannot run anything."""


def main(argv: list[str]) -> int:
    """Serves until nobody wants anything any more; the exit status."""
    parser = argparse.ArgumentParser(prog="supervisor", description=__doc__)
    parser.add_argument("socket", nargs="?", help="path of the socket for clients; the keeper's is k beside it")
    parser.add_argument("--here", type=int, metavar="FD", help="serve one client on this descriptor, without users")
    parser.add_argument("--work", default="/w", help="a folder for folders; in a container a tmpfs of mode 711")
    options = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    gc.freeze()
    try:
        return _here(options.here) if options.here is not None else _in_container(options.socket, options.work)
    except Broken as error:
        print(f"broken: {error}", file=sys.stderr)
        return BROKEN
    except Abandoned:
        return 0
    except Trouble as error:
        print(f"not ready: {error}", file=sys.stderr)
        return NOT_READY


def _in_container(path: str, work: str) -> int:
    if os.geteuid() != 0:
        raise Trouble("the supervisor of a container must be its root")
    harden_supervisor(is_private=True)
    users, loop = Users(), Loop()
    host = Host(Place(loop, Confinement(must_filter=True), Oom(), users.killer), work, users)
    for name in os.listdir(work):  # of a supervisor that ended in the middle of a run
        folder.remove(os.path.join(work, name))
    door = Door(path, loop, users)
    while True:
        Session(door.next_client(), host).serve()


def _here(fd: int) -> int:
    harden_supervisor(is_private=False)
    work = tempfile.mkdtemp(prefix="cascade-sandbox-")
    try:
        host = Host(Place(Loop(), Confinement(must_filter=False), Oom(), 0), work, None)
        with socket.socket(fileno=fd) as client:
            Session(client, host).serve()
        return 0
    finally:
        shutil.rmtree(work, ignore_errors=True)
