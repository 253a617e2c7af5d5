"""How a problem becomes a prompt: a template, and what is filled into it.

`{problem}` is the statement, `{wanted}` a sentence on how the program is called, `{language}` its language, `{seconds}` and `{memory_mb}`
what one run may use. Only the template is searched for these, never the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cascade_sandbox import Limits

from cascade_plugin_code import exam

INSTRUCTION = (
    "{problem}\n\n{wanted} Each run may use {seconds} s of CPU time and {memory_mb} MB of memory.\n\n"
    "Reason step by step, then give the whole program in one ```{language} block."
)
_PLACE = re.compile(r"\{(problem|wanted|language|seconds|memory_mb)\}")


def prompt(template: str, text: str, answer: Mapping[str, Any], *, language: str, usual: Limits) -> str:
    """The prompt for a statement and the answer that judges it.

    Args:
        language, usual: where the answer names none.
    """
    limits = exam.limits(answer.get("limits", {}), usual)
    filled = {
        "problem": text,
        "wanted": wanted(answer),
        "language": str(answer.get("language", language)),
        "seconds": f"{limits.cpu_seconds:g}",
        "memory_mb": f"{limits.memory_bytes / (1 << 20):g}",
    }
    return _PLACE.sub(lambda place: filled[place[1]], template)


def wanted(answer: Mapping[str, Any]) -> str:
    """How the program is called, in a sentence."""
    if answer.get("kind") == "stdin":
        return "The program reads standard input and writes standard output."
    name = str(answer.get("entry_point", ""))
    if not name:
        return "Write what the problem asks for, without running it."
    owner, _, method = name.rpartition(".")
    return f"Write the class `{owner}` with the method `{method}`." if owner else f"Write the function `{name}`."
