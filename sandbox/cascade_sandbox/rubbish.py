"""What a crash left behind: containers and folders whose owner has ended (`find`), and their removal (`remove`).

Everything that this package makes on an engine or in a folder for temporary files says whose it is (`owner.py`). Only what
says so, and whose owner has certainly ended, is rubbish; everything else is left alone, whatever it is called. Containers
end by themselves soon after their keeper, so what is found here was left where the engine or the machine went down.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cascade_sandbox import images
from cascade_sandbox.engine import Engine
from cascade_sandbox.owner import FOLDER_PREFIX, OWNER_FILE, OWNER_LABEL, POOL_LABEL, read_owner


@dataclass(frozen=True)
class Rubbish:
    """Names of containers and images, and folders."""

    containers: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    images: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.containers) + len(self.folders) + len(self.images)


def find(engine: Engine, *, old_images: bool = False) -> Rubbish:
    """What can be removed.

    Args:
        old_images: images of ours that are not what this version would build, too.

    Raises:
        SandboxError: the engine does not answer.
    """
    ours = [one for one in engine.containers(POOL_LABEL) if one.labels.get(POOL_LABEL)]  # an image's label is empty
    containers = tuple(one.name for one in ours if _is_over(one.labels.get(OWNER_LABEL, "")))
    return Rubbish(containers, folders(), tuple(images.old_images(engine)) if old_images else ())


def folders() -> tuple[Path, ...]:
    """This user's folders whose owner has ended."""
    places = dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp")))
    return tuple(path for place in places for path in sorted(place.glob(f"{FOLDER_PREFIX}*")) if _is_left(path))


def remove(engine: Engine, rubbish: Rubbish) -> None:
    """Removes it; what has gone meanwhile is fine.

    Raises:
        SandboxError: the engine does not answer, or an image is in use.
    """
    for folder in rubbish.folders:
        shutil.rmtree(folder, ignore_errors=True)
    for name in rubbish.containers:
        engine.remove(name)
    for name in rubbish.images:
        engine.remove_image(name)


def _is_over(text: str) -> bool:
    found = read_owner(text)
    return found is not None and found.is_gone


def _is_left(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return False
        return _is_over((path / OWNER_FILE).read_text("utf-8", "replace"))
    except OSError:
        return False
