"""The instruction families under their public ids (IFEval, arXiv 2311.07911, table 1), one module a group.

`REGISTRY` is the one table: id to `Instruction`. `lookup` finds a family or says which ids there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from cascade_core.errors import TaskError
from cascade_plugin_if.instructions import (
    cases,
    combinations,
    content,
    endings,
    formats,
    keywords,
    language,
    lengths,
    wholes,
)
from cascade_plugin_if.instructions.base import Argument, Instruction

_MODULES = (keywords, language, lengths, content, formats, wholes, combinations, endings, cases)
REGISTRY: Mapping[str, Instruction] = {family.id: family for module in _MODULES for family in module.FAMILIES}

__all__ = ["REGISTRY", "Argument", "Instruction", "lookup"]


def lookup(name: Any) -> Instruction:
    """The family of that public id.

    Raises:
        TaskError: there is none; names the nearest ids.
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    near = difflib.get_close_matches(str(name)[:80], REGISTRY, n=3, cutoff=0.5)
    allowed = f"nearest are {', '.join(map(repr, near))}" if near else f"known are the {len(REGISTRY)} of IFEval"
    raise TaskError(f"unknown instruction {str(name)[:80]!r}, {allowed}")
