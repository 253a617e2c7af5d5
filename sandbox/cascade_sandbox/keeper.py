"""The process that keeps a pool of warm containers: `python -m cascade_sandbox.keeper`, started by `docker_sandbox`.

The first line of its standard input is a JSON object (`pool.Settings`); the first line that it prints is
`{"address": "unix:..."}` or `{"error": ...}`. It ends when its standard input ends, when its parent is gone, or at SIGTERM, and takes
its containers with it. If it is killed, they end by themselves: each waits for the connection that the keeper holds.

It is a broker (`broker.py`) and off the hot path. A client asks for a container, talks to that directly, and gives it back:

    {"op": "lease", "role": "judged" | "private", "checked": false}  -> {"op": "slot", "socket": path}
    {"op": "return", "broken": false, "reason": "", "runs": 1}       -> {"op": "ok"}
    {"op": "languages", "names": [...]}                 -> {"op": "languages", "offered": {name: "" or why not}}
    {"op": "status"}                                    -> {"op": "status", ...}

or gets `{"op": "error", "reason": ...}`. A checked lease is for a second attempt: its supervisor has just answered. A client that hangs
up gives back what it had, if the supervisor still answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import resource
import signal
from typing import Any

from cascade_sandbox.broker import serve
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.pool import END_SECONDS, Pool, Settings

_BACKLOG = 4096


async def _run(settings: Settings) -> None:
    parent = os.getppid()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    loop.add_reader(0, lambda: over.set() if not os.read(0, 4096) else None)
    pool = Pool(settings)
    try:
        server = await asyncio.start_unix_server(functools.partial(serve, pool), pool.socket, backlog=_BACKLOG)
        starting: asyncio.Task[Any] = asyncio.create_task(pool.start())
        ending: asyncio.Task[Any] = asyncio.create_task(over.wait())
        await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            _say({"address": f"unix:{pool.socket}"})
        while not over.is_set() and os.getppid() == parent:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 1)
        starting.cancel()
        server.close()
    finally:
        try:
            await asyncio.wait_for(pool.close(), END_SECONDS)
        except TimeoutError:
            pool.forget()


def _say(what: dict[str, str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(what), flush=True)


def _first_line() -> bytes:
    """Byte by byte, so that nothing behind it lies in a buffer."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return bytes(line)


def _raise_file_limit() -> None:
    """As many open files as the machine allows: every client that waits is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main() -> None:
    """Reads the settings, keeps the pool, and ends without waiting for calls that the engine does not answer."""
    _raise_file_limit()
    status = 0
    try:
        # Not asyncio.run: that would wait for threads in which the engine does not answer.
        asyncio.new_event_loop().run_until_complete(_run(Settings(**json.loads(_first_line()))))
    except (SandboxError, OSError, ValueError, TypeError) as error:
        _say({"error": str(error)})
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main()
