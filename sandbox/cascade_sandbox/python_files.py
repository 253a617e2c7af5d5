"""Packs the Python that runs this into a `Rootfs`: interpreter, standard library, shared libraries, the locale C.UTF-8, /bin/sh and /bin/rm.

The interpreter finds its library by looking beside itself, so it works from /usr wherever it came from: a distribution, pyenv,
uv or conda. Shared libraries are those that `ldd` names, in the folder of the C library, which the loader always searches.
Modules are compiled here, with paths of the image. Left out: packages that were installed, tests, tkinter and what only developers need.

Linux with CPython only; another host builds its image from the text that `dockerfile.py` has.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cascade_sandbox.errors import SandboxError
from cascade_sandbox.rootfs import Rootfs

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_OUT = re.compile(
    r"test|tests|idlelib|tkinter|turtledemo|lib2to3|ensurepip|site-packages|dist-packages|__pycache__|config-.*"
)
_TOOLS = ("sh", "rm")
_LOCALES = Path("/usr/lib/locale")
_LOCALE = "C.[uU][tT][fF]*8/**/*"
"""The locale that programs run in; distributions write its name in two ways. A C library that has it built in has no such folder."""
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


def add_python(rootfs: Rootfs) -> None:
    """Adds everything that a container needs to run Python programs.

    Raises:
        SandboxError: this is not CPython on Linux, or a library that the interpreter needs cannot be found.
    """
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        raise SandboxError(
            f"an image can be packed from CPython on Linux, found {sys.implementation.name} on {sys.platform}; "
            "cascade sandbox build --dockerfile prints a recipe for docker build"
        )
    interpreter, library = _interpreter(), Path(os.__file__).resolve().parent
    inside = f"usr/{sys.platlibdir}/{VERSION}"
    binaries = [interpreter, *(_tool(name) for name in _TOOLS)]
    for name in ("tmp", "proc", "sys", "dev", "inside", "socket", "w"):
        rootfs.folder(name, 0o1777 if name == "tmp" else 0o755)
    for name, text in _ACCOUNTS.items():
        rootfs.data(name, text.encode())
    rootfs.copy(f"usr/bin/{VERSION}", interpreter)
    rootfs.link("usr/bin/python3", VERSION)
    for path in sorted(_LOCALES.glob(_LOCALE)):
        if path.is_file():
            rootfs.copy(path.as_posix(), path)
    for name, path in zip(_TOOLS, binaries[1:], strict=True):
        rootfs.copy(f"usr/bin/{name}", path)
    files = list(_library(library))
    for path in files:
        rootfs.copy(f"{inside}/{path.relative_to(library).as_posix()}", path)
    _add_compiled(rootfs, [path for path in files if path.suffix == ".py"], library, inside)
    rootfs.folder(f"{inside}/site-packages")
    _add_shared(rootfs, binaries, [path for path in files if ".so" in path.suffixes])


def _interpreter() -> Path:
    for path in (Path(sys.base_prefix) / "bin" / VERSION, Path(sys.executable)):
        if path.is_file():
            return path.resolve()
    raise SandboxError(f"the interpreter of {sys.base_prefix} cannot be found")


def _tool(name: str) -> Path:
    found = shutil.which(name, path="/bin:/usr/bin")
    if found is None:
        raise SandboxError(f"/bin/{name} cannot be found; the image needs it")
    return Path(found).resolve()


def _library(folder: Path) -> Iterator[Path]:
    """The files of the standard library, in order."""
    for path in sorted(folder.iterdir()):
        if _OUT.fullmatch(path.name):
            continue
        if path.is_dir():
            yield from _library(path)
        elif path.is_file() and path.suffix != ".a":
            yield path


def _add_compiled(rootfs: Rootfs, sources: list[Path], library: Path, inside: str) -> None:
    """The byte code of every module, never checked against its source, which nobody can change in there."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "module.pyc")
        for source in sources:
            name = f"{inside}/{source.relative_to(library).as_posix()}"
            try:
                py_compile.compile(str(source), str(target), f"/{name}", doraise=True, invalidation_mode=mode)
            except (py_compile.PyCompileError, SyntaxError, UnicodeDecodeError):
                continue  # a template or a test case: Python itself installs some that do not compile
            rootfs.copy(importlib.util.cache_from_source(name), target)


def _add_shared(rootfs: Rootfs, binaries: list[Path], modules: list[Path]) -> None:
    """The shared libraries of all of them: the loader at its own path, the others in the folder of the C library."""
    found: dict[str, Path] = {}
    loaders = set()
    for line in _ldd([*binaries, *modules]):
        name, _, rest = line.partition(" => ")
        path = Path((rest or name).split(" (")[0].strip())
        if rest.startswith("not found") and any(name in other for other in _ldd(binaries)):
            raise SandboxError(f"the shared library {name} that {binaries[0]} needs cannot be found")
        if path.is_absolute() and path.is_file():
            loaders |= set() if rest else {path}
            found.setdefault(path.name, path)
    home = next((path.parent for name, path in found.items() if name.startswith(("libc.so", "ld-musl"))), None)
    if home is None:
        raise SandboxError(f"ldd names no C library for {binaries[0]}; a static Python cannot be packed")
    for name, path in sorted(found.items()):
        rootfs.copy(str(path if path in loaders else home / name), path)


def _ldd(paths: list[Path]) -> list[str]:
    try:
        done = subprocess.run(["ldd", *map(str, paths)], capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"the shared libraries of Python cannot be listed: {error}") from error
    return [line.strip() for line in done.stdout.splitlines() if line[:1].isspace()]
