"""One hostile program, and what it must not change: `Attack` and `PROPERTIES`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROPERTIES: Mapping[str, str] = {
    "cpu": "a program, its threads, and the children that it waits for end when their CPU time is used up",
    "wall": "a program that waits for ever ends",
    "memory": "a process that takes more memory than it may ends",
    "memory-of-all": "many processes that fill the memory together end, and nothing else does",
    "output": "a program that never stops to print ends, and costs no memory",
    "pipes": "a closed output, or one that a child still holds, keeps nobody waiting",
    "orphans": "no process outlives its run, however it hides",
    "forks": "a fork bomb ends, and the next program can fork",
    "disk": "a program that fills the disk, with bytes or with files, leaves room for the next",
    "files": "no file outlives its run, wherever it was written",
    "folders": "a run's own folder is removed, whatever depth, names, kinds and modes of files it has",
    "program": "a run cannot change what later runs of its program execute or read",
    "supervisor": "whatever runs programs is neither killed nor stopped, read, traced, limited or spoken to",
    "network": "there is nobody to connect to",
    "privileges": "a program is an ordinary user without any capability and cannot become another",
    "kernel": "system calls that reach beyond a program are refused",
    "ipc": "no shared memory, message queue or socket outlives its run",
    "private": "a judged program finds nothing of a private one, neither in files nor in processes",
}
"""What a sandbox may claim in its `guarantees`."""

HONEST = """\
given = input()
if given != "attack":
    print(int(given) + 1)
    raise SystemExit
"""
"""How every program begins: it is hostile when it reads `attack`; given a number, it answers with the next one."""

TRY = """\
import os
others = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]
def attempt(what, call):
    try: call()
    except (OSError, ValueError, AttributeError): return
    print('BREACH', what, flush=True)
"""
"""What programs that try one thing after the other begin with."""


@dataclass(frozen=True)
class Attack:
    """One hostile program, about a property. It must end with one of `verdicts`, or anyhow if there is none.

    It says BREACH, and what, when it got what it must not get. MARK is in the names of all that it leaves behind, and KEY is the
    number of it. A `harmful` one may hurt a machine that is not protected from it.
    """

    about: str
    name: str
    source: str
    verdicts: tuple[str, ...] = ()
    harmful: bool = False
