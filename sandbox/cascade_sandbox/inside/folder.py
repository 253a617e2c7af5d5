"""Folders of sessions and runs, and their removal, whatever a program made of them.

A session's folder (root's, readable) holds the program; a run's folder (its user's alone) is its working directory. When one is
removed, nothing of its user lives any more, so that nothing races. No depth that a program can build needs recursion, a long path, or
more than one open folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Optional

from .errors import Broken, Trouble

NAME_BYTES = 255
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def check_name(name: object) -> str:
    """The name itself.

    Raises:
        Trouble: it is no name of a file that may lie in a folder of ours.
    """
    if isinstance(name, str) and "\0" not in name and "/" not in name and name not in ("", ".", ".."):
        encoded = name.encode("utf-8", "surrogateescape")
        if len(encoded) <= NAME_BYTES:
            return name
    raise Trouble(f"a file needs a name without a slash, of at most {NAME_BYTES} bytes, found {name!r}")


def make(path: str, files: Mapping[str, bytes], uid: Optional[int] = None, readable: bool = False) -> None:
    """A new folder with these files: the user's own, or everybody's to read.

    Raises:
        OSError: no room, or it exists.
    """
    os.mkdir(path, 0o700)
    for name, data in files.items():
        write(os.path.join(path, name), data, 0o444 if readable else 0o600, uid)
    if uid is not None:
        os.chown(path, uid, uid)
    if readable:
        os.chmod(path, 0o755)


def write(path: str, data: bytes, mode: int, uid: Optional[int] = None) -> None:
    """A new file with this mode, whatever the umask says.

    Raises:
        OSError: no room, or it exists.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, mode)
        if uid is not None:
            os.fchown(fd, uid, uid)
    finally:
        os.close(fd)


def remove(path: str) -> None:
    """Removes the folder and all that is in it; fine when it is gone already. An empty one, as most are, takes one system call.

    Raises:
        Broken: something of it stayed.
    """
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        _remove_all(path)


def _remove_all(path: str) -> None:
    try:
        _remove(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Broken(f"a folder of a run cannot be removed: {error}") from error


def _remove(path: str) -> None:
    """Walks down and up by one open folder at a time: what is above is reached through `..`."""
    above, here = [[path]], os.open(os.path.dirname(path) or ".", FOLDER)
    inside: list[str] = []  # names of the folders that are open, from the top
    try:
        while above[-1] or inside:
            if above[-1]:
                name = os.path.basename(above[-1][-1])
                inside.append(name)
                here = _enter(here, name)
                above.append(_empty(here))
            else:
                above.pop()
                here = _enter(here, "..")
                os.rmdir(inside.pop(), dir_fd=here)
                above[-1].pop()
    finally:
        os.close(here)


def _enter(here: int, name: str) -> int:
    """Another folder in the place of this one, which is closed."""
    if name != ".." and os.geteuid() != 0:  # its owner may have closed it to itself; root needs no permission
        os.chmod(name, 0o700, dir_fd=here)
    there = os.open(name, FOLDER, dir_fd=here)
    os.close(here)
    return there


def _empty(here: int) -> list[str]:
    """Unlinks all that is no folder; the names of the folders."""
    folders: list[str] = []
    with os.scandir(here) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=here)
    return folders
