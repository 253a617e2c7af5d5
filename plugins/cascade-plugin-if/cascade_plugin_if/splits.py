"""The hash split: which prompts are held out. A prompt is a test prompt if its CRC-32 is a multiple of five.

The same in every run and for every seed, and no prompt is in both splits, whatever generator or file it came from.
"""

from __future__ import annotations

import zlib

SHARE = 5


def is_test(prompt: str) -> bool:
    """Whether a prompt is held out: one in five is."""
    return zlib.crc32(prompt.encode("utf-8", "surrogatepass")) % SHARE == 0
