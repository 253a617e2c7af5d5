"""The instruction families under their public ids (IFEval, arXiv 2311.07911, table 1), one module a group.

`REGISTRY` is their table: id to `Instruction`. `cascade_plugin_if.registry` adds those of IFBench and its training set.
"""

from __future__ import annotations

from collections.abc import Mapping

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

__all__ = ["REGISTRY", "Argument", "Instruction"]
