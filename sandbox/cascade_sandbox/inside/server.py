"""The supervisor's life: harden itself, prepare what runs share, serve one client after the other.

Two ways to live: in a container as root, with users for the runs and a keeper; or on this machine, for the process sandbox that
started it, as the same user, until that one closes its standard input.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import signal
import sys
from typing import NoReturn

from . import family, folder
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
    parser.add_argument("socket", help="path of the socket for clients; the keeper's is k beside it")
    parser.add_argument("--work", default="/w", help="a folder for folders; in a container a tmpfs of mode 711")
    parser.add_argument("--here", action="store_true", help="no container: no users, and the end of stdin is the end")
    options = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    gc.freeze()
    try:
        (_serve_here if options.here else _serve_container)(options.socket, options.work)
    except Broken as error:
        print(f"broken: {error}", file=sys.stderr)
        return BROKEN
    except Abandoned:
        return 0
    except Trouble as error:
        print(f"not ready: {error}", file=sys.stderr)
        return NOT_READY
    return 0


def _serve_container(path: str, work: str) -> None:
    if os.geteuid() != 0:
        raise Trouble("the supervisor of a container must be its root")
    harden_supervisor(is_private=True)
    users, loop = Users(), Loop()
    host = Host(Place(loop, Confinement(must_filter=True), Oom(), users.killer), work, users)
    for name in os.listdir(work):  # of a supervisor that ended in the middle of a run
        folder.remove(os.path.join(work, name))
    _serve(Door(path, loop, users), host)


def _serve_here(path: str, work: str) -> None:
    harden_supervisor(is_private=False)
    loop = Loop()
    host = Host(Place(loop, Confinement(must_filter=False), Oom(), 0), work, None)
    loop.add(0, select.POLLIN, _stdin_ended)
    try:
        door = Door(path, loop, None)
        print("ready", flush=True)
        _serve(door, host)
    finally:
        family.end(None, 0)
        folder.remove(os.path.dirname(path))


def _serve(door: Door, host: Host) -> NoReturn:
    while True:
        Session(door.next_client(), host).serve()


def _stdin_ended(events: int) -> NoReturn:
    raise Abandoned("the process that started this supervisor ended")
