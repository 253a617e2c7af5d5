"""Whether the kernel ended a program because its container had no memory left: cgroup v2 and v1, or unknown."""

from __future__ import annotations

import os
import re

FILES = (
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/fs/cgroup/memory.oom_control",
)


class Oom:
    """The container's count of such kills. Unknown (no file, no container) means none.

    It is read only after a program was killed, which spares every other run the time; a kill of a child that its parent survived is
    then counted for the next. What that can change is `failed` into `memory`.
    """

    def __init__(self) -> None:
        self._path = next((path for path in FILES if os.path.exists(path)), None)
        self._seen = self._count()

    def killed_since_last(self) -> bool:
        """Whether there was one since the last time that this was asked."""
        before, self._seen = self._seen, self._count()
        return self._seen > before

    def _count(self) -> int:
        if self._path is None:
            return 0
        try:
            with open(self._path, encoding="ascii") as file:
                found = re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE)
        except OSError:
            return 0
        return int(found[1]) if found else 0
