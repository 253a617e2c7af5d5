"""math-verify as a second opinion: how often does another verifier differ? It never changes a verdict.

Off unless the option `second_opinion` is set. math-verify guards itself by an alarm, which works in the main thread only and costs seconds
on hostile input; so only short answers are shown to it, and where it cannot run there is no opinion.
"""

from __future__ import annotations

MAX_LENGTH = 120
_SECONDS = 2


def opinion(label: str, answer: str) -> bool | None:
    """math-verify's verdict on an answer; `None` where it is not asked or cannot say."""
    if len(answer) > MAX_LENGTH or len(label) > MAX_LENGTH:
        return None
    from math_verify import parse, verify  # type: ignore[import-untyped]
    from math_verify.errors import TimeoutException  # type: ignore[import-untyped]

    try:
        gold = parse(f"\\boxed{{{label}}}", parsing_timeout=_SECONDS, raise_on_error=True)
        given = parse(f"\\boxed{{{answer}}}", parsing_timeout=_SECONDS, raise_on_error=True)
        return bool(verify(gold, given, timeout_seconds=_SECONDS, raise_on_error=True)) if gold and given else None
    except (TimeoutException, ValueError, TypeError, ArithmeticError, RecursionError, NotImplementedError):
        return None
