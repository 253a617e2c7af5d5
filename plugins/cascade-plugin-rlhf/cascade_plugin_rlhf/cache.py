"""Replies of a judge that are kept: in memory, or in a file that several processes share and that outlives them.

A key is the digest of everything that was asked: address, model, text and sampling. Only replies with a verdict are kept, so what failed is asked again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cascade_core.errors import UsageError

_BUSY_SECONDS = 30.0


class Cache:
    """Digests to texts.

    Args:
        path: a SQLite file, made where it is not there; `""` keeps replies in memory.

    Raises:
        UsageError: the file is none that can be used.
    """

    def __init__(self, path: str = "") -> None:
        try:
            if path:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT NOT NULL)")
        except (sqlite3.Error, OSError) as cause:
            raise UsageError(f"cache {path!r} cannot be used: {cause}") from cause

    @staticmethod
    def key(asked: Mapping[str, Any]) -> str:
        """The digest of a question."""
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode("ascii")).hexdigest()

    def get(self, key: str) -> str | None:
        """The kept reply, `None` where there is none."""
        row = self._file.execute("SELECT text FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(json.loads(row[0]))

    def put(self, key: str, text: str) -> None:
        """Keeps a reply; the first one stays."""
        self._file.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(text)))

    def close(self) -> None:
        """Closes the file; safe to repeat."""
        self._file.close()
