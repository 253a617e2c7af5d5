"""A new domain's package: its name is checked, and the files beside this module are written with the name put in.

What is written is the package of `docs/writing-a-domain.md`: it passes its own test as it is, and its author puts tasks and a
verdict in place of those that are there. It is written whole or not at all. Nothing is installed.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from string import Template

from cascade_core.errors import UsageError

NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
LONGEST = 40


@dataclass(frozen=True)
class Package:
    """What the package of a domain is called throughout.

    >>> package = Package("word-play")
    >>> package.distribution, package.module, package.cls
    ('cascade-plugin-word-play', 'cascade_plugin_word_play', 'WordPlayDomain')

    Raises:
        UsageError: the name cannot be that of a domain, a distribution and a module at once.
    """

    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or len(self.name) > LONGEST:
            raise UsageError(
                "a domain's name must be small letters and digits, parted by single '-' or '_', beginning with a letter,"
                f" at most {LONGEST} characters, found {self.name!r:.80}"
            )

    @property
    def distribution(self) -> str:
        return f"cascade-plugin-{self.name}"

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    @property
    def cls(self) -> str:
        """Ends in `Domain`, so that no name is that of something which the file imports."""
        return "".join(part.capitalize() for part in re.split("[_-]", self.name)) + "Domain"

    def files(self) -> dict[str, str]:
        """Paths inside the package to the text of each file."""
        return {
            f"{self.module}.py": self._filled("domain.py"),
            "pyproject.toml": self._filled("pyproject.toml"),
            "README.md": self._filled("README.md"),
            f"tests/test_{self.name.replace('-', '_')}.py": self._filled("test.py"),
        }

    def _filled(self, template: str) -> str:
        text = resources.files(__name__).joinpath(f"{template}.in").read_text("utf-8")
        return Template(text).substitute(
            name=self.name, distribution=self.distribution, module=self.module, cls=self.cls
        )


def refuse_taken(package: Package) -> None:
    """Insists that nothing installed is called like the domain or its distribution.

    Raises:
        UsageError: names who has the name.
    """
    from cascade_core.plugins import registry

    for owner in registry().owners("domain", package.name):
        raise UsageError(f"domain {package.name!r} is offered by {owner} already; choose another name")
    try:
        installed = distribution(package.distribution)
    except PackageNotFoundError:
        return
    raise UsageError(f"{package.distribution} {installed.version} is installed already; choose another name")


def write(package: Package, folder: Path) -> list[Path]:
    """Writes the package into a new folder and says what was written.

    Raises:
        UsageError: the folder is there already, or its parent is not.
        OSError: it cannot be written; nothing is left of it.
    """
    try:
        folder.mkdir()
    except FileExistsError as cause:
        raise UsageError(f"{folder} is there already; give another --folder") from cause
    except FileNotFoundError as cause:
        raise UsageError(f"{folder.parent} is no folder, where {folder.name} was to be made") from cause
    try:
        written = [folder / name for name in package.files()]
        for path, text in zip(written, package.files().values(), strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return written
