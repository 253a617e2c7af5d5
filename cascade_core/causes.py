"""Why a program ended, by what it printed: a known reason with the setting to change, and the last error.

The first of the known reasons that is found is told, and the last error with it where that is another one: a line that ends nothing
looks like one that does. A line that says that its program waits or goes on is a reason only where no error was printed. What is
not recognised is quoted. Which reasons there are is said by those who start the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

Known = Sequence[tuple[re.Pattern[str], str]]
"""Patterns, each with what it tells: a format of `found`, `python`, and the pattern's own groups."""

_ERROR = re.compile(r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)\b.*")
_LEVEL = re.compile(r"^(?:ERROR|WARNING|INFO) [\d-]+ [\d:]+ \[[\w./]+:\d+\] ?")
_POINTS = re.compile(
    r"root cause|creation task|(?:ActorDied|ActorUnavailable|RayTask|ChildFailed|CalledProcess)Error|SignalException|^\s*Exception ignored in"
    r"|Connection (?:closed|reset) by peer|Executor failed"
)
# What others print of a process that could print nothing itself.
_KILLED = re.compile(r"died unexpectedly|EngineDeadError|worker process has died|Connection (?:closed|reset) by peer")
_GOES_ON = re.compile(r"\b(?:retry(?:ing)?|try(?:ing)? again|fall(?:ing|s)? back|right now)\b", re.IGNORECASE)
_LONGEST = 300


def cause(
    lines: Iterable[str], python: str, known: Known, unknown: Callable[[Sequence[str]], str] = lambda lines: ""
) -> str:
    """Why the program ended or stands still; `""` where nothing in its lines says so.

    Args:
        lines: without colours and names of processes.
        python: the interpreter that ran it, for what is told.
        unknown: says more of lines in which no known reason is, before the last error is quoted.
    """
    texts = [_LEVEL.sub("", line) for line in lines]
    firm = [text for text in texts if not _GOES_ON.search(text)]
    last = last_error(firm)
    pattern, told = _first(firm, python, known)
    if pattern is None:
        return unknown(firm) or last or _first(texts, python, known)[1] or last_error(texts)
    if not last or _POINTS.search(last) or pattern.search(last):
        return told
    return f"{told}; the last error was: {last}"


def last_error(lines: Sequence[str]) -> str:
    """The last error that is printed, before one that only points at another; `""` where there is none."""
    errors = [line.strip()[:_LONGEST] for line in reversed(lines) if _ERROR.match(line)]
    return next((text for text in errors if not _POINTS.search(text)), errors[0] if errors else "")


def was_killed(lines: Sequence[str]) -> bool:
    """Whether a process of the program's died without a word: all that is printed only points at it."""
    last = last_error(lines)
    return (not last or bool(_POINTS.search(last))) and any(map(_KILLED.search, lines))


def _first(lines: Sequence[str], python: str, known: Known) -> tuple[re.Pattern[str] | None, str]:
    """The first of the known reasons that is found, as its pattern and what it tells."""
    for pattern, told in known:
        for line in lines:
            if found := pattern.search(line):
                groups = {name: (text or "").strip()[:_LONGEST] for name, text in found.groupdict().items()}
                return pattern, told.format(found=found[0].strip()[:_LONGEST], python=python, **groups)
    return None, ""
