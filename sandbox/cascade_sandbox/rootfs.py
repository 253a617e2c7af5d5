"""The root file system of an image, written as a tar archive: `Rootfs`. Needs no root and no folder to unpack into.

Every name lands under /usr where distributions have merged /bin, /sbin and /lib into it, and links lead there, so that files
of a host that has merged them and packages of one that has not fit together. The first file of a name stays. Owners are
root, times are zero, and no file is setuid: the same input makes the same archive.

This module chooses no files; `python_files.py` and `debian.py` do.
"""

from __future__ import annotations

import io
import os
import posixpath
import stat
import tarfile
from pathlib import Path
from types import TracebackType
from typing import IO

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class Rootfs:
    """A tar archive at `path` that becomes a root file system. A context manager; the archive is whole when it is left."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w", format=tarfile.GNU_FORMAT)  # noqa: SIM115 - closed when this is left
        self._seen: set[str] = {""}
        for name in ("bin", "sbin", "lib", "lib64"):
            self.folder(f"usr/{name}")
            self._add(name, tarfile.SYMTYPE, 0o777, link=f"usr/{name}")

    def __contains__(self, name: str) -> bool:
        return _merged(name) in self._seen

    def folder(self, name: str, mode: int = 0o755) -> None:
        """An empty folder, and those that it lies in."""
        self._add(_merged(name), tarfile.DIRTYPE, mode)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add(_merged(name), tarfile.SYMTYPE, 0o777, link=target)

    def data(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """A file with this content."""
        self._add(_merged(name), tarfile.REGTYPE, mode, len(data), io.BytesIO(data))

    def copy(self, name: str, source: Path) -> None:
        """A file of this machine, links followed; whether it can be executed is kept."""
        with source.open("rb") as file:
            status = os.fstat(file.fileno())
            mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            self._add(_merged(name), tarfile.REGTYPE, mode, status.st_size, file)

    def member(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        """A member of another archive; a name that leads out of it, or a device, is left out."""
        name = posixpath.normpath(member.name.removeprefix("./"))
        if name in (".", *_MERGED) or name.startswith(("/", "../")):
            return
        mode = member.mode & 0o1777
        if member.isdir():
            self.folder(name, mode)
        elif member.issym():
            self.link(name, member.linkname)
        elif member.islnk():
            self._add(_merged(name), tarfile.LNKTYPE, mode, link=_merged(member.linkname.removeprefix("./")))
        elif member.isreg():
            self._add(_merged(name), tarfile.REGTYPE, mode, member.size, archive.extractfile(member))

    def _add(
        self, name: str, kind: bytes, mode: int, size: int = 0, file: IO[bytes] | None = None, link: str = ""
    ) -> None:
        if name in self._seen:
            return
        above = posixpath.dirname(name)
        if above not in self._seen:
            self._add(above, tarfile.DIRTYPE, 0o755)
        self._seen.add(name)
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.size, info.linkname = kind, mode, size, link
        self._tar.addfile(info, file)

    def __enter__(self) -> Rootfs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tar.close()


def _merged(name: str) -> str:
    """The name under /usr, where its first folder has been merged into that."""
    name = name.strip("/")
    return f"usr/{name}" if name.partition("/")[0] in _MERGED and "/" in name else name
