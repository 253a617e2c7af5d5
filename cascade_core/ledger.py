"""One sum per task for any number of tasks, in bounded memory: what a mean over tasks needs when their samples come mixed.

The sums of some thousands of tasks are held here. When there are more, they go to a temporary database of SQLite's own, a
file in `TMPDIR` (or /var/tmp, or /tmp) that nobody else sees and that is gone with the process, and are added up at the
end. A task stands there by a 128-bit hash of its name: long names take no room, and no two meet.

What is counted, and what is made of the means, is `tally.py`'s.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

_NEAR = 5_000  # tasks whose sums are held in memory


class Means(Collection[float]):
    """The mean values of the tasks of one place that have one, read anew each time they are gone through."""

    def __init__(self, far: Connection, first: int, last: int, count: int) -> None:
        self._far, self._rows, self._count = far, (first, last), count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[float]:
        found = "SELECT mean FROM means WHERE rowid BETWEEN ? AND ? AND mean IS NOT NULL"
        with _told():
            for (value,) in self._far.execute(found, self._rows):
                yield value

    def __contains__(self, value: object) -> bool:
        return any(mean == value for mean in self)


class Ledger:
    """Sums by place and task; to be used by one thread.

    >>> ledger = Ledger()
    >>> for task, value in [("a", 1.0), ("b", 0.0), ("a", 0.0), ("c", None)]:
    ...     ledger.add(("math", ""), task, value)
    >>> tasks, means = ledger.means()["math", ""]
    >>> tasks, sorted(means)
    (3, [0.0, 0.5])
    """

    def __init__(self) -> None:
        self._near: dict[tuple[int, bytes], tuple[float, int]] = {}  # place, task: sum of values, how many
        self._places: dict[tuple[str, str], int] = {}
        self._far: Connection | None = None

    def add(self, place: tuple[str, str], task: str, value: float | None) -> None:
        """Counts a sample of the task; `None` is one without a value.

        Raises:
            OSError: no room for temporary data.
        """
        name = blake2b(task.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        key = self._places.setdefault(place, len(self._places)), name
        total, count = self._near.get(key, (0.0, 0))
        self._near[key] = (total, count) if value is None else (total + value, count + 1)
        if len(self._near) >= _NEAR:
            self._move()

    def means(self) -> dict[tuple[str, str], tuple[int, Means]]:
        """For each place how many tasks it has, and the mean values of those that have any.

        Raises:
            OSError: no room for temporary data; also while the means are gone through.
        """
        far = self._move()
        with _told():
            far.execute("DROP TABLE IF EXISTS means")
            far.execute(
                "CREATE TABLE means AS SELECT place, sum(total) / nullif(sum(count), 0) AS mean"
                " FROM sums GROUP BY place, task ORDER BY place"
            )
            places = "SELECT place, min(rowid), max(rowid), count(*), count(mean) FROM means GROUP BY place"
            found = {row[0]: (row[3], Means(far, row[1], row[2], row[4])) for row in far.execute(places)}
        return {place: found[number] for place, number in self._places.items()}

    def _move(self) -> Connection:
        """Hands what is held here to the database."""
        with _told():
            self._far = self._far or _database()
            self._far.execute("BEGIN")
            rows = ((place, name, total, count) for (place, name), (total, count) in self._near.items())
            self._far.executemany("INSERT INTO sums VALUES (?, ?, ?, ?)", rows)
            self._far.execute("COMMIT")
        self._near.clear()
        return self._far


def _database() -> Connection:
    """One of this process alone, in memory while it is small; nothing of it outlives the connection."""
    import sqlite3

    far = sqlite3.connect("", isolation_level=None)
    far.execute("PRAGMA journal_mode = OFF")
    far.execute("CREATE TABLE sums (place INTEGER, task BLOB, total REAL, count INTEGER)")
    return far


@contextmanager
def _told() -> Iterator[None]:
    """What SQLite raises, as the error of the disk that it is."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as cause:
        full = getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise OSError(errno.ENOSPC if full else errno.EIO, str(cause), "temporary data in TMPDIR") from cause
