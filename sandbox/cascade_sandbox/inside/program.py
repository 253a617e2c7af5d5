"""A program in its folder: written there, compiled there under confinement, and prepared for each run.

The folder is root's and only read by the runs; what a compiler makes is copied into it, so that no run can change it. Each run has
a new user and a new folder of its own, in which the files of its input lie, and links to the files of the program.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from . import folder
from .bounds import COMPILING, Bounds
from .child import PATH, Command
from .errors import Trouble
from .execution import Execution, Outcome, Place
from .users import Users

PROGRAM = "program"
STACK_BYTES = 64 << 20


class Host:
    """What the sessions of one supervisor share: the place of runs, a folder for folders, users."""

    def __init__(self, place: Place, folder_path: str, users: Optional[Users]) -> None:
        self.place = place
        self.folder = folder_path
        self.users = users
        self._numbers: Iterator[int] = itertools.count()

    def new(self) -> tuple[str, Optional[int]]:
        """A path that nothing had before, and a user."""
        uid = self.users.next() if self.users else None
        return os.path.join(self.folder, f"{next(self._numbers)}-{uid or 0}"), uid


class Opened:
    """A program in its folder, ready to run."""

    def __init__(self, header: Mapping[str, Any], blobs: Sequence[bytes], host: Host) -> None:
        language = header.get("language")
        if not isinstance(language, dict) or not blobs:
            raise Trouble("open takes a language and a source")
        self.host = host
        self.file = folder.check_name(language.get("file"))
        self.run_argv = _argv(language.get("run"))
        self.compile_argv = _argv(language.get("compile")) if language.get("compile") else None
        self.environment = {str(name): str(value) for name, value in dict(language.get("environment") or {}).items()}
        stack = min(int(language.get("stack_bytes") or STACK_BYTES), int(header["limits"]["memory_bytes"]) // 2)
        self.bounds = Bounds.read(header["limits"], max(stack, 1 << 20))
        self.names = _names(header, len(blobs) - 1)
        reserved = [self.file, PROGRAM] if self.compile_argv else [self.file]
        if set(reserved) & set(self.names):
            raise Trouble(f"no file beside this program may be called {' or '.join(reserved)}")
        self.path = host.new()[0]
        try:
            folder.make(self.path, {self.file: blobs[0], **dict(zip(self.names, blobs[1:]))}, readable=True)
        except OSError:
            folder.remove(self.path)
            raise

    def close(self) -> None:
        """Removes the program: no run can have changed its folder, so that what is in it is known."""
        for name in (self.file, *self.names, *([PROGRAM] if self.compile_argv else ())):
            with contextlib.suppress(FileNotFoundError):  # there is nothing where it did not compile
                os.unlink(os.path.join(self.path, name))
        folder.remove(self.path)

    def compile(self) -> Optional[Outcome]:
        """Compiles it, confined like a run; None where there is nothing to compile.

        Raises:
            Trouble: no such compiler here.
        """
        if self.compile_argv is None:
            return None
        path, uid = self.host.new()
        try:
            folder.make(path, {}, uid)
            argv = self._fill(self.compile_argv, os.path.join(path, PROGRAM))
            outcome = Execution(Command(argv, path, self.environment, COMPILING, uid), self.host.place, b"").run()
            if outcome.verdict != "ok" or not self._take_program(os.path.join(path, PROGRAM)):
                return outcome._replace(verdict="compile_error")
            return outcome
        finally:
            folder.remove(path)

    def _take_program(self, made: str) -> bool:
        """Moves what the compiler made, when that is a file, to where no run can change it; no process has it open any more."""
        try:
            if not stat.S_ISREG(os.lstat(made).st_mode):
                return False
        except FileNotFoundError:
            return False
        target = os.path.join(self.path, PROGRAM)
        os.rename(made, target)
        os.chown(target, os.geteuid(), os.getegid())
        os.chmod(target, 0o555)
        return True

    def prepare(self, header: Mapping[str, Any], files: Sequence[bytes], path: str, uid: Optional[int]) -> Command:
        """A run's folder, and what to start in it: files of the input, and links to those of the program.

        Raises:
            Trouble: names or arguments that cannot be.
            OSError: no room.
        """
        args = header.get("args", [])
        if not isinstance(args, list) or not all(isinstance(arg, str) and "\0" not in arg for arg in args):
            raise Trouble("arguments are a list of texts without NUL")
        b"".join(map(os.fsencode, args))  # here and not in the child, where it would be the program that failed
        names = _names(header, len(files))
        folder.make(path, dict(zip(names, files)), uid)
        for name in self.names:
            if name not in names:
                os.symlink(os.path.join(self.path, name), os.path.join(path, name))
        argv = [*self._fill(self.run_argv, os.path.join(self.path, PROGRAM)), *args]
        return Command(argv, path, self.environment, self.bounds, uid, self.compile_argv is None)

    def _fill(self, argv: Sequence[str], program: str) -> list[str]:
        places = {"{source}": os.path.join(self.path, self.file), "{program}": program, "{folder}": self.path}
        filled = [places.get(word, word) for word in argv]
        if filled[0] != program:
            filled[0] = _executable(filled[0])
        return filled


@functools.lru_cache(maxsize=64)
def _executable(name: str) -> str:
    """The path of a command that belongs to this place."""
    for path in [name] if "/" in name else [os.path.join(part, name) for part in PATH.split(":")]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Trouble(f"there is no {name} here")


def _argv(given: object) -> list[str]:
    if isinstance(given, list) and given and all(isinstance(word, str) and word and "\0" not in word for word in given):
        return list(given)
    raise Trouble(f"a command is a list of words, found {given!r}")


def _names(header: Mapping[str, Any], count: int) -> list[str]:
    given = header.get("files", [])
    if not isinstance(given, list) or len(given) != count or len(set(map(str, given))) != count:
        raise Trouble(f"the names of {count} files are needed, each once, found {given!r}")
    return [folder.check_name(name) for name in given]
