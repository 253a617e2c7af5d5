"""The images of containers: how they are called, which one a pool takes, and how they are made without a registry: `build`.

`python` is the Python that runs this, packed; `cpp` has g++ too, made of packages of the distribution, with the standard header
compiled in advance by the very commands that programs are compiled with. A tag is a hash of everything that an image
depends on here: the code that makes it, the version of Python, the machine and the distribution. So an image that has grown old has
another name than the one that is looked for, and is never taken by mistake.

Nothing here pulls. Where an image cannot be packed, `dockerfile` is the text for `docker build`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from cascade_sandbox import debian, python_files, rootfs
from cascade_sandbox.engine import Engine, missing_image
from cascade_sandbox.errors import SandboxError
from cascade_sandbox.languages import LANGUAGES
from cascade_sandbox.owner import IMAGE_LABEL, temporary_folder

KINDS = ("python", "cpp")
"""What can be built; `cpp` can do all that `python` can."""

PACKAGES = ("g++",)
_COMPILE_SECONDS = 600.0


def name(kind: str) -> str:
    """The name of the image of that kind, with the tag that belongs to this machine and this version of the code."""
    parts = [sys.version, platform.machine(), platform.libc_ver()[1]]
    modules = [rootfs, python_files]
    if kind == "cpp":
        modules.append(debian)
        parts += [debian.release(), *PACKAGES, *header_commands()]
    parts += [Path(str(module.__file__)).read_text("utf-8") for module in modules]
    return f"cascade-sandbox-{kind}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def choose(engine: Engine, asked: str = "") -> str:
    """The image that a pool takes: the one asked for, else `cpp` if it was built, else `python`.

    Raises:
        SandboxError: it is not there.
    """
    for candidate in [asked] if asked else [name("cpp"), name("python")]:
        if engine.image(candidate) is not None:
            return candidate
    raise missing_image(asked or name("python"))


def build(engine: Engine, kind: str, say: Callable[[str], None], *, again: bool = False) -> bool:
    """Makes the image of that kind; False if it was there already.

    Args:
        say: gets a line for each step.
        again: make it even if it is there.

    Raises:
        SandboxError: the host lacks something, or the engine fails.
    """
    if kind not in KINDS:
        raise SandboxError(f"there is no image {kind!r}, only {' and '.join(KINDS)}")
    target = name(kind)
    if engine.image(target) is not None and not again:
        return False
    if kind == "cpp":
        debian.check_host()
    with temporary_folder() as folder:
        archive = folder / "rootfs.tar"
        with rootfs.Rootfs(archive) as files:
            if kind == "cpp":
                debian.add_packages(files, PACKAGES, say)
            say(f"packing {python_files.VERSION} of {sys.base_prefix}")
            python_files.add_python(files)
        say(f"making the image of {archive.stat().st_size / 1e6:.0f} MB")
        step = f"{target}-unfinished" if kind == "cpp" else target
        engine.load(archive, step, f"{IMAGE_LABEL}={kind}")
    if kind == "cpp":
        say("compiling the standard header of C++")
        try:
            engine.extend(step, header_commands(), target, f"{IMAGE_LABEL}={kind}", _COMPILE_SECONDS)
        finally:
            engine.remove_image(step)
    return True


def old_images(engine: Engine) -> list[str]:
    """The names of images that were built by another version of the code, or for another Python; they may be in use."""
    current = {name(kind) for kind in KINDS}
    return [one for one in engine.images(IMAGE_LABEL) if one.startswith("cascade-sandbox-") and one not in current]


def header_commands() -> list[str]:
    """The command that compiles the standard header, as each version of C++ that is offered asks for: for Python in the image."""
    lines = ["import glob, os, subprocess", "header = glob.glob('/usr/include/*/c++/*/bits/stdc++.h')[-1]"]
    lines.append("os.mkdir(header + '.gch')")
    for language in LANGUAGES.values():
        if language.compile is not None and language.compile[0] == "g++":
            flags = [word for word in language.compile[1:] if word.startswith("-") and word != "-o"]
            target = f"header + '.gch/{language.name}.gch'"
            lines.append(f"subprocess.run(['g++', '-x', 'c++-header', *{flags!r}, '-o', {target}, header], check=True)")
    return ["python3", "-c", "\n".join(lines)]


def dockerfile(kind: str) -> str:
    """The text for `docker build -t NAME -`, for hosts on which nothing can be packed; needs a registry."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines = [f"# docker build -t {name(kind)} -", f"FROM python:{version}-slim"]
    if kind == "cpp":
        lines.append(
            "RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*"
        )
        lines.append(f"RUN {json.dumps(header_commands())}")
    lines.append('RUN ln -sf "$(command -v python3)" /usr/bin/python3 && mkdir -p /inside /socket /w')
    lines.append(f"LABEL {IMAGE_LABEL}={kind}")
    return "\n".join(lines) + "\n"
