"""The supervisor's life: harden itself, prepare what runs share, serve one client after the other.

Two ways to live: in a container as root, with users for the runs and a keeper; or on this machine, for the process sandbox that
started it, as the same user, until that one closes its standard input.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from typing import NoReturn

from . import family, folder
from .confine import settle
from .door import Door
from .errors import Abandoned, Broken, Trouble
from .execution import Place
from .loop import Loop
from .memory import Oom
from .pressure import Memory
from .program import Host
from .session import Session
from .users import Users

WORK = "/w"
BROKEN, NOT_READY = 3, 4
"""Exit statuses: a run left something behind; this place cannot run anything."""


def main(argv: list[str]) -> int:
    """Serves until nobody wants anything any more; the exit status.

    `argv` is the path of the socket for clients (the keeper's is `k` beside it), perhaps a folder for the runs (in a container a
    tmpfs of mode 711), and `--here` where there is no container: then there are no users, and the end of stdin is the end.
    """
    words = [word for word in argv if word != "--here"]
    if len(words) not in (1, 2):
        print("usage: supervisor.py SOCKET [WORK] [--here]", file=sys.stderr)
        return NOT_READY
    serve = _serve_container if len(words) == len(argv) else _serve_here
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    gc.freeze()
    try:
        serve(words[0], words[1] if len(words) == 2 else WORK)
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
    settle(in_container=True)
    os.chmod(work, 0o711)  # some engines give a tmpfs the mode of the folder beneath it
    users, loop = Users(), Loop()
    host = Host(Place(loop, Oom(), Memory(True), users.killer), work, users)
    for name in os.listdir(work):  # of a supervisor that ended in the middle of a run
        folder.remove(os.path.join(work, name))
    _serve(Door(path, loop, users), host)


def _serve_here(path: str, work: str) -> None:
    settle(in_container=False)
    loop = Loop()
    host = Host(Place(loop, Oom(), Memory(False), 0), work, None)
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
