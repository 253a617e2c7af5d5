"""What a run did, in words for people: one line, printable, short. No verdict depends on these."""

from __future__ import annotations

import signal
from typing import Any

from cascade_sandbox import Limits, Result

LONGEST = 200
MOST_SHOWN = 400
"""Characters of an output that people are shown."""


def printable(text: str, longest: int = LONGEST) -> str:
    """The text without what a terminal or a log would trip over, cut in the middle where it is long."""
    cut = text if len(text) <= longest else f"{text[: longest - longest // 3]} … {text[-longest // 3 :]}"
    return "".join(sign if sign.isprintable() or sign in "\n\t" else f"\\x{ord(sign):02x}" for sign in cut)


def shown(value: Any) -> str:
    """A plain value for people."""
    try:
        return printable(repr(value), MOST_SHOWN)
    except ValueError:  # an integer of more digits than Python writes out
        return "a number too long to be shown"


def first_line(text: str) -> str:
    """The first line with something on it."""
    return printable(next((line.strip() for line in text.splitlines() if line.strip()), ""))


def last_line(text: str) -> str:
    """The last line with something on it: of a Python traceback, the exception."""
    return printable(next((line.strip() for line in reversed(text.splitlines()) if line.strip()), ""))


def ended(result: Result, limits: Limits) -> str:
    """How a run ended that did not end well."""
    if result.verdict == "timeout":
        if result.cpu_seconds >= limits.cpu_seconds * 0.9:
            return f"timeout after {result.cpu_seconds:.1f} s CPU"
        return f"timeout after {result.wall_seconds:.1f} s, most of them asleep"
    if result.verdict == "memory":
        return f"more than {limits.memory_bytes >> 20} MB of memory"
    if result.verdict == "output":
        return f"more than {limits.output_bytes / (1 << 20):.3g} MB of output"
    if result.verdict == "compile_error":
        return f"compile error: {first_line(result.stderr)}"
    said = last_line(result.stderr)
    return f"{_status(result.exit_code)}{': ' if said else ''}{said}"


def _status(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit status {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"
