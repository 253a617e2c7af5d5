"""The hash split: which problems are held out. A problem is a test problem if the CRC-32 of its text is a multiple of five.

It depends on nothing but the text, so that it is the same in every run, whatever file or generator a problem came from.
"""

from __future__ import annotations

import hashlib
import zlib

SHARE = 5


def is_test(problem: str) -> bool:
    """Whether a problem is held out: one in five is."""
    return zlib.crc32(_bytes(problem)) % SHARE == 0


def digest(problem: str) -> str:
    """A short name for a problem that has none: the same in every run, and for no other problem."""
    return hashlib.sha256(_bytes(problem)).hexdigest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
